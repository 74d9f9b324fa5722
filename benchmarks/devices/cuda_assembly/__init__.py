"""What becomes of random legal candidates for CUDA when they are compiled and assembled; needs no GPU."""
