"""Transform libraries: sequences with their matchers, and rewrites, in one file that IREE runs."""
