"""Reads a tuned folder back."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mlir_sched.compiler.flags import library_in, read_response_file, without_library
from mlir_sched.database.serialisation import load
from mlir_sched.errors import UserError
from mlir_sched.outcome import LoadCost
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tuned_folder.installation import emission_of
from mlir_sched.tuned_folder.names import LIBRARY, SUMMARY
from mlir_sched.tuned_folder.result import Loading
from mlir_sched.tuned_folder.transferred import TransferResult

_FIELDS: Mapping[tuple[str, ...], type | tuple[type, ...]] = {
    ("target",): str,
    ("threads",): int,
    ("parameters",): list,
    ("flags",): list,
    ("dispatches",): list,
    ("left_out",): dict,
    ("program",): dict,
    ("program", "decisions"): dict,
    ("program", "gained"): bool,
    ("program", "device"): str,
    ("program", "tuned"): dict,
    ("program", "tuned", "ratio"): (int, float),
}
"""The fields of a summary that are read, each with the type it must have when it is present."""


@dataclass(frozen=True)
class TunedFolder:
    """A folder that ``tune`` wrote.

    Attributes:
        flags: Compiler flags without those that name the library.
        library: Text of the library; empty when no dispatch is tuned.
        library_file: Path of the library in the folder.
        library_in_flags: The library that ``flags.txt`` names; None when it names none.
        summary: ``summary.json``; empty when it is missing or belongs to another emission than the library.
    """

    path: Path
    flags: tuple[str, ...]
    library: str
    library_file: Path
    library_in_flags: Path | None
    summary: Mapping[str, Any]

    @property
    def problem(self) -> str:
        """Why ``iree-compile @flags.txt`` would not use this folder's library; empty when it would."""
        own = self.library_file
        if self.library and self.library_in_flags is None:
            return f"{self.path / 'flags.txt'} does not name the library {own}"
        if self.library_in_flags is not None and not _same(self.library_in_flags, own):
            return (
                f"{self.path / 'flags.txt'} names the library {self.library_in_flags}, not {own}: "
                f"the folder was moved; run mlir-sched relocate {self.path}"
            )
        return ""

    @property
    def measured_flags(self) -> tuple[str, ...]:
        """The flags that the folder's figures were measured with, as the summary has them, else those it has."""
        found = self.summary.get("flags")
        return tuple(map(str, found)) if isinstance(found, list) else self.flags

    @property
    def emitted_decisions(self) -> Mapping[str, Value] | None:
        """The decisions about the program that it was emitted with; None where the summary has none."""
        found = self._program.get("decisions")
        return found if isinstance(found, Mapping) and found else None

    def library_to_use(self) -> Path | None:
        """Return the library's absolute path; None when the folder has no library and needs none.

        Raises:
            UserError: The flags name a library, and the folder has none.
        """
        if self.library:
            return self.library_file.resolve()
        if self.library_in_flags is not None:
            raise UserError(f"{self.path}: its library {self.library_file.name} is missing; restore it, or tune again")
        return None

    @property
    def device(self) -> str:
        """The IREE device that the program was tuned to run on; empty where the summary does not say."""
        return str(self._program.get("device") or "")

    @property
    def threads(self) -> int:
        """The number of threads that the program was tuned for; 1 where the summary does not say."""
        found = self.summary.get("threads")
        return found if isinstance(found, int) else 1

    @property
    def loading(self) -> Loading | None:
        """What loading programs took when the folder was written; None where the summary does not say."""
        try:
            found = self._program["loading"]
            return Loading(*(LoadCost.of(found[name]) for name in ("untuned", "tuned")))
        except (KeyError, TypeError, ValueError, OverflowError):
            return None

    @property
    def transfer(self) -> TransferResult | None:
        """What the search began from; None where that was nothing, or the summary does not say."""
        found = self.summary.get("transfer")
        try:
            return load(TransferResult, json.dumps(found)) if found is not None else None
        except ValueError:
            return None

    @property
    def _program(self) -> Mapping[str, Any]:
        found = self.summary.get("program")
        return found if isinstance(found, Mapping) else {}


