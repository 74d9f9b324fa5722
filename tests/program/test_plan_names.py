"""Names of plans and of sites are printed from data; no product code takes them apart again."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from folders import ROOT

from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.program_space import decision
from mlir_sched.program.rewrites.offered import offered_rewrites, offered_site_kinds
from mlir_sched.targets.target import LOCAL_SYNC

PRODUCT = ("mlir_sched", "search", "models", "transform_scripts", "benchmarks")
KNOWS_NO_PLANS = ROOT / "mlir_sched" / "gpu_model"
"""Reads PTX, whose addresses are written with the sign that joins the names of rewrites."""
TAKES_APART = ("endswith", "partition", "removeprefix", "removesuffix", "rpartition", "rsplit", "split", "startswith")
"""Methods that read a part of a text."""
JOINS = {name: {"+"} if "split" in name or "partition" in name else set[str]() for name in TAKES_APART}
"""What stands between the names of two rewrites, by the methods that read what it joins."""
OF_A_PLAN = re.compile(r"\b(base|built|plan|rewrite|site|step|variant)s?(\.\w+|\[\d+\])*\.name$")
"""Expressions for the name of something that has a plan or is a part of one."""


def pieces() -> set[str]:
    """Return what the names of plans and of sites are put together of."""
    device = {"cpu", "gpu"}
    steps = {step.name for each in device for made in offered_rewrites(each, 2) for step in Plan(made).steps}
    plain, there = Plan().name, Plan().in_calling_thread().name
    sites = [Site(kind, "") for each in device for kind in offered_site_kinds(each)]
    of_sites = {text for site in sites for text in (site.name, decision(site), site.other, site.other.rstrip("()"))}
    return ({there.replace(plain, "")} | steps | of_sites) - {""}


def faults(text: str, constants: Mapping[str, object], known: set[str]) -> Iterator[str]:
    """Yield the expressions of a file that take the name of a plan or of a site apart.

    Args:
        text: The file.
        constants: What its module names.
        known: What such names are put together of.
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in TAKES_APART:
            given = {value for argument in node.args for value in texts(argument, constants)}
            if given & (known | JOINS[node.func.attr]) or OF_A_PLAN.search(ast.unparse(node.func.value)):
                yield ast.unparse(node)
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            whole = OF_A_PLAN.search(ast.unparse(node.comparators[0]))
            if whole and texts(node.left, constants):
                yield ast.unparse(node)


def texts(node: ast.expr, constants: Mapping[str, object]) -> Sequence[str]:
    """Return the texts that an expression of constants gives; none for any other expression."""
    if any(isinstance(each, (ast.Call, ast.Attribute)) for each in ast.walk(node)):
        return ()
    try:
        found = eval(compile(ast.Expression(node), "a constant", "eval"), dict(constants))
    except Exception:
        return ()
    return [each for each in (found if isinstance(found, tuple) else (found,)) if isinstance(each, str)]


def name_of(path: Path) -> str:
    """Return the module of a file: folders beside ``mlir_sched`` are packages of it, but for the benchmarks."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] in ("mlir_sched", "benchmarks") else ("mlir_sched", *parts))


def constants_of(path: Path) -> Mapping[str, object]:
    """Return what the module of a file names; nothing for benchmarks of engines that are not installed."""
    try:
        return vars(importlib.import_module(name_of(path)))
    except (ImportError, SystemExit):
        return {}


def test_no_product_code_takes_the_name_of_a_plan_apart() -> None:
    known = pieces()
    files = [path for folder in PRODUCT for path in (ROOT / folder).rglob("*.py") if path.stem != "__main__"]
    files = [path for path in files if not path.is_relative_to(KNOWS_NO_PLANS)]
    assert len(files) > 400
    found = [(path.name, fault) for path in files for fault in faults(path.read_text(), constants_of(path), known)]
    assert found == []


@pytest.mark.parametrize(
    "text",
    [
        'name.split("+")',
        "self.variant.name.split(',', 1)",
        "[part for part in parts if part.startswith(PREFIX)]",
        'name.removeprefix("algorithm ")',
        'name.removesuffix(f" on {LOCAL_SYNC}")',
        'chosen.startswith(("packed_weights", "channels_last"))',
        '"winograd" in built.variant.name',
        "plans[0].name.partition('(')",
    ],
)
def test_code_that_takes_a_name_apart_is_found(text: str) -> None:
    assert list(faults(text, {"PREFIX": "attention ", "LOCAL_SYNC": LOCAL_SYNC}, pieces()))


@pytest.mark.parametrize(
    "text",
    ['op.name.startswith("linalg.")', 'terms = expression.split(" + ")', 'name in ("default", "O3")'],
)
def test_other_code_is_left_alone(text: str) -> None:
    assert not list(faults(text, {}, pieces()))
