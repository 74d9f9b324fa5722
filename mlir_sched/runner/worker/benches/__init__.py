"""The benches, which check and time the programs of one task: one class per clock."""
