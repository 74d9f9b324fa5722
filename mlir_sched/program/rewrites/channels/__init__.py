"""Rewrites of networks that permute, split and join channels between linear ops."""
