"""Stores of vectors, named by URL, one file each: `postgresql://host/db?table=docs`, `chroma:///folder?collection=docs`.

    protocol.py  what a store declares, and the parts of an address

Everything reads and never writes. Packages add stores in the entry point group `isoviz.stores`. Of a store with more than `MOST`
rows, so many are drawn at random unless the address says otherwise: `sample=10000`, `sample=all`, `seed=1`. In a process that is
restricted to some folders (`isoviz.allowed_paths`), a file must be in one of them, and a server on the operator's list.
"""

from __future__ import annotations

import functools
import importlib
import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import parse_qsl, quote

from isoviz import allowed_paths, input_validation
from isoviz.catalogues import discover
from isoviz.errors import InputError, install, listed, shortened, unknown_name
from isoviz.tables.stores.protocol import Address, Store

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MOST", "catalogue", "is_store", "opened", "reporting", "table", "title", "with_options"]

MOST: Final = 50_000
"""Rows that are read unless the address says otherwise."""
TITLE, VECTORS = b"store", b"vectors"
"""Metadata of a table: what it is called, and its column of vectors."""
_COMMON: Final = ("column", "sample", "seed")
_ALIASES: Final = {"postgres": "postgresql"}
_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_progress: ContextVar[Callable[[int, int, str], None]] = ContextVar("progress", default=lambda *_: None)


@functools.cache
def catalogue() -> Mapping[str, type[Store]]:
    """The stores by scheme."""
    return discover(__name__, "isoviz.stores", Store)


def is_store(name: str) -> bool:
    """Whether a name is a URL; with a file's scheme also without the slashes, such as `duckdb:vectors.duckdb`."""
    if _URL.match(name):
        return True
    store = catalogue().get(name.partition(":")[0]) if ":" in name[:40] else None
    return store is not None and store.local is not None


def title(name: str) -> str:
    """What pages and reports call an address: without user, password and folders. Another name stays as it is."""
    if not is_store(name):
        return name
    try:
        return Address.parse(name).title
    except ValueError:
        return f"{name.partition(':')[0]}:…"


def with_options(name: str, **options: object) -> str:
    """The address with these options, except those that are None or that it has. Raises `InputError` if it is no address."""
    given = {option: value for option, value in options.items() if value is not None}
    if given and not is_store(name):
        raise InputError.at("sample", "only for rows of a database, named by a URL")
    present = dict(parse_qsl(name.partition("?")[2], keep_blank_values=True))
    for option, value in given.items():
        if option not in present:
            name += f"{'&' if '?' in name else '?'}{option}={quote(str(value), safe='')}"
    return name


@contextmanager
def reporting(progress: Callable[[int, int, str], None]) -> Iterator[None]:
    """Report rows as they are read: done, total, what."""
    token = _progress.set(progress)
    try:
        yield
    finally:
        _progress.reset(token)


class Opened(NamedTuple):
    """One set of rows in an open store: the column of its vectors, what it is called (and which part was drawn), and its rows."""

    column: str
    title: str
    pieces: Iterator[pa.Table]


@contextmanager
def opened(name: str, field: str) -> Iterator[Opened]:
    """The rows of an address. The pieces must be read before the context ends.

    Raises:
        InputError: the address, its table or column is invalid or not allowed, a package is missing, or the store cannot be read.
    """
    address, store = _parsed(name, field)
    with _reading(address, store, field), ExitStack() as closing:
        path = None
        if store.local and not address.host:
            path = (
                input_validation.file(address.path, field)
                if store.local == "file"
                else input_validation.folder(address.path, field)
            )
            if path is None:
                raise InputError.at(field, f"no folder '{shortened(address.path)}'")
        else:
            allowed_paths.host(address.host, address.port or store.port, store.port, field)
        for package in store.packages:
            importlib.import_module(package)
            logging.getLogger(package).setLevel(logging.CRITICAL)  # errors arrive as exceptions, logs with tracebacks
        yield _rows(store(address, path, closing), address, field)


@contextmanager
def _reading(address: Address, store: type[Store], field: str) -> Iterator[None]:
    """Errors of the client as errors about the address, without user and password."""
    try:
        with input_validation.parsing(f"{shortened(address.title)} cannot be read", field):
            yield
    except ModuleNotFoundError as missing:
        advice = f"run `{install(store.extra)}`"
        raise InputError.at(field, f"reading {store.title} needs the package {missing.name}; {advice}") from None
    except InputError as error:
        text = str(error).replace(f'"{address.user}"', "…")
        for secret in filter(None, (address.password, os.environ.get(store.secret))):
            text = text.replace(secret, "…")
        if text != str(error):
            raise InputError(text, field=error.field, advice=error.advice) from None
        raise


