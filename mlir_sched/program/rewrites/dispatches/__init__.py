"""Rewrites of how work is divided into dispatches."""
