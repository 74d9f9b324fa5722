"""Transform modules, which draw decisions and emit transform ops for an op, and the language they are written in."""
