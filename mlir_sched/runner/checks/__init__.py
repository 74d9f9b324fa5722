"""Numeric checks: which values programs get, what their results have to be, and how near."""
