"""Which measured tasks are nearest to a dispatch."""

from __future__ import annotations

from dataclasses import replace

import rule_ops
from fixed_targets import FIXED_CUDA
from measured_tasks import measured_task
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.nearest import distance, nearness
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target

ASKED = matmul_dispatch(128, 256, 64)
NARROW = replace(TARGET, vector_bytes=32, description="narrow")
ELSEWHERE = replace(TARGET, machine=(("cpu", "another"),))


def task(key: str, dispatch: Dispatch, target: Target = TARGET, context: str = "threads=1") -> MeasuredTask:
    return measured_task((), dispatch, target=target, key=key, context=context)


def nearest(*tasks: MeasuredTask, count: int = 9) -> list[str]:
    """Return the keys of the nearest tasks, however the corpus is ordered."""
    (found,) = {
        tuple(each.key + each.context[8:] for each in Corpus(order).nearest(ASKED, TARGET, count))
        for order in (tasks, tasks[::-1])
    }
    return list(found)


def test_a_family_comes_before_others_and_the_nearest_size_first() -> None:
    others = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))
    far, near, same = matmul_dispatch(32, 32, 2048), matmul_dispatch(128, 256, 128), ASKED
    tasks = [task("other", others), task("far", far), task("near", near), task("same", same)]
    assert nearest(*tasks) == ["same1", "near1", "far1", "other1"]
    assert nearest(*tasks, count=2) == ["same1", "near1"]


def test_other_sketches_come_behind_the_same_ones_whatever_the_size() -> None:
    far, near = task("far", matmul_dispatch(8, 8, 8)), task("near", ASKED)
    near.__dict__["sketches"] = ("other",)
    alien = task("alien", rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256)))
    assert nearest(far, near, alien) == ["far1", "near1", "alien1"]


def test_of_equals_the_width_of_vectors_counts_before_the_machine_then_threads_then_the_key() -> None:
    several = replace(TARGET, cores=4)
    tasks = [
        task("b", ASKED),
        task("a", ASKED, several),
        task("a", ASKED, ELSEWHERE),
        task("a", ASKED),
        task("a", ASKED, context="threads=2"),
    ]
    ordered = sorted(tasks, key=nearness(ASKED, TARGET))
    assert [each.key + each.context[8:] for each in ordered] == ["a1", "a2", "b1", "a1", "a1"]
    wide = replace(ELSEWHERE, cores=2)
    assert Corpus((task("a", ASKED, wide), task("b", ASKED, several))).nearest(ASKED, TARGET, 1)[0].key == "b"
    narrow, elsewhere = task("a", ASKED, NARROW), task("b", ASKED, ELSEWHERE)
    assert narrow.sketches == elsewhere.sketches
    assert Corpus((narrow, elsewhere)).nearest(ASKED, TARGET, 1) == (elsewhere,)


def test_a_dispatch_is_near_once_as_the_task_that_comes_first() -> None:
    several = replace(TARGET, cores=4)
    tasks = [task("c", ASKED, several), task("b", ASKED), task("a", matmul_dispatch(64, 64, 64)), task("d", ASKED)]
    assert nearest(*tasks) == ["b1", "a1"]


def test_tasks_of_another_kind_of_target_are_not_near() -> None:
    assert nearest(task("gpu", ASKED, FIXED_CUDA)) == []


def test_a_distance_is_symmetric_and_lacks_no_loop() -> None:
    product = matmul_dispatch(128, 256, 64)
    assert distance(product, matmul_dispatch(64, 512, 64)) == 2.0
    with_epilogue = rule_ops.dispatch(rule_ops.matmul(64, m=128, n=256), rule_ops.epilogue("f32", (), 128, 256))
    assert distance(product, with_epilogue) == distance(with_epilogue, product) == 0.0
    zeros = Dispatch((rule_ops.fill("f32", (128,)),), (0,))
    assert distance(product, zeros) == distance(zeros, product) == 14.0
