"""The verbs of schedules: the state that all share, and a mixin per topic."""
