"""The operators of the MetaSchedule paper, tuned and compared with other frameworks."""
