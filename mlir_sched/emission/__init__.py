"""From winners to a folder that a plain ``iree-compile`` uses, proven on the way."""
