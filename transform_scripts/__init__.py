"""Transform modules and the language they are written in: each draws decisions and emits transform ops for an op."""
