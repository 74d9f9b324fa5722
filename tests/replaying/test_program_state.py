"""The decisions about a whole program: written into a library, read back, edited, and judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import pytest
from channels_first_networks import SHAPES, two_shapes
from edited_decisions import with_word
from plans import convolution_sites
from rewriting import rewritten_variants

from mlir_sched.errors import IllegalTraceError
from mlir_sched.library.library import build_library, has_rewrite, program_decisions
from mlir_sched.program.plan import Flags, Plan
from mlir_sched.program.program_space import PROGRAM, VARIANT, ProgramSpace
from mlir_sched.program.rewrites.convolution.winograd import Convolutions
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.rewritten import decided_variant, planned_variant
from mlir_sched.replaying.program_state import ProgramJudgement, judge_program
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.sampling import Value
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.folder import TunedFolder

pytestmark = pytest.mark.promise

FIRST, SECOND = (f"algorithm {shape}" for shape in SHAPES)
DIRECT, WINOGRAD = Convolutions.own, Convolutions.other
SITES = convolution_sites(*SHAPES)
LAYOUT, O3 = Plan((ChannelsLast(),)), Plan(own_flags=Flags("O3"))
SPACE = ProgramSpace((Plan(), O3, LAYOUT, Plan((*LAYOUT.rewrites, PackedWeights()))), SITES)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "model.mlir"
    path.write_text(two_shapes())
    return path


@pytest.fixture(scope="module")
def variant(path: Path) -> Variant:
    """Channels last, with Winograd's algorithm for one of two shapes."""
    return decided_variant(path, cases.TARGET, {VARIANT: "channels_last", FIRST: WINOGRAD})


@pytest.fixture(scope="module")
def folder(variant: Variant) -> TunedFolder:
    library = build_library([], variant.rewrite, program=SPACE.trace_of(variant.plan), emission=lambda _: "abc")
    flags = (*cases.TARGET.flags, *variant.plan.flags)
    summary = {"program": {"decisions": EMITTED}}
    return TunedFolder(Path("tuned"), flags, library, Path("tuned/library.mlir"), None, summary)


EMITTED: Mapping[str, Value] = {VARIANT: "channels_last", FIRST: WINOGRAD, SECOND: DIRECT}


def edited(folder: TunedFolder, name: str, value: str) -> TunedFolder:
    """Return a folder in whose library a person gave a decision another value."""
    old = next(str(d.value) for d in program_decisions(folder.library) if d.name == name)
    return replace(folder, library=with_word(folder.library, name, old, value))


def judged(folder: TunedFolder, path: Path) -> tuple[ScriptState | None, ProgramJudgement]:
    found = judge_program(folder, path, cases.TARGET)
    return found.state, found


def test_the_decisions_of_a_program_are_those_that_apply_to_it(path: Path) -> None:
    found = rewritten_variants(path, cases.TARGET)
    assert found.sites == SITES
    space = ProgramSpace((Plan(), *(v.plan for v in found.variants)), found.sites)
    assert space.trace({VARIANT: "default"}).values == {VARIANT: "default"}
    assert space.trace({VARIANT: "channels_last"}).values == {VARIANT: "channels_last", FIRST: DIRECT, SECOND: DIRECT}
    wrong: list[dict[str, Value]] = [{VARIANT: "data-tiling"}]
    wrong += [{VARIANT: "default", name: WINOGRAD} for name in (FIRST, "x")]
    for values in wrong:
        with pytest.raises(IllegalTraceError):
            space.trace(values)


def test_a_library_states_the_decisions_about_its_program(variant: Variant, folder: TunedFolder) -> None:
    trace = SPACE.trace_of(variant.plan)
    assert trace.values == EMITTED
    assert Trace(PROGRAM, program_decisions(folder.library)) == trace
    assert program_decisions(build_library([], variant.rewrite)) == ()
    assert SPACE.trace_of(O3.in_calling_thread()).values == {VARIANT: "O3"}


def test_a_library_as_it_was_emitted_is_as_tuned(folder: TunedFolder, path: Path) -> None:
    state, found = judged(folder, path)
    assert (state, found.note, found.folder) == (ScriptState.AS_TUNED, "", folder)
    state, found = judged(replace(folder, library=""), path)
    assert state is None
    old = build_library([], planned_variant(path, cases.TARGET, LAYOUT).rewrite)
    assert judged(replace(folder, library=old), path)[0] is None


def test_an_edited_algorithm_brings_another_rewrite(folder: TunedFolder, path: Path) -> None:
    state, found = judged(edited(folder, SECOND, WINOGRAD), path)
    assert state is ScriptState.EDITED
    assert found.note.startswith(f"{SECOND} direct -> winograd; ")
    both = planned_variant(path, cases.TARGET, LAYOUT.with_algorithms(SITES))
    assert has_rewrite(found.folder.library, both.rewrite)
    assert found.folder.flags == (*cases.TARGET.flags, *both.plan.flags)
    assert {d.name: d.value for d in program_decisions(found.folder.library)} == {**EMITTED, SECOND: WINOGRAD}
    expected = build_library([], both.rewrite, program=SPACE.trace_of(both.plan), emission=lambda _: "abc")
    assert sorted(found.folder.library.splitlines()) == sorted(expected.splitlines()), "only the order may differ"


def test_an_edited_variant_needs_no_algorithms(folder: TunedFolder, path: Path) -> None:
    state, found = judged(edited(folder, VARIANT, "O3"), path)
    assert state is ScriptState.EDITED
    assert has_rewrite(found.folder.library, None)
    assert "--iree-opt-level=O3" in found.folder.flags
    assert not set(found.folder.flags) & set(folder.flags) - set(cases.TARGET.flags)


def test_what_a_program_cannot_be_is_refused(folder: TunedFolder, path: Path) -> None:
    state, found = judged(edited(folder, FIRST, "strassen"), path)
    assert state is ScriptState.REFUSED
    assert "strassen" in found.note
    other = replace(folder, library=folder.library.replace('"default", "O3"', '"split_reduction"'))
    state, found = judged(edited(other, VARIANT, "split_reduction"), path)
    assert state is ScriptState.REFUSED
    assert "split_reduction does not apply" in found.note


def test_other_changes_are_seen(folder: TunedFolder, path: Path) -> None:
    assert judged(replace(folder, flags=(*folder.flags, "--iree-opt-level=O3")), path)[0] is ScriptState.HAND_WRITTEN
    changed = replace(folder, library=folder.library.replace("arith.mulf", "arith.addf", 1))
    assert changed != folder
    assert judged(changed, path)[0] is ScriptState.HAND_WRITTEN
    assert judged(edited(changed, SECOND, WINOGRAD), path)[0] is ScriptState.HAND_WRITTEN
    unknown = judged(replace(edited(folder, SECOND, WINOGRAD), summary={}), path)
    assert unknown[0] is ScriptState.HAND_WRITTEN, "what was emitted is not known"


def test_decisions_that_are_damaged_are_verified_as_they_stand(folder: TunedFolder, path: Path) -> None:
    lines = folder.library.splitlines()
    without_variant = [line for line in lines if f'mlir_sched.name = "{VARIANT}"' not in line]
    without_choices = [line.replace("mlir_sched.distribution", "lost") for line in lines]
    for damaged in (without_variant, without_choices):
        state, found = judged(replace(folder, library="\n".join(damaged)), path)
        assert state is ScriptState.HAND_WRITTEN
        assert "restore it" in found.note
