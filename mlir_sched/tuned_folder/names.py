"""The names of the files in a tuned folder."""

LIBRARY, FLAGS, SUMMARY = "library.mlir", "flags.txt", "summary.json"
CURVE, REPORT = "curve.png", "report.html"
RESULT = (LIBRARY, FLAGS, SUMMARY, CURVE, REPORT)
"""The files of a result: a new result replaces or removes them."""
MANIFEST = ".manifest.json"
INTERNAL_ERRORS = "internal-errors.log"
LOCK = ".lock"
"""The file that a run locks; it holds the run's process id. A file left by a killed process is no longer locked."""
