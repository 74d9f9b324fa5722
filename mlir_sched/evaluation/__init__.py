"""What a candidate goes through: compiled, checked and timed, or estimated, and recorded."""
