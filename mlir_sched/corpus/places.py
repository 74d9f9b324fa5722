"""Where sources come from: the stores that a run may read, and what is shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mlir_sched.corpus.corpus import Corpus
from mlir_sched.corpus.files import SHIPPED, FiledTask, files_in
from mlir_sched.corpus.sources import Place
from mlir_sched.database import RecordStore
from mlir_sched.database.record import context_parts
from mlir_sched.errors import UserError

PATIENCE_S = 2.0
"""Seconds for which another process that holds a store is waited for: a writer of one round is done by then."""


@contextmanager
def opened_corpora(
    run: RecordStore,
    *,
    generation: int,
    fresh: bool,
    given: str,
    user_file: Path | None,
    note: Callable[[str], None],
    shipped: Path = SHIPPED,
) -> Iterator[Mapping[Place, Corpus]]:
    """Open all that a run may begin from, as long as it is read; those that count first come first.

    Args:
        run: The run's own store, of which nothing counts from before the user asked for a fresh start.
        generation: How often that was.
        fresh: Whether this run is a fresh start, so that no store counts.
        given: A further store; empty for none.
        user_file: The user's store; None for none, and it need not be there.
        note: Is told what cannot be read of the user's store and of what is shipped.
        shipped: Folder of what is shipped.

    Raises:
        UserError: Another store cannot be read.
    """
    corpora = dict[Place, Corpus]()
    with ExitStack() as opened:
        if not fresh:
            corpora[Place.RUN] = _of_generation(Corpus.of_store(run), generation)
            if given:
                corpora[Place.GIVEN] = Corpus.of_store(opened.enter_context(given_store(given)))
            try:
                users = users_beside(run, user_file)
                if users is not None:
                    corpora[Place.USER] = Corpus.of_store(opened.enter_context(users))
            except (UserError, OSError) as error:
                note(f"the run does not begin from your store over all runs: {error}")
        corpora[Place.SHIPPED] = shipped_corpus(note, shipped)
        yield corpora


def users_beside(run: RecordStore, user_file: Path | None) -> RecordStore | None:
    """Open the user's store to read it beside a run's own; None where there is none but the run's own.

    Raises:
        UserError: It is damaged or none, or another process holds it.
        OSError: Its folder may not be entered.
    """
    if user_file is None or not user_file.exists() or (run.file and user_file.samefile(run.file)):
        return None
    return RecordStore.open(user_file, read_only=True, timeout_s=PATIENCE_S)


def given_store(place: str) -> RecordStore:
    """Open a store that the user gave to begin from; it stays as it is.

    Raises:
        UserError: It is missing, damaged or none, or another process holds it.
    """
    return RecordStore.open(place, read_only=True, timeout_s=PATIENCE_S)


def shipped_corpus(note: Callable[[str], None], folder: Path) -> Corpus:
    """Return the tasks of a folder of what comes with mlir-sched, as far as their files can be read.

    Args:
        note: Is told which cannot, or that there are none.
    """
    tasks = list[FiledTask]()
    paths = files_in(folder)
    for path in paths:
        try:
            tasks.append(FiledTask.of(path))
        except UserError as error:
            note(f"a file of the shipped candidates is left out: {error}")
    if not paths:
        note(f"there are no shipped candidates in {folder}")
    return Corpus(tuple(tasks))


def _of_generation(corpus: Corpus, generation: int) -> Corpus:
    return Corpus(tuple(t for t in corpus.known if context_parts(t.context).get("generation") == str(generation)))
