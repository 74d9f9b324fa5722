"""Rewrites of networks that compute the steps of a sequence one after the other."""
