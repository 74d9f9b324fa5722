"""Design spaces and how well they are searched."""
