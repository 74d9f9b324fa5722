"""The verbs of schedules by topic; each topic is a base class of the next, and the last of the schedule."""
