"""The programs of ``data/runner``, compiled once, and a runner for them."""

from collections.abc import Callable, Iterator

import pytest
from iree.compiler.tools import compile_str
from iree_cases import FLAGS
from measured_programs import FAST, SOURCES, SQUARE, VECTOR, Compiled

from mlir_sched.runner import Runner
from mlir_sched.runner.program import Program


@pytest.fixture(scope="session")
def compiled() -> Callable[..., bytes]:
    """Return a function from a source's name, and a type in place of f32, to its program; each is compiled once."""
    known: dict[tuple[str, str], bytes] = {}

    def compile_program(name: str, element_type: str = "f32") -> bytes:
        if (name, element_type) not in known:
            flags = ["--compile-from=flow"] if name == "race" else FLAGS
            text = (SOURCES / f"{name}.mlir").read_text().replace("f32", element_type)
            if element_type.startswith("i"):
                text = text.replace("addf", "addi").replace("subf", "subi")
            known[name, element_type] = compile_str(text, extra_args=flags)
        return known[name, element_type]

    return compile_program


@pytest.fixture(scope="session")
def matmul(compiled: Callable[[str], bytes]) -> Compiled:
    return lambda name: Program(compiled(name), "task", (SQUARE, SQUARE), (SQUARE,), True)


@pytest.fixture(scope="session")
def model(compiled: Callable[[str], bytes]) -> Compiled:
    return lambda name: Program(compiled(name), "main", (VECTOR,), (VECTOR,), False)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(FAST) as made:
        yield made
