"""The compiler's side of a worker process: a session of IREE, and the jobs that are done in it."""
