"""Scripts: the MLIR that a trace produces, built, and read back."""
