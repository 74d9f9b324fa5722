"""Attention as one dispatch: the same numbers, padding, what may become one dispatch, and the script that it gets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import attention_programs
import numpy as np
import pytest
from attention_programs import LOOPS, PLAIN, TANH, Attention, with_constant_scale
from iree.compiler import ir
from iree_cases import FLAGS, TARGET
from rewriting import abi, compiled_to, library_for, rewritten_variants, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.flags import library_flags
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.library.library import build_library
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.program_space import VARIANT, decision
from mlir_sched.program.rewrites import SITE_KINDS
from mlir_sched.program.rewrites.attention.decomposed import MIN_SCORES, Attentions, DecomposedAttention
from mlir_sched.program.rewrites.attention.fused import MOST_KEYS, VECTOR
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.variants.early_decisions import ATTENTION
from mlir_sched.program.variants.rewritten import decided_variant
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.transform_scripts.script.form import script_context

pytestmark = pytest.mark.promise


def sized(*sizes: int) -> dict[str, int]:
    """Return sizes by loop, in the order of :data:`LOOPS`."""
    return dict(zip(LOOPS, sizes, strict=True))


EVEN, UNEVEN = sized(2, 3, 8, 16, 16, 4), sized(2, 3, 7, 16, 21, 5)
"""Sizes of loops: batch and heads, queries, features of values, keys, features of queries."""
CASES = {
    "plain": PLAIN,
    "one head": Attention("md", "kd", "kn", "mn"),
    "heads beside tokens": Attention("mhd", "khd", "khn", "mhn"),
    "batch and heads": Attention("bhmd", "bhkd", "bhkn", "bhmn"),
    "keys and values that all heads share": Attention("hmd", "kd", "kn", "hmn"),
    "transposed mask": replace(PLAIN, mask="khm"),
    "boolean mask of keys": replace(PLAIN, mask="hk", mask_type="i1"),
    "scores that are changed, and a mask": replace(PLAIN, body=TANH, mask="mk"),
}


LEFT_ALONE = {
    "features that do not fill vectors": with_constant_scale(PLAIN.text(sizes=sized(1, 2, 512, 24, 512, 16))),
    "a result with queries innermost": with_constant_scale(
        Attention(result="hnm").text(sizes=sized(1, 2, 512, 16, 512, 16))
    ),
    "keys that overflow the stack": with_constant_scale(PLAIN.text(sizes=sized(1, 1, 512, 16, MOST_KEYS + 1, 16))),
    "few scores": with_constant_scale(PLAIN.text(sizes=sized(1, 1, 512, 16, MIN_SCORES // 512 - 1, 16))),
    "a scale that is an argument": PLAIN.text(sizes=sized(1, 2, 512, 16, 512, 16)),
}


@pytest.fixture
def sizes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Give the programs other sizes of loops than usual."""
    found: dict[str, int] = request.param
    monkeypatch.setattr(attention_programs, "SIZES", found)
    return found


def tried(model: Path) -> list[str]:
    with script_context(), ir.Location.unknown():
        return Attentions().shapes(StagedProgram(ir.Module.parse(abi(model))))


