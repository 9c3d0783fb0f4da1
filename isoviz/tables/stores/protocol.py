"""What a store of vectors declares, and the address that names one."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit
from urllib.request import url2pathname

from isoviz.home import home, make_private
from isoviz.metrics.cloud import draw

if TYPE_CHECKING:
    import pyarrow as pa

ROWS: Final = 1_000
"""Rows that are asked for at a time."""
PATIENCE: Final = 10
"""Seconds to wait for a server."""
_SCALARS: Final = (str, int, float, bool, datetime.datetime, datetime.date)
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9._-]*[a-z0-9])?|[0-9a-f:.]*:[0-9a-f:.]*", re.ASCII)


@dataclass(frozen=True)
class Address:
    """A store's address, decoded.

    Attributes:
        host: of a server, in lower case; empty for a file or a folder, and for a server's own default.
        port: of a server, if the address names one.
        path: of a file or folder; of a server, what follows its name, without slashes.
        user, password: of a server.
        options: what follows the question mark.
    """

    scheme: str
    host: str
    port: int | None
    path: str
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> Address:
        """The parts of a URL. Raises a `ValueError` without any part of the text, which may hold a password."""
        try:
            parts = urlsplit(text)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            raise ValueError("malformed") from None
        # an '@' that is not encoded belongs to a password with a '/', '?' or '#' that is not encoded either
        after = parts.path + parts.query if parts.netloc else ""
        if parts.fragment or "@" in after or (host and not _HOST.fullmatch(host)) or (parts.netloc and not host):
            raise ValueError("malformed")
        path = unquote(parts.path).strip("/") if host else re.sub("^//+", "/", url2pathname(parts.path))
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if not "".join([path, user, password, *options, *options.values()]).isprintable():
            raise ValueError("malformed")
        return cls(parts.scheme.partition("+")[0], host, port, path, user, password, options)

    def secret(self, variable: str) -> str | None:
        """The password or key, from the address or the environment."""
        return self.password or os.environ.get(variable) or None

    def url(self, usual: int) -> str:
        """The server's HTTP address, with its usual port."""
        scheme = "https" if self.options.get("tls") else "http"
        return f"{scheme}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port or usual}"

    @property
    def title(self) -> str:
        """The address without user, password and folders."""
        kept = "&".join(f"{name}={value}" for name, value in self.options.items() if name not in ("sample", "seed"))
        port = "" if self.port is None else f":{self.port}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        place = f"{self.scheme}://{host}{port}/{self.path}" if self.host else f"{self.scheme}:{Path(self.path).name}"
        return f"{place}?{kept}" if kept else place


class Store:
    """A store of vectors, opened through its official client for reading only.

    `closing` of `__init__` ends what was opened. Rows are tables with one column of lists, the vectors, beside ids, texts and other
    columns with one value per row.

    Attributes:
        slug: scheme of its addresses.
        packages: modules of its client, and the `extra` of isoviz that installs them.
        examples: addresses: of a server, of a file or a folder.
        holds: what the store calls a set of rows, and the option that names one.
        samples: how it draws a sample.
        port: usual port; None if there is no server.
        local: what a path of this machine names; None if there are only servers.
        path_names: the option that the path of a server's address stands for.
        secret: environment variable for a password or key that the address does not give.
        options: further options.
        schema: that its names leave out.
        tables: sets of rows → columns of vectors, where one query tells them all; other stores have their own `names` and `vectors`.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    extra: ClassVar[str]
    examples: ClassVar[tuple[str, ...]]
    holds: ClassVar[str]
    samples: ClassVar[str]
    port: ClassVar[int | None] = None
    local: ClassVar[Literal["file", "folder"] | None] = None
    path_names: ClassVar[str] = ""
    secret: ClassVar[str] = ""
    options: ClassVar[tuple[str, ...]] = ()
    schema: ClassVar[str] = ""
    tables: dict[str, list[str]]

    def __init__(self, address: Address, path: Path | None, closing: ExitStack) -> None:
        raise NotImplementedError

    def names(self) -> list[str]:
        """Sets of rows with vectors."""
        return [name for name, columns in self.tables.items() if columns]

    def vectors(self, name: str) -> list[str]:
        """Columns of vectors in one of them."""
        return self.tables[name]

    def count(self, name: str) -> int:
        """Rows."""
        raise NotImplementedError

    def keys(self, name: str) -> Sequence[Any]:
        """What identifies each row, in an order that stays the same."""
        raise NotImplementedError

    def take(self, name: str, column: str, keys: Sequence[Any]) -> pa.Table:
        """The rows with these keys."""
        raise NotImplementedError

    def batches(self, name: str, column: str, sample: int | None, seed: int) -> Iterator[pa.Table]:
        """All rows, or so many at random, the same ones for a seed."""
        keys = self.keys(name)
        if sample is not None:
            keys = [keys[place] for place in draw(len(keys), sample, seed)]
        for start in range(0, len(keys), ROWS):
            yield self.take(name, column, keys[start : start + ROWS])


def copied(path: Path, closing: ExitStack) -> Path:
    """A temporary copy of a folder, for a client that writes where it reads. Links in it are left out."""
    make_private(home())
    folder = closing.enter_context(tempfile.TemporaryDirectory(dir=home(), ignore_cleanup_errors=True))
    copy = Path(folder) / path.name
    shutil.copytree(path, copy, ignore=lambda inside, names: [n for n in names if (Path(inside) / n).is_symlink()])
    return copy


def table_of(
    columns: Mapping[str, Sequence[Any]], name: str, vectors: Sequence[Any], *, double: bool = False
) -> pa.Table:
    """A table of rows. Values that are no texts, numbers or times become text; columns of lists, objects or bytes are left out.

    Args:
        columns: the others.
        name: of the column of vectors.
        vectors: a sequence or array per row, or None.
        double: float64 instead of float32.
    """
    import pyarrow as pa

    arrays = {}
    for other, values in columns.items():
        if any(isinstance(value, (dict, list, tuple, set, bytes)) for value in values):
            continue
        plain = [value if value is None or isinstance(value, _SCALARS) else str(value) for value in values]
        try:
            arrays[other] = pa.array(plain)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # mixed
            arrays[other] = pa.array([None if value is None else str(value) for value in plain])
    arrays[name] = pa.array(vectors, pa.list_(pa.float64() if double else pa.float32()))
    return pa.table(arrays)


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def columns_of(rows: Sequence[Mapping[str, Any]], taken: Sequence[str] = ()) -> dict[str, list[Any]]:
    """The columns of rows that need not have the same ones; one whose name is taken gets an underscore."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {f"{name}_" if name in taken else name: [row.get(name) for row in rows] for name in names}
