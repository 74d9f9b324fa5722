"""Makes the environment of a peer: ``python -m benchmarks make_peer torch tvm``.

Each framework gets its own virtual environment under ``benchmarks/.peers``, which git ignores.
"""

import argparse
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

from benchmarks.folders import ROOT
from benchmarks.peers.client import PeerSpec

FOLDER = ROOT / "benchmarks" / ".peers"
TORCH_CPU = "https://download.pytorch.org/whl/cpu"
"""Index of PyTorch's wheels for the CPU. Where it has none, or cannot be reached, pip takes those of its own index,
which are larger."""
REQUIREMENTS = {
    "torch": ("torch==2.13.0", "numpy"),
    # tvm-ffi 0.1.15 crashes when MetaSchedule writes its database; cloudpickle, psutil and xgboost are not pulled in
    "tvm": (
        "apache-tvm==0.27.0.post1",
        "apache-tvm-ffi==0.1.14.post0",
        "cloudpickle",
        "psutil",
        "xgboost",
        "numpy",
        "onnx",
    ),
}
_PEERS = ", ".join(sorted(REQUIREMENTS))


def peer_spec(name: str, folder: Path = FOLDER) -> PeerSpec:
    """Return the description of a peer; its environment need not exist."""
    return PeerSpec(name, folder / name / "bin" / "python", f"benchmarks.peers.peer_{name}", places=name == "torch")


def missing(spec: PeerSpec) -> str | None:
    """Say how to install a peer whose environment does not exist; None when it does."""
    if spec.python.exists():
        return None
    return f"not installed: run python -m benchmarks make_peer {spec.name}"


def make(name: str, folder: Path = FOLDER, index: str = TORCH_CPU) -> None:
    """Make the environment of a peer, or bring it up to date.

    Args:
        index: Where PyTorch is looked for beside pip's own index.

    Raises:
        subprocess.CalledProcessError: pip failed; it has said why.
    """
    install(folder / name, REQUIREMENTS[name], index)


def install(folder: Path, requirements: Sequence[str], index: str) -> None:
    """Make a virtual environment with some packages, or bring it up to date; index and errors as in :func:`make`."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    further = ("--extra-index-url", index) if any(each.startswith("torch") for each in requirements) else ()
    subprocess.run([python, "-m", "pip", "install", "--only-binary", ":all:", *further, *requirements], check=True)


def main() -> None:
    arguments = _parser().parse_args()
    failed = []
    for name in arguments.names or sorted(REQUIREMENTS):
        try:
            make(name, arguments.folder, arguments.torch_index)
            print(f"{name}: {peer_spec(name, arguments.folder).python}")
        except subprocess.CalledProcessError as error:
            failed.append(f"{name}: pip ended with exit code {error.returncode}")
    if failed:
        sys.exit("\n".join(failed))


def _peer(name: str) -> str:
    """Return the name of a peer as it is given.

    Raises:
        argparse.ArgumentTypeError: There is no such peer.
    """
    if name not in REQUIREMENTS:
        raise argparse.ArgumentTypeError(f"no peer {name!r}: choose from {_PEERS}")
    return name


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks make_peer", description=__doc__)
    # a type and no choices: Python 3.11 looks for the empty list among the choices where no name is given
    parser.add_argument("names", nargs="*", type=_peer, metavar="NAME", help=f"{_PEERS}; by default all")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the environments are made")
    add_index(parser)
    return parser


def add_index(parser: argparse.ArgumentParser) -> None:
    """Add the option that names another index of PyTorch's wheels."""
    parser.add_argument("--torch-index", default=TORCH_CPU, metavar="URL", help=f"index of PyTorch ({TORCH_CPU})")
