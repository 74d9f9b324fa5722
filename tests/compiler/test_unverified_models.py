"""A model may be compiled without verification after every pass: it is the same, and a failure has its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import iree_cases as cases
import pytest

from mlir_sched.compiler import ModelCompileError, compiling, iree_compile
from mlir_sched.compiler.iree_compile import ModelLimitError, compile_to_bytes

UNVERIFIED = "--verify=false"


@pytest.mark.promise
def test_a_model_is_the_same_without_verification(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text(cases.MATMUL)
    with compiling(model, cases.FLAGS, verifies=False) as compiled:
        assert compiled().vmfb == compile_to_bytes(model, cases.FLAGS)


@pytest.mark.promise
def test_what_the_compiler_rejects_is_rejected_with_the_reason_that_verification_gives(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text("func.func @main(%x: tensor<4xf32>) -> tensor<8xf32> { return %x : tensor<4xf32> }")
    with compiling(model, cases.FLAGS, verifies=False) as compiled, pytest.raises(ModelCompileError) as unverified:
        compiled()
    with pytest.raises(ModelCompileError) as verified:
        compile_to_bytes(model, cases.FLAGS)
    assert str(unverified.value) == str(verified.value)


@pytest.mark.parametrize(("error", "again"), [(ModelCompileError("no"), True), (ModelLimitError("no memory"), False)])
def test_a_compilation_that_fails_is_repeated_with_verification(
    error: ModelCompileError, again: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = list[bool]()

    @contextmanager
    def running(path: object, flags: tuple[str, ...], *_: object) -> Iterator[Callable[[], str]]:
        started.append(UNVERIFIED in flags)

        def wait() -> str:
            raise error

        yield wait

    monkeypatch.setattr(iree_compile, "_running_iree_compile", running)
    with compiling(tmp_path / "model.mlir", (), verifies=False) as compiled, pytest.raises(type(error)):
        compiled()
    assert started == ([True, False] if again else [True])
    with compiling(tmp_path / "model.mlir", ()) as compiled, pytest.raises(type(error)):
        compiled()
    assert started[-1] is False
    assert len(started) == (3 if again else 2)
