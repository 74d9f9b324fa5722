"""Transform modules that every backend uses."""