def read_tuned_folder(path: Path) -> TunedFolder:
    """Read a tuned folder.

    Raises:
        UserError: The folder is missing or is no tuned folder, or a file of it cannot be read.
    """
    if not path.is_dir():
        raise UserError(f"{path}: " + ("not a folder" if path.exists() else "no such folder"))
    if not (path / "flags.txt").is_file():
        raise UserError(f"{path}: not a tuned folder: it has no flags.txt; mlir-sched tune writes one")
    try:
        flags = read_response_file(read_text(path / "flags.txt"))
    except ValueError as error:
        raise UserError(f"{path / 'flags.txt'}: {str(error).lower()}; restore it, or tune again") from error
    library = _library_file(path, library_in(flags))
    text = read_text(library) if library.is_file() else ""
    summary = _summary(path / SUMMARY)
    of_another = emission_of(text) != summary.get("emission", emission_of(text))
    return TunedFolder(
        path=path,
        flags=without_library(flags),
        library=text,
        library_file=library,
        library_in_flags=library_in(flags),
        summary={} if of_another else summary,
    )


def require_usable_fields(summary: Mapping[str, Any]) -> None:
    """Refuse a summary, which anybody may have edited, with a field of another type than ``tune`` writes.

    Fields may be missing.

    Raises:
        UserError: The summary has such a field.
    """
    for path, kind in _FIELDS.items():
        value: Any = summary
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None and not isinstance(value, kind):
            raise _damaged(path, value)
    for text in summary.get("parameters") or ():
        if not isinstance(text, str):
            raise _damaged(("parameters",), text)


def target_name(origin: Mapping[str, str]) -> str:
    """Return the target that the provenance of a sequence names; empty when it names none."""
    return origin.get("target", "").partition(" ")[0]


def require_target(
    folder: TunedFolder, target: Target, sequences: Mapping[str, Mapping[str, str]], processor: Sequence[str] = ()
) -> None:
    """Refuse a folder that was tuned for another target.

    Args:
        folder: The folder.
        target: The target that the folder is to be used for.
        sequences: The provenance of its library's sequences, by symbol.
        processor: Options whose values may differ.

    Raises:
        UserError: Its flags or its library are for another target.
    """
    for symbol, origin in sequences.items():
        name = target_name(origin)
        if name not in ("", target.name):
            raise UserError(
                f"{folder.library_file}: @{symbol} was tuned for the target {name}, not for {target.name}; "
                "tune again for this target"
            )
    own = {flag.partition("=")[0]: flag for flag in folder.flags}
    for flag in target.flags:
        name = flag.partition("=")[0]
        found = own.get(name, "nothing")
        if found != flag and not (name in processor and processor[0] in own):
            raise UserError(
                f"{folder.path / 'flags.txt'} has {found} where the target {target.name} of this machine needs {flag}: "
                "the folder is for another target; tune again for this one"
            )


def on_processor_of(folder: TunedFolder, target: Target, processor: Sequence[str]) -> TunedFolder:
    """Return a folder with the flags of a target in place of those that select the folder's own one.

    Args:
        folder: The folder.
        target: The target, which differs from the folder's own at most in its processor.
        processor: Options that name the processor.
    """
    names = {flag.partition("=")[0] for flag in target.flags} | {*processor}
    others = (flag for flag in folder.flags if flag.partition("=")[0] not in names)
    return replace(folder, flags=(*target.flags, *others))


def read_text(path: Path) -> str:
    """Return the text of a file.

    Raises:
        UserError: The file cannot be read, or is not text.
    """
    try:
        return path.read_text()
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file") from error


def _library_file(path: Path, named: Path | None) -> Path:
    """Return the path of a folder's library: the file in it that its flags name, else ``library.mlir``.

    The flags name another file than ``library.mlir`` after an installation that was killed before its end.
    """
    own = path / LIBRARY
    return own if named is None or not _same(named.parent, path) else own.with_name(named.name)


def _summary(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        return {}
    try:
        data = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not JSON: {error}; restore it, or remove it") from error
    if not isinstance(data, dict):
        raise UserError(f"{path}: not a summary of mlir-sched; restore it, or remove it")
    return data


def _same(first: Path, second: Path) -> bool:
    return first.exists() and second.exists() and first.samefile(second)


def _damaged(path: tuple[str, ...], value: object) -> UserError:
    return UserError(f"summary.json is damaged: {'.'.join(path)} is {value!r}; restore it, or remove it")
