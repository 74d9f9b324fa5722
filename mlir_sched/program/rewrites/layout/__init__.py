"""Rewrites of a network's layout: channels last, and what has to come before it."""
