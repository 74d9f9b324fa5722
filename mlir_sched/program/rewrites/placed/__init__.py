"""Rewrites of pieces of a program that a script finds by the places of their ops."""
