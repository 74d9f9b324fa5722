"""Reads tuned folders, libraries and stores back: inspection, and proof that they still hold."""
