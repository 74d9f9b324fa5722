"""Rewrites of attention: as three dispatches, or as one."""
