"""The search in three nested loops (turns of program variants, rounds of tasks, candidates), and its budget."""