def shape_of(model: Path) -> str:
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(abi(model)))
        (site,) = DecomposedAttention().sites(program)
        return site.shape


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [EVEN, UNEVEN], ids=["even", "uneven"], indirect=True)
def test_an_attention_in_one_dispatch_computes_the_same(name: str, sizes: dict[str, int], tmp_path: Path) -> None:
    case = CASES[name]
    model = write(tmp_path, case.text())
    shape = shape_of(model)
    assert shape.endswith(f"x{sizes['k']}x{sizes['n']}")
    flags = library_for(DecomposedAttention((shape,)), model, tmp_path)
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {f"decomposed_attention+fused_attention({shape})": 1}
    assert text.count("flow.dispatch.region") == 1
    inputs = case.inputs()
    found = run(compile_to_bytes(model, flags), inputs)
    np.testing.assert_allclose(found, case.expected(inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [EVEN], indirect=True)
@pytest.mark.usefixtures("sizes")
def test_attentions_of_other_shapes_stay_three_dispatches(tmp_path: Path) -> None:
    other = PLAIN.text("other", {**EVEN, "m": 12})
    model = write(tmp_path, PLAIN.text() + other)
    flags = library_for(DecomposedAttention(("3x8x16x16",)), model, tmp_path)
    assert compiled_to(model, flags, "preprocessing").count("flow.dispatch.region") == 1
    assert compiled_to(model, flags, "flow").count("flow.executable private") == 2 + 3, "with the transpose of the keys"


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_not_tried_in_one_dispatch(name: str, tmp_path: Path) -> None:
    assert tried(write(tmp_path, LEFT_ALONE[name])) == []


def test_large_attentions_are_tried_in_one_dispatch_once_per_shape(tmp_path: Path) -> None:
    large = sized(1, 2, 512, 64, MOST_KEYS, 32)
    texts = (PLAIN.text(name, large) for name in ("main", "again"))
    model = write(tmp_path, "".join(map(with_constant_scale, texts)))
    assert set(tried(model)) == {f"2x512x{MOST_KEYS}x64"}
    assert rewritten_variants(model, TARGET).sites == (Site(Attentions(), f"2x512x{MOST_KEYS}x64"),)
    assert Attentions() not in SITE_KINDS["gpu"]


@pytest.mark.landing
def test_a_decision_about_a_program_puts_its_attentions_into_one_dispatch(tmp_path: Path) -> None:
    model = write(tmp_path, with_constant_scale(PLAIN.text(sizes=sized(1, 2, 256, 16, 512, 16))))
    (shape,) = tried(model)
    site = Site(Attentions(), shape)
    variant = decided_variant(model, TARGET, {VARIANT: ATTENTION, decision(site): Attentions.other})
    assert variant.name == f"{ATTENTION}+fused_attention(2x256x512x16)"
    assert variant.plan == Plan((DecomposedAttention(),), (site,))
    path = tmp_path / "decided.mlir"
    path.write_text(build_library([], variant.rewrite))
    inputs = [*np.random.default_rng(0).standard_normal((3, 2, 512, 16), np.float32)]
    inputs[0] = inputs[0][:, :256]
    expected = run(compile_to_bytes(model, FLAGS), inputs)
    found = run(compile_to_bytes(model, (*FLAGS, *library_flags(path))), inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def in_one_dispatch(folder: Path, queries: int, features: int, keys: int) -> tuple[Path, tuple[str, ...]]:
    """Write a model of one attention, and return its file and flags that put the attention into one dispatch."""
    model = write(folder, with_constant_scale(PLAIN.text(sizes=sized(1, 2, queries, features, keys, 16))))
    return model, library_for(DecomposedAttention((shape_of(model),)), model, folder)


SIZES = [(64, 16, MOST_KEYS - VECTOR + 1), (64, 256, 64), (13, 80, 197)]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("processor", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("queries", "features", "keys"), SIZES)
def test_iree_compiles_the_dispatch_for_short_and_long_registers(
    queries: int, features: int, keys: int, processor: str, tmp_path: Path
) -> None:
    model, flags = in_one_dispatch(tmp_path, queries, features, keys)
    assert compile_to_bytes(model, tuple(flag.replace("=host", f"={processor}") for flag in flags))


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("queries", "features", "keys"), SIZES)
def test_the_dispatch_has_scripts_and_iree_compiles_it_without(
    queries: int, features: int, keys: int, tmp_path: Path
) -> None:
    model, flags = in_one_dispatch(tmp_path, queries, features, keys)
    assert compile_to_bytes(model, flags), (
        "with its own tile sizes IREE takes too much of the stack, or too long vectors"
    )
    library = (tmp_path / "library.mlir").read_text()
    tasks = [task for task in extract(model, TARGET, TASK_FLAGS, library).tasks if task.dispatch is not None]
    sketches = [DesignSpace(Space.default(TARGET), task.dispatch, TARGET).sketches for task in tasks if task.dispatch]
    assert ("attention",) in sketches
