"""What runs in a worker process on behalf of ``program/``."""