def _rows(store: Store, address: Address, field: str) -> Opened:
    named = address.options.get(store.holds) or (
        address.path if address.host and store.path_names == store.holds else ""
    )
    name = _one_of(store.holds, store.names(), named.removeprefix(store.schema), field)
    column = _one_of("column", store.vectors(name), address.options.get("column", ""), field)
    rows, seed = store.count(name), _whole(address, "seed", 0, field)
    most = rows if address.options.get("sample") == "all" else _whole(address, "sample", MOST, field)
    shown = address.title if name in address.title else f"{address.title}, {name}"
    if rows > most:
        shown += f", {most:,} of {rows:,} rows at random (seed {seed})"
        warnings.warn(f"{field}: {shown}", stacklevel=2)
    pieces = store.batches(name, column, most if rows > most else None, seed)
    return Opened(column, shown, _complete(pieces, column, min(most, rows), shown, field))


def _one_of(what: str, names: list[str], wanted: str, field: str) -> str:
    if wanted and wanted not in names:
        raise unknown_name(f"{what} of vectors", wanted, names, field=field)
    if not wanted and len(names) != 1:
        problem = f"name one, as ?{what}=NAME (it has: {listed(names)})" if names else "it has none"
        raise InputError.at(field, f"which {what} of vectors? {problem}")
    return wanted or names[0]


def _complete(batches: Iterator[pa.Table], column: str, total: int, shown: str, field: str) -> Iterator[pa.Table]:
    report, done, left_out = _progress.get(), 0, 0
    for batch in batches:
        done += len(batch)
        report(min(done, total), total, "reading rows")
        complete = batch.filter(batch[column].is_valid())
        left_out += len(batch) - len(complete)
        yield complete
    if left_out:
        warnings.warn(f"{field}: {shown}: {left_out:,} rows without a vector are left out", stacklevel=2)


def table(name: str, field: str) -> pa.Table:
    """The rows of an address as one table, whose metadata name it and its column of vectors. Raises like `opened`."""
    import pyarrow as pa

    with opened(name, field) as rows:
        pieces = list(rows.pieces)
        if not pieces:
            raise InputError.at(field, f"{shortened(rows.title)} has no rows")
        try:
            whole = pa.concat_tables(pieces, promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError):  # a column has texts in some rows and numbers in others
            as_texts = [
                pa.table({n: piece[n] if n == rows.column else piece[n].cast(pa.string()) for n in piece.column_names})
                for piece in pieces
            ]
            whole = pa.concat_tables(as_texts, promote_options="permissive")
        return whole.replace_schema_metadata({TITLE: rows.title.encode(), VECTORS: rows.column.encode()})


def _parsed(name: str, field: str) -> tuple[Address, type[Store]]:
    scheme = name.partition(":")[0].lower().partition("+")[0]
    store = catalogue().get(_ALIASES.get(scheme, scheme))
    if store is None:
        raise unknown_name("store", scheme, catalogue(), field=field)
    try:
        address = Address.parse(name)
    except ValueError:
        advice = "write %40 for @, %3A for :, %2F for /, %3F for ? and %23 for # in a password or a name"
        raise InputError.at(field, f"expected an address such as {store.examples[0]}; {advice}") from None
    if (address.host and store.port is None) or (store.local and not address.host and not address.path):
        expected = f"expected an address such as {' or '.join(store.examples)}"
        raise InputError.at(field, f"{store.title}: {expected}")
    allowed = dict.fromkeys(filter(None, (store.holds, store.path_names, *_COMMON, *store.options)))
    if unknown := sorted(set(address.options) - set(allowed)):
        raise unknown_name("option of the address", unknown[0], allowed, field=field)
    return address, store


def _whole(address: Address, option: str, default: int, field: str) -> int:
    text = address.options.get(option, str(default))
    if not text.isdecimal() or not text.isascii() or len(text) > 9 or (option == "sample" and int(text) < 2):
        raise InputError.at(field, f"{option}: expected a whole number, got '{shortened(text)}'")
    return int(text)
