"""What is this file? The formats that can be read, by their content and ending."""

from __future__ import annotations

import contextlib
import functools
import gzip
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from isoviz import input_validation
from isoviz.catalogues import discover
from isoviz.errors import DataError, InputError, install, shortened
from isoviz.home import home, make_private
from isoviz.tables import stores
from isoviz.tables.protocol import Format, Glimpse, Holds, refused

if TYPE_CHECKING:
    import pyarrow as pa

HUB: Final = "hub:"
"""Prefix of a data set's name: `hub:owner/name`, `hub:owner/name:split` or `hub:owner/name/configuration:split`."""
GZIP: Final = ".gz"
_USUAL: Final = ("npy", "npz", "safetensors", "parquet", "csv", "tsv", "jsonl")
_START: Final = 2**18
_MOST_TIMES: Final = 100
"""Largest ratio of a file's size to that of its gzipped form."""


@functools.cache
def catalogue() -> Mapping[str, Format]:
    """All formats by slug, the usual ones first."""
    items = discover("isoviz.tables.kinds", "isoviz.formats", Format, listed_as="FORMATS")
    return MappingProxyType(
        dict(sorted(items.items(), key=lambda item: _USUAL.index(item[0]) if item[0] in _USUAL else len(_USUAL)))
    )


def endings(*holds: Holds) -> tuple[str, ...]:
    """The endings of files that hold one of these, each once; gzipped ones are allowed beside them."""
    return tuple(dict.fromkeys(end for one in catalogue().values() if one.holds in holds for end in one.endings))


def described(*holds: Holds) -> str:
    """The endings as words, for help and errors."""
    return ", ".join(endings(*holds))


def remote(name: str) -> Callable[[str], pa.Table] | None:
    """How to read a table from a source that is no file: from the form field to the whole table; None if the name is a path."""
    if name.startswith(HUB):
        from isoviz.tables import hub_rows

        return lambda field: hub_rows.table(name.removeprefix(HUB), field)
    return (lambda field: stores.table(name, field)) if stores.is_store(name) else None


def title(name: str) -> str:
    """What pages and errors call a file or another source; never its password."""
    return Path(name).name if remote(name) is None else stores.title(name)


def ending_of(name: str | Path) -> str:
    """The ending of a name in lower case: `.csv`, `.csv.gz`; empty if there is none."""
    suffixes = Path(name).suffixes
    two = suffixes[-2:] if suffixes and suffixes[-1].lower() == GZIP else suffixes[-1:]
    return "".join(two).lower()


def is_known(name: str | Path, *holds: Holds) -> bool:
    """Whether a name has the ending of a format that holds one of these."""
    return ending_of(name).removesuffix(GZIP) in endings(*holds)


def identified(path: Path, *wanted: Holds) -> Format:
    """The format of a file: what its content is, else what its ending says.

    Args:
        wanted: what the file should hold, for the error's list of endings; empty for anything.

    Raises:
        DataError: an empty file, no format, content that contradicts the ending, or a package that is missing.
    """
    name, found = shortened(path.name), _by_content(path)
    if found.advice:
        raise refused(f"'{name}' is {found.title}, which is not read; {found.advice}")
    for package in found.packages:
        if find_spec(package) is None:
            extra = "train" if package == "torch" else "formats"
            raise refused(f"reading '{name}' needs the package {package}: {install(extra)}")
    if wanted and found.holds not in wanted:
        no_table = ", which has no columns; give a table" if found.holds == "array" and "table" in wanted else ""
        raise refused(f"'{name}' is {found.title}{no_table} (allowed: {described(*wanted)})")
    return found


def _by_content(path: Path) -> Format:
    name = shortened(path.name)
    if not path.stat().st_size:
        raise refused(f"'{name}' is empty")
    glimpse = _glimpse(path)
    possible: list[Format] = []
    named: list[Format] = []
    for one in catalogue().values():
        answer = one.recognise(glimpse)
        if answer:
            return one
        if glimpse.ending in one.endings:
            named.append(one)
            possible += [one] if answer is None else []
    if possible:
        return possible[0]
    if named:
        raise refused(f"'{name}' is not {named[0].title}: its content is {glimpse.words}")
    content = f" and holds {glimpse.words}" if glimpse.members else ""
    every = described("array", "vectors", "table", "texts")
    raise refused(f"'{name}' ends in '{shortened(glimpse.ending) or 'nothing'}'{content} (allowed: {every})")


def _glimpse(path: Path) -> Glimpse:
    with path.open("rb") as stream:
        start = stream.read(_START)
    ending = ending_of(path)
    if start.startswith(b"\x1f\x8b"):
        ending = ending.removesuffix(GZIP)
        with contextlib.suppress(zlib.error):
            start = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(start, _START)
    members: tuple[str, ...] = ()
    if start.startswith(b"PK"):
        with contextlib.suppress(Exception), zipfile.ZipFile(path) as archive:  # a damaged one has none
            members = tuple(archive.namelist())
    return Glimpse(ending, start, members)


@contextlib.contextmanager
def unpacked(path: Path, format: Format) -> Iterator[Path]:
    """The file, or a temporary copy without compression of a gzipped one."""
    with path.open("rb") as stream:
        packed = stream.read(2) == b"\x1f\x8b"
    if not packed:
        yield path
        return
    if not format.compressible:
        raise refused(f"'{shortened(path.name)}' is gzipped; unpack it")
    make_private(home())
    with tempfile.TemporaryDirectory(dir=home(), prefix=".unpacked-") as folder:
        plain = Path(folder) / path.name[: -len(GZIP)] if ending_of(path).endswith(GZIP) else Path(folder) / path.name
        most = _MOST_TIMES * path.stat().st_size + 2**20
        try:
            with gzip.open(path) as source, plain.open("wb") as target:
                while block := source.read(2**20):
                    if target.tell() > most:
                        raise refused(f"'{shortened(path.name)}' unpacks to more than {_MOST_TIMES} times its size")
                    target.write(block)
        except (OSError, EOFError, zlib.error) as error:
            raise refused(f"'{shortened(path.name)}' cannot be unpacked: {error}") from None
        yield plain


@contextlib.contextmanager
def parsing(path: Path, format: Format) -> Iterator[None]:
    """Wrap the parsing of a file: every exception becomes a `DataError` about the file."""
    shown = f"'{shortened(path.name)}'"
    with input_validation.parsing(f"{shown} cannot be read as {format.title}", "data", DataError):
        try:
            yield
        except UnicodeDecodeError:
            raise refused(f"{shown} is not UTF-8; save it as UTF-8") from None


@contextlib.contextmanager
def naming_field(field: str) -> Iterator[None]:
    """Make the readers' errors, which are about `data`, refer to this field."""
    try:
        yield
    except DataError as error:
        message = str(error).removeprefix("data: ")
        raise InputError(
            message if message.startswith(f"{field}: ") else f"{field}: {message}", field=field, advice=error.advice
        ) from None
