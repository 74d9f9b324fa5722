"""Judges what is known before the first candidate: models on measured candidates, strategies in real searches."""
