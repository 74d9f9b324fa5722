"""What competes on a kind of device: our own rewrites and sites, and those that other distributions register."""

from collections.abc import Iterator, Sequence

from mlir_sched.errors import UserError
from mlir_sched.plugins import make_all
from mlir_sched.program.rewrites import REWRITES, SITE_KINDS, Rewrites
from mlir_sched.program.rewrites.site_kind import SiteKind

ENTRY_POINTS = "mlir_sched.rewrites"
"""Entry-point group through which other distributions register rewrites (a class or a factory)."""


class RewriteFamily:
    """Rewrites of another distribution, and sites for which these have another algorithm."""

    def rewrites(self, device: str, cores: int) -> Sequence[Rewrites]:  # noqa: ARG002 - none by default
        """Return everything that is worth trying.

        Args:
            device: The kind of device (``TargetKind.rewrites``).
            cores: Cores of a CPU.
        """
        return ()

    def site_kinds(self, device: str) -> Sequence[SiteKind]:  # noqa: ARG002 - none by default
        """Return the sites that have a choice of algorithms on a kind of device."""
        return ()


def offered_rewrites(device: str, cores: int) -> tuple[Rewrites, ...]:
    """Return everything that is worth trying on a device, our own first; arguments as of a family.

    Raises:
        UserError: What a distribution registers cannot be loaded.
    """
    return (*REWRITES[device](cores), *(made for family in _registered() for made in family.rewrites(device, cores)))


def offered_site_kinds(device: str) -> tuple[SiteKind, ...]:
    """Return the sites that have a choice of algorithms on a device, our own first.

    Raises:
        UserError: What a distribution registers cannot be loaded.
    """
    return (*SITE_KINDS[device], *(kind for family in _registered() for kind in family.site_kinds(device)))


def _registered() -> Iterator[RewriteFamily]:
    """Yield the families that installed distributions register, ordered by entry-point name."""
    for entry, family in make_all(ENTRY_POINTS, "rewrite family"):
        if not isinstance(family, RewriteFamily):
            raise UserError(f"{entry.value}, registered as {entry.name!r}, does not make a RewriteFamily")
        yield family
