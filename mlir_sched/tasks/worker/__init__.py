"""What a worker process does with a model: its dispatches taken out, and read as plain data."""
