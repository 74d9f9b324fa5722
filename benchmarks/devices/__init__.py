"""Candidates on GPUs: measured, assembled, and estimated by a model."""
