"""The schedule, whose methods a transform module's program calls: it draws decisions, emits ops and checks legality.

Programs name ops of the payload and loops of a structure (``structures.py``), never handles. Beside emitting, the
schedule records the loop nest of every tiled op as plain data (``tracking/``); static legality and cost-model features
are read from this record. Handles that a verb ends are found again before their next use.
"""

from collections.abc import Callable, Mapping, Sequence

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.structures import Loop
from mlir_sched.transform_scripts.tracking.nest import nest_of
from mlir_sched.transform_scripts.tracking.tile_loops import TileLoop
from mlir_sched.transform_scripts.verbs.buffers import BuffersMixin
from mlir_sched.transform_scripts.verbs.draws import DrawsMixin
from mlir_sched.transform_scripts.verbs.peeling import PeelingMixin
from mlir_sched.transform_scripts.verbs.tiling import TilingMixin
from mlir_sched.transform_scripts.verbs.vectorization import VectorizationMixin


class Schedule(DrawsMixin, TilingMixin, BuffersMixin, PeelingMixin, VectorizationMixin):
    """One run of a schedule program: its state (``verbs/state.py``), and the methods of these topics:

    - ``draws.py``: the decisions, ``sample_tile`` to ``sample_order``;
    - ``facts.py``: what the code is like so far, ``extent`` and others, and the static rules, ``require`` and others;
    - ``tiling.py``: ``distribute``, ``tile``, ``fuse``, ``fuse_rest``, ``rfactor``, ``inline``;
    - ``buffers.py``: ``promote``, ``share``, ``pack``, ``read_padding_in_place``;
    - ``peeling.py``: ``peel``, ``cut_rest``, ``copies``, ``unroll``;
    - ``vectorization.py``: ``run_pass``, ``fold_unit_dims``, ``vectorize``, ``tensorize``;
    - this file: patterns and ops of the transform dialect that have no verb, and IREE's own pipelines.

    Args:
        recorder: Draws the decisions, or takes given ones.
        emitter: Receives the transform ops; by default no ops are built.
        passes: The compiler's passes that run on the function before any of its ops become vectors, but for those that
            combine partial results.
    """

    def __init__(
        self,
        dispatch: Dispatch,
        target: Target,
        recorder: Recorder,
        emitter: Emitter | None = None,
        passes: Sequence[str] = (),
    ) -> None:
        super().__init__(dispatch, target, recorder, emitter or Emitter(), passes)
        self._on_buffers: list[Callable[[], Sequence[str]]] = []

    def apply_patterns(self, *names: str, cse: bool = False) -> None:
        """Apply pattern sets to the function, followed by common subexpression elimination if ``cse`` is set."""
        self._emit.apply_patterns(*names)
        if cse:
            self._emit.cse()

    def annotate(self, name: str, attribute: str, *, on: LinalgOp | str | None = None) -> None:
        """Annotate an op, all ops of a name, or the function with an attribute in MLIR syntax."""
        if isinstance(on, LinalgOp):
            target = self._handles.found(on)
        else:
            target = None if on is None else self._emit.match_ops([on])
        self._emit.annotate(target, name, attribute)

    def forget_loops(self) -> None:
        """Give up the handles of all loops and copies made so far, which must still be in the function.

        IREE's ``vector_to_mma_conversion`` takes an op for one that a handle stands for when it lies where such an op
        lay before it was freed, and then refuses the script, at random: 3 of 100 scripts, and none of 300 without these
        handles (IREE 3.13, ``ErrorCheckingTrackingListener.cpp``).
        """
        self._emit.forget_loops()
        self._loops.drop_all()

    def raw(
        self,
        name: str,
        *,
        on: TileLoop | None = None,
        attributes: Mapping[str, str] | None = None,
        replaces_function: bool = False,
        ends_handles: bool = False,
    ) -> None:
        """Emit an op of the transform dialect that has no method here, on a loop or, by default, on the function.

        The schedule cannot know which handles the op ends. An op that replaces the function's handle ends all handles
        of ops and loops; any other is taken to end none, unless ``ends_handles`` says that it does. Ops are then found
        again at their next use, all copies of them; loops are not.

        Args:
            name: The op's full name.
            on: The loop that is the op's operand.
            attributes: The op's attributes in MLIR syntax.
            replaces_function: Whether the op's only result replaces the function's handle; if not, it has no result.
            ends_handles: Whether the op copies, moves or replaces ops of the dispatch.
        """
        if on is not None:
            self._check_loops(on)
        if ends_handles:
            self._handles.settle()
        if ends_handles or replaces_function:
            self._handles.multiply()
        target = None if on is None else on.handle
        self._emit.op(name, target, attributes=attributes, replaces_function=replaces_function)

    def raw_on_all(self, name: str, kind: str, attributes: Mapping[str, str]) -> None:
        """Emit an op of the transform dialect that has no method here, on all ops of a kind in the function.

        Args:
            name: The op's full name; the op has one result, which is not used.
            kind: Full name of the ops; they are none of the dispatch's.
            attributes: The op's attributes in MLIR syntax.
        """
        self._emit.op_on_all(name, kind, attributes)

    def on_buffers(self, texts: Callable[[], Sequence[str]]) -> None:
        """Run a sequence of the transform dialect on the function once it is bufferized, its vectors not yet lowered.

        Only the lowering of llvm-cpu runs such sequences.

        Args:
            texts: As in :meth:`~mlir_sched.transform_scripts.emitter.Emitter.include`.
        """
        self._on_buffers.append(texts)

    def include_on_buffers(self) -> None:
        """Emit the sequences that were to run on the bufferized function; for lowerings."""
        for texts in self._on_buffers:
            self._emit.include(texts)

    def delegate(
        self, op: LinalgOp, config: str, pipeline: str, levels: Sequence[tuple[str, Mapping[Loop, int]]]
    ) -> None:
        """Leave the dispatch to one of IREE's own pipelines.

        Args:
            op: The op to annotate with its tile sizes.
            levels: The tiling levels that the pipeline will make, outermost first: (kind of level, sizes by loop).
        """
        self.annotate("lowering_config", config, on=op)
        self.annotate("translation_info", pipeline)
        self._ops.finish(nest_of(op, levels))
