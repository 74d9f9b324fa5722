"""Rewrites of products with constant weights, and of what becomes such products."""
