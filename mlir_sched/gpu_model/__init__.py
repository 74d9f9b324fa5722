"""Device code without a device: PTX taken out of a program, its resources by ptxas, and a model of its time."""
