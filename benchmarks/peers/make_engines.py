"""Makes the environment of the engines: ``python -m benchmarks make_engines``.

PyTorch, ``torchvision``, ``transformers`` and iree-turbine export the networks; ONNX Runtime, OpenVINO and PyTorch run
them.
"""

import argparse
import subprocess
import sys

from benchmarks.peers.client import PeerSpec
from benchmarks.peers.make_peer import FOLDER, add_index, install

ENGINES = PeerSpec("engines", FOLDER / "engines" / "bin" / "python", "benchmarks.peers.peer_engines")
REQUIREMENTS = (
    "torch==2.13.0",
    "torchvision==0.28.0",
    "transformers==5.23.0",
    "iree-turbine==3.9.0",
    "onnx==1.23.2",
    "onnxruntime==1.32.0",
    "openvino==2026.4.1",
    "numpy",
)


def require_engines() -> None:
    """End the program with advice where the environment is missing."""
    if not ENGINES.python.exists():
        sys.exit("error: the engines are not installed: run python -m benchmarks make_engines")


def main() -> None:
    """Make the environment, or bring it up to date."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks make_engines", description=__doc__)
    add_index(parser)
    index = parser.parse_args().torch_index
    try:
        install(FOLDER / "engines", REQUIREMENTS, index)
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: pip ended with exit code {error.returncode}")
    print(ENGINES.python)


if __name__ == "__main__":
    main()
