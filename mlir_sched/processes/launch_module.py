"""First code of a Python child (see ``python_child.py``): makes this package importable and runs a module.

Started as a file with ``python -P``, so that neither the working directory nor this folder is on the import path.
SIGTERM is ignored because a service manager sends it to every process, while the parent alone decides when the child's
work ends; Ctrl-C does not reach a child either.
"""

import importlib.util
import runpy
import signal
import sys
from pathlib import Path

_PACKAGE = "mlir_sched"


def main() -> None:
    """Run the module that the first argument names, with the other arguments as its own."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # blocked by the parent (held_signals.py)
    module = sys.argv.pop(1)
    _import_package(Path(__file__).parents[1])
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _import_package(folder: Path) -> None:
    """Import the package from its folder, without putting the folder around it on the import path."""
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)


if __name__ == "__main__":
    main()
