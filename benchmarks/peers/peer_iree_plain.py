"""IREE as a peer whose calling thread does not yield to IREE's workers, as in an ordinary application."""

from __future__ import annotations

from functools import partial

from benchmarks.peers.peer import serve
from benchmarks.peers.peer_iree import IreePeer

if __name__ == "__main__":
    serve(partial(IreePeer, yields=False))
