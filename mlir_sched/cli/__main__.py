"""Runs the command line as ``python -m mlir_sched.cli``."""

import sys

from mlir_sched.cli.app import main

sys.exit(main())
