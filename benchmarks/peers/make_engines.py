"""Makes the environment of the engines: ``python -m benchmarks make_engines``.

PyTorch, ``torchvision``, ``transformers`` and iree-turbine export the networks; ONNX Runtime, OpenVINO and PyTorch run
them.
"""

import sys

from benchmarks.peers.client import PeerSpec
from benchmarks.peers.make_peer import FOLDER, TORCH_CPU, install

ENGINES = PeerSpec("engines", FOLDER / "engines" / "bin" / "python", "benchmarks.peers.peer_engines")
REQUIREMENTS = (
    "torch==2.13.0+cpu",
    "torchvision==0.28.0+cpu",
    "transformers==5.23.0",
    "iree-turbine==3.9.0",
    "onnx==1.23.2",
    "onnxruntime==1.32.0",
    "openvino==2026.4.1",
    "numpy",
    "--extra-index-url",
    TORCH_CPU,
)


def require_engines() -> None:
    """End the program with advice where the environment is missing."""
    if not ENGINES.python.exists():
        sys.exit("error: the engines are not installed: run python -m benchmarks make_engines")


if __name__ == "__main__":
    install(FOLDER / "engines", REQUIREMENTS)
    print(ENGINES.python)
