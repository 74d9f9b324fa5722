"""Child processes: how they are started, what they may take, and that nothing is left of them."""
