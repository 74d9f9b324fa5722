"""Random programs, tuned and judged by numbers that no compiler made."""
