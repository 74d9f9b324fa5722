"""What is run and compared of whole programs: their functions, given values, state, and results of their dispatches."""
