"""The search: options, budget, rounds over the tasks of a variant, halving over the variants."""
