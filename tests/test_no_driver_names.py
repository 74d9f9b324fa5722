"""What follows from a clock or a driver is asked of it: nobody tests which one there is, or the class of a set-up."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from folders import ROOT

from mlir_sched.runner.protocol import Setup
from mlir_sched.runner.worker.benches.bench import Bench
from mlir_sched.runner.worker.server import BENCHES

PRODUCT = ("mlir_sched", "search", "models", "transform_scripts")
DRIVERS = ("local", "cuda", "vulkan", "hip", "rocm", "metal")
CONSTANTS = {"LOCAL", "LOCAL_SYNC", "LOCAL_TASK", "CUDA"}
PREDICATES = {"startswith", "endswith", "removeprefix", "partition", "split", "find", "count", "fullmatch", "match"}
CLOCKED = {
    *("Setup", "WallSetup", "EventsSetup", "CallsSetup"),
    *("Bench", "ChainedBench", "LocalBench", "DeviceBench", "CallsBench"),
}
ALLOWED = {
    ("mlir_sched/targets/target.py", "device == LOCAL_SYNC"): "the one place that reads what a device's name says",
    ("mlir_sched/program/worker/encoder.py", "device != 'local'"): "what a program that IREE made says of its device",
    ("mlir_sched/tuning/options.py", "self.device not in (None, LOCAL_TASK)"): "what the user may ask for",
}
"""Tests of names that have to be somewhere, with the reason."""


def name_tests(text: str) -> Iterator[str]:
    """Yield the expressions of a program that test which driver or clock it has, or the class of a set-up or bench."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare() if any(is_driver(each) for each in (node.left, *node.comparators)):
                yield ast.unparse(node)
            case ast.Call(ast.Attribute(of, attr), arguments) if attr in PREDICATES:
                if any(is_driver(each) for each in (of, *arguments)):
                    yield ast.unparse(node)
            case ast.Call(ast.Name("isinstance" | "issubclass"), [_, classes]):
                if CLOCKED & {each for node in ast.walk(classes) for each in named(node)}:
                    yield ast.unparse(node)
            case ast.MatchValue(value) if is_driver(value):
                yield ast.unparse(node)


def is_driver(node: ast.expr) -> bool:
    """Say whether an expression is a driver, its name or its clock: ``driver``, ``LOCAL``, ``"cuda://"``, ``clock``."""
    match node:
        case ast.Constant(str(text)):
            return text.partition("-")[0].partition(":")[0] in DRIVERS
        case ast.Tuple(parts) | ast.List(parts) | ast.Set(parts):
            return any(is_driver(part) for part in parts)
        case ast.Name(name) | ast.Attribute(_, name):
            return name in CONSTANTS or name in ("driver", "uri", "clock")
    return False


def named(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(name) | ast.Attribute(_, name):
            yield name


def files() -> list[Path]:
    return sorted(path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py"))


def test_nobody_tests_which_driver_clock_or_set_up_there_is() -> None:
    found = {(str(path.relative_to(ROOT)), test) for path in files() for test in name_tests(path.read_text())}
    assert sorted(found - ALLOWED.keys()) == [], "ask the driver, its clock or the set-up instead"
    assert sorted(ALLOWED.keys() - found) == [], "no longer there"


@pytest.mark.parametrize(
    "text",
    [
        'driver.startswith("cuda")',
        'name.startswith("local")',
        "target.driver == LOCAL",
        'options.driver.uri == "local-task"',
        'device in ("local-sync", "x")',
        "target.driver.uri.partition(':')",
        "re.match('vulkan', text)",
        "isinstance(setup, CallsSetup)",
        "isinstance(setup, protocol.WallSetup | protocol.EventsSetup)",
        "isinstance(bench, LocalBench)",
        "options.clock is WALL",
        'match name:\n    case "hip":\n        pass',
    ],
)
def test_such_tests_are_found(text: str) -> None:
    assert list(name_tests(text))


@pytest.mark.parametrize(
    "text", ["target.clock.profiling", "driver.on_host", "localize.find('x')", "isinstance(a, Pair)"]
)
def test_what_asks_a_clock_or_a_driver_is_left_alone(text: str) -> None:
    assert not list(name_tests(text))


def test_all_set_ups_and_benches_are_among_the_classes() -> None:
    known = {*below(Setup), *below(Bench), *BENCHES}
    assert {each.__name__ for each in known if each.__module__.startswith("mlir_sched.")} == CLOCKED


def below(base: type[Any]) -> Iterator[type[Any]]:
    """Yield a class and all that derive from it."""
    yield base
    for each in base.__subclasses__():
        yield from below(each)
