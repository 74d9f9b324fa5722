"""Moves a proven result into the tuned folder, so that the folder holds one whole result at every instant.

``flags.txt`` names the library, and a new result changes both files. A crash between two replacements would leave the
flags of one result with the scripts of another. The new library is therefore written under a temporary name first, and
``flags.txt`` is replaced in one step by a file that names the new library. Only then do both get their usual names::

    library.<emission>.mlir   new      not named yet: the earlier result is in use
    flags.txt                 new      names the line above: the new result is in use from here on
    library.mlir              new
    flags.txt                 new      names library.mlir
    summary.json              new      names its library by the emission; a reader ignores one that names another

When the new result has no library, the earlier library first gets a temporary name in the same way. The report of the
earlier result is removed at first, so that no report lies beside another result. The folder's
manifest knows every content before it is written (``manifest.py``).
"""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from mlir_sched.attributes import EMISSION
from mlir_sched.compiler.flags import (
    library_flags,
    library_in,
    read_response_file,
    without_library,
    write_response_file,
)
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.manifest import ResultWriter
from mlir_sched.tuned_folder.names import CURVE, FLAGS, LIBRARY, REPORT, SUMMARY

_EMISSION = re.compile(rf'\b{re.escape(EMISSION)} = "([0-9a-f]+)"')


@dataclass(frozen=True)
class EmittedFiles:
    """The files of a result that is to be installed in a tuned folder.

    Attributes:
        library: Text of the library; empty when nothing needs one.
        flags: Compiler flags without those that name the library.
    """

    library: str
    flags: tuple[str, ...]

    @property
    def emission(self) -> str:
        """Name of the emission, which the library states; empty without a library."""
        return emission_of(self.library)

    def response(self, library: Path) -> str:
        """Return the text of ``flags.txt`` for a library at a path."""
        return write_response_file([*self.flags, *(library_flags(library) if self.library else ())])


def emission_of(library: str) -> str:
    """Return the name of the emission that a library belongs to; empty when the library states none."""
    found = _EMISSION.search(library)
    return found[1] if found else ""


def name_of_emission(library: str, flags: tuple[str, ...]) -> str:
    """Return a name for an emission: a digest of the flags and of the library, which does not state the name yet."""
    return hashlib.sha256("\0".join((library, *flags)).encode()).hexdigest()[:12]


def install(folder: Path, claim: Claim, files: EmittedFiles, summary: str) -> None:
    """Put a proven result into the tuned folder; a process killed at any instant leaves the earlier or the new one.

    Args:
        folder: The folder, by its absolute path.
        claim: What the result is made from, and what it may replace.
        files: Library and flags.
        summary: Text of ``summary.json``.

    Raises:
        UserError: A file that the result would replace is not ours or was edited; nothing was changed.
    """
    claim.require(folder)
    writer = ResultWriter.of(folder, claim.source)
    for shown in (CURVE, REPORT):
        writer.remove(shown)
    library = folder / LIBRARY
    if files.library:
        _use_temporary_library(writer, files)
        writer.write(LIBRARY, files.library.encode())
    elif library.exists():
        if (earlier := _using_library(folder)) is not None:
            _use_temporary_library(writer, earlier)
        writer.remove(LIBRARY)
    writer.write(FLAGS, files.response(library).encode())
    writer.write(SUMMARY, summary.encode())
    writer.finish()


def _use_temporary_library(writer: ResultWriter, files: EmittedFiles) -> None:
    """Write the library under a temporary name, and flags that name it, so that ``library.mlir`` can be changed."""
    temporary = f"library.{files.emission or 'earlier'}.mlir"
    writer.write(temporary, files.library.encode())
    writer.write(FLAGS, files.response(writer.folder / temporary).encode())


def _using_library(folder: Path) -> EmittedFiles | None:
    """Return the installed library and flags when ``flags.txt`` names ``library.mlir``; None when it does not."""
    try:
        flags = read_response_file((folder / FLAGS).read_text())
    except (OSError, ValueError):
        return None
    if library_in(flags) != folder / LIBRARY:
        return None
    return EmittedFiles((folder / LIBRARY).read_text(), without_library(flags))
