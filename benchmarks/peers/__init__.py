"""Other frameworks, each in a process and an environment of its own."""
