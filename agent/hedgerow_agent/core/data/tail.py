"""A file of lines that may still be written to, read to its end and then line by line.

Nothing here waits by itself or knows a clock: whoever reads says what to do at the end. A file that can be read again
is known by a mark, so that reading goes on where it was, and only there.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hedgerow_agent.core.data.streams import START, Place
from hedgerow_agent.core.data.text import LONGEST_LINE, Numbers, numbers_in
from hedgerow_agent.core.errors import BadInput

_COMPARED_BYTES = 4096
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Line:
    """One line, where it begins, and the number of bytes up to its end; too long a line has no text."""

    place: Place
    end: int
    text: bytes | None

    def numbers(self) -> Numbers:
        """Return the numbers of the line, or raise a sentence."""
        if self.text is None:
            raise BadInput(f"It has more than {LONGEST_LINE} characters; is this a text file?")
        try:
            return numbers_in(self.text.decode())
        except ValueError as error:
            found = str(error)[:_SHOWN_CHARACTERS]
            raise BadInput(f"It is not a row of numbers ({found}); write numbers with commas between them.") from None


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file and how to know the file again: its inode, and a digest of bytes that end at `end`."""

    inode: int
    place: Place
    end: int
    sha256: str


class Tail:
    """An open file of lines; only a regular one can be gone back in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._file = path.open("rb")
            status = os.fstat(self._file.fileno())
        except OSError as error:
            raise self._unreadable(error) from None
        self._inode = status.st_ino if stat.S_ISREG(status.st_mode) else None
        self._place = START

    def mark(self, place: Place, end: int) -> Mark | None:
        """Return the mark of a place whose lines were read up to `end`, or None if nobody can come back to it."""
        return None if self._inode is None else Mark(self._inode, place, end, self._digest(end))

    def go_to(self, mark: Mark) -> bool:
        """Go on at a mark; return whether this is the file it was made in."""
        if self._inode != mark.inode or self._digest(mark.end) != mark.sha256:
            return False
        self._place = mark.place
        self._file.seek(mark.place.byte)
        return True

    def lines(self, more: Callable[[bool], bool]) -> Iterator[Line]:
        """Yield every whole line that is not empty; a first line of names is passed over.

        At the end `more` is asked, and told whether anything came since it was asked last: true means to look again,
        false that nothing will come. A last line without an end is being written and waits.
        """
        try:
            for line in self._whole_lines(more):
                if line.text is None or (line.text.strip() and not _is_names(line)):
                    yield line
        except OSError as error:
            raise self._unreadable(error) from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _whole_lines(self, more: Callable[[bool], bool]) -> Iterator[Line]:
        text, came, too_long = b"", False, False
        end = self._place.byte
        while True:
            piece = self._file.readline(LONGEST_LINE - len(text))
            came = came or bool(piece)
            if not piece:
                if not more(came):
                    return
                came = False
                continue
            text, end = text + piece, end + len(piece)
            whole = text.endswith(b"\n")
            if not whole and len(text) < LONGEST_LINE:
                continue
            # What is too long is told at once and not kept; its end, whenever it comes, belongs to it.
            if not (too_long and whole):
                yield Line(self._place, end, text if whole else None)
            text, too_long = b"", not whole
            self._place = Place(end, self._place.line + whole)

    def _digest(self, end: int) -> str:
        first = max(0, end - _COMPARED_BYTES)
        try:
            return hashlib.sha256(os.pread(self._file.fileno(), end - first, first)).hexdigest()
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> BadInput:
        return BadInput(f"The stream {self._path} cannot be read: {error.strerror}.")


def _is_names(line: Line) -> bool:
    """Return whether this is the first line and names columns."""
    if line.place.line > 1:
        return False
    try:
        line.numbers()
    except BadInput:
        return True
    return False
