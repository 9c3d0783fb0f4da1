"""What a format of files declares, and what its file is recognised by."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import DataError, listed

if TYPE_CHECKING:
    import pyarrow as pa

_NO_TEXT: Final = re.compile("[\0-\x08\x0e-\x1f\ufffd]")
Holds = Literal["array", "vectors", "table", "texts", "nothing"]
"""One array, or several with names; a table of words and their vectors; any table; one text per line; nothing that can be read."""


@dataclass(frozen=True)
class Glimpse:
    """What a format may look at to recognise a file.

    Attributes:
        ending: in lower case, without `.gz`.
        start: the first bytes, unpacked if the file is gzipped.
        members: names in a zip archive.
    """

    ending: str
    start: bytes
    members: tuple[str, ...] = ()

    @cached_property
    def text(self) -> str | None:
        """The first bytes as text; None if they are none."""
        text = self.start.decode("utf-8-sig", errors="replace")
        return None if _NO_TEXT.search(text, 0, max(1, len(text) - 4)) else text  # a character may be cut at the end

    @property
    def words(self) -> str:
        """What the content is, for an error."""
        if self.members:
            return f"a zip archive ({listed(self.members, 60)}); unpack it"
        return "text" if self.text is not None else "binary data of another kind"


@dataclass(frozen=True)
class Format:
    """A format of files. It gives an `array`, or a table: whole (`table`), in pieces (`batches`), or both.

    Attributes:
        slug: name in the catalogue.
        title: name in sentences: `CSV`, `a NumPy array`.
        endings: of file names, the usual one first.
        recognise: whether a file is one: True or False by its content, which beats the ending; None if only the ending says so.
        holds: see `Holds`. A table of `vectors` has a column `vector` of lists, and `id` or `text`.
        vectors, texts: what the docs say that a file gives of each; empty for none.
        shapes: path → names and shapes of the arrays in the file, for `array`. None: the file is one array.
        array: path and the array's name → the array, of any shape, possibly a read-only memory map.
        table: path, number of first rows (None for all), and columns in lower case whose cells stay as they are written.
            None: the table is that of its batches.
        batches: path, columns (None for all), rows of a piece. Memory stays bounded by a piece.
        compressible: a text format, which is read from .gz too.
        packages: modules that reading needs beside pyarrow and pandas, and the extra of isoviz that installs them.
        advice: of a kind of file that is never read: what to do instead.
    """

    slug: str
    title: str
    endings: tuple[str, ...]
    recognise: Callable[[Glimpse], bool | None]
    holds: Holds = "array"
    vectors: str = ""
    texts: str = ""
    shapes: Callable[[Path], Mapping[str, tuple[int, ...]]] | None = None
    array: Callable[[Path, str], NDArray[Any]] | None = None
    table: Callable[[Path, int | None, Collection[str]], pa.Table] | None = None
    batches: Callable[[Path, list[str] | None, int], Iterator[pa.Table]] | None = None
    compressible: bool = False
    packages: tuple[str, ...] = ()
    advice: str = ""


def by_ending(glimpse: Glimpse) -> None:
    """`recognise` of a format whose content has no mark."""


def starts_with(*marks: bytes) -> Callable[[Glimpse], bool]:
    """`recognise` of a format whose files begin with one of these bytes."""
    return lambda glimpse: glimpse.start.startswith(marks)


def refused(message: str) -> DataError:
    """The error of a file, which `formats.naming_field` gives the field's name."""
    return DataError.at("data", message)


def vectors_table(points: NDArray[Any], known: Mapping[str, Any]) -> pa.Table:
    """A table of vectors (n, d) beside known columns, in the contract of `Format.holds`."""
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(points).reshape(-1))
    return pa.table({**known, "vector": pa.FixedSizeListArray.from_arrays(flat, max(1, points.shape[1]))})
