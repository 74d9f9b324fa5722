"""Rewrites of padded tensors."""
