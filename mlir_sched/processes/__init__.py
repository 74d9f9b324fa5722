"""Child processes: starting them, limiting their time and memory, and leaving nothing of them behind."""
