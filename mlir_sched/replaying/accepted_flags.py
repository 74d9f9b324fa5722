"""The compiler flags that a tuned folder may hold: those that ``tune`` writes, and no other.

Flags decide what the compiler runs and which files it writes (linkers, plugins, dumps, passes, further response files),
so the flags of a folder that comes from elsewhere are compared with those of our own targets, variants and rewrites.
"""

from __future__ import annotations

from mlir_sched.errors import UserError
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.rewrites.offered import offered_rewrites, offered_site_kinds
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.tuned_folder.folder import TunedFolder


def require_own_flags(folder: TunedFolder, target: Target) -> None:
    """Refuse a folder with a flag that ``tune`` does not write.

    Args:
        folder: The folder.
        target: The target that it was tuned for.

    Raises:
        UserError: The folder has such a flag.
    """
    own = own_flags(target)
    for flag in folder.flags:
        if flag not in own:
            raise UserError(
                f"{folder.path / 'flags.txt'} has {flag}, which tune does not write; replay runs only what tune can "
                "have written: take that flag out, or tune again"
            )


def own_flags(target: Target) -> frozenset[str]:
    """Return every flag that ``tune`` may write for a target, except for the flags that name a library."""
    kind = target_kind(target.name)
    variants = (flag for flags in kind.variants.values() for flag in flags)
    plans = [Plan(made) for made in offered_rewrites(kind.rewrites, target.cores)] if kind.rewrites else []
    sites = [Site(each, "") for each in offered_site_kinds(kind.rewrites)] if kind.rewrites else []
    plans += [plan.with_algorithms([site]) for plan in plans for site in sites if plan.has_choice(site)]
    rewrites = (flag for plan in plans for flag in plan.flags)
    return frozenset((*target.flags, *TASK_FLAGS, *variants, *rewrites))
