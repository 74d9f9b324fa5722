"""What the time of networks goes into: dispatches that can have scripts, copies and transposes, and engines beside."""
