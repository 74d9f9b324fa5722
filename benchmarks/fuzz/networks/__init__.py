"""Random convolutional networks, rewritten in every way that is offered, and judged by NumPy."""
