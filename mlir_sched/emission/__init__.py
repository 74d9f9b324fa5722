"""The emission of the winners: a library and flags that a plain ``iree-compile`` uses, proven on the way."""
