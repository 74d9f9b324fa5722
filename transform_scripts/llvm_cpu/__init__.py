"""Transform modules for IREE's llvm-cpu backend."""
