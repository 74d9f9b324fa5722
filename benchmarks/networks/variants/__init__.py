"""What the variants of small networks take without scripts, and how well they are predicted from other networks."""
