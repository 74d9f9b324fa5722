"""Templates of the modules for CPUs: what is tried first, and the rules of tiles that modules and templates share."""
