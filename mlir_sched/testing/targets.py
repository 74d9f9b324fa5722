"""The tests that every kind of target must pass; subclass them for your own (pytest collects the class).

::

    class TestMyCpu(TargetTests):
        name = "my-cpu"

        def make(self):
            return KIND
"""

from abc import ABC, abstractmethod
from pathlib import Path

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import UserError
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.space.space import Space
from mlir_sched.targets.kind import DEFAULT, TargetKind
from mlir_sched.targets.target import Target

NOWHERE = "no-such-device"
"""A device that no machine has."""
PROGRAM = """
func.func @main(%left: tensor<64x96xf32>, %right: tensor<96x32xf32>) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x32xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x32xf32>) -> tensor<64x32xf32>
  %product = linalg.matmul ins(%left, %right : tensor<64x96xf32>, tensor<96x32xf32>)
    outs(%init : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %product : tensor<64x32xf32>
}
"""


class TargetTests(ABC):
    """The contract of a ``TargetKind`` as tests.

    Attributes:
        name: The name that users give.
        device: The device that is described: one of this machine, or one that need not be there (``absent``).
    """

    name: str
    device: str = ""

    @abstractmethod
    def make(self) -> TargetKind:
        """Return the kind."""

    def described(self) -> Target:
        """Return the description of the device, which need not be there where the kind has such devices."""
        kind = self.make()
        return kind.absent(self.device) if kind.absent and self.device else kind.detect(kind.threads(), self.device)

    def test_the_description_is_the_same_every_time(self) -> None:
        """Records are found by it."""
        assert self.described() == self.described()
        assert self.described().name == self.name

    def test_times_have_a_clock(self) -> None:
        """The driver says what times are read from, and how programs are started."""
        assert self.described().clock.name
        assert self.described().driver.device(1)

    def test_every_variant_compiles(self) -> None:
        """IREE takes the flags of the target with those of every variant; the first has none of its own."""
        kind, target = self.make(), self.described()
        assert next(iter(kind.variants)) == DEFAULT
        assert kind.variants[DEFAULT] == ()
        with temporary_folder() as folder:
            path = Path(folder) / "model.mlir"
            path.write_text(PROGRAM)
            for name, flags in kind.variants.items():
                assert compile_to_bytes(path, (*target.flags, *flags)), name

    def test_there_are_transform_modules(self) -> None:
        """Modules are registered, or lie in the target's folder."""
        assert Space.default(self.described()).modules

    def test_facts_are_for_people(self) -> None:
        """``doctor`` shows names and values."""
        for fact, value in self.make().facts(self.described()):
            assert fact
            assert isinstance(value, str)

    def test_what_is_not_there_is_refused(self) -> None:
        """A device that no machine has, and more threads than any machine has, end with a message."""
        kind = self.make()
        for threads, device in ((kind.threads(), NOWHERE), (10**6, "")):
            try:
                kind.detect(threads, device)
            except UserError:
                continue
            raise AssertionError(f"{threads} threads of the device {device!r} were accepted")
