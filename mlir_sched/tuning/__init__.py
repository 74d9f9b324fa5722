"""The search: turns of programs (variants), rounds of tasks, candidates; and the budget that all of it is given."""
