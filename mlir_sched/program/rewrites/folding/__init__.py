"""Rewrites that fold constants into the weights of linear ops."""
