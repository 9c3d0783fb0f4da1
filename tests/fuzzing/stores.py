"""Addresses of databases, and what an answer to one may be. Nothing is asked but this machine's port 9, where nobody listens."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from urllib.parse import quote

from hypothesis import strategies as st

from isoviz import allowed_paths, vectors
from isoviz.allowed_paths import Roots
from isoviz.errors import LONGEST, InputError
from isoviz.tables import stores
from tests.fuzzing import nasty
from tests.stores.made import duckdb, sqlite_vec

SECRET = "geheim"
_CLOSED = "127.0.0.1:9"


def fill(folder: Path) -> None:
    """Databases, cut and swapped ones, and folders that are none."""
    duckdb(folder)
    sqlite_vec(folder)
    for name in ("vectors.db", "vectors.duckdb"):
        content = (folder / name).read_bytes()
        (folder / f"cut.{name}").write_bytes(content[: len(content) // 2])
        (folder / f"bent.{name}").write_bytes(content[:4096] + bytes(4096) + content[8192:])
    shutil.copy(folder / "vectors.db", folder / "other.duckdb")
    for name in ("empty", "chroma", "lance/docs.lance/_versions"):
        (folder / name).mkdir(parents=True)
    (folder / "chroma" / "chroma.sqlite3").write_bytes(b"no database")


@st.composite
def addresses(draw: st.DrawFn, folder: Path) -> str:
    """Addresses with a password: right, nearly right, or wrong in any part."""
    encoded = nasty.anything.map(lambda text: quote(text[:3000], safe=""))
    any_text = st.one_of(nasty.anything, encoded).map(lambda text: text[:3000])
    scheme = draw(st.one_of(st.sampled_from([*stores.catalogue(), "postgres", "postgresql+psycopg"]), any_text))
    names = [path.name for path in folder.iterdir()]
    file = st.sampled_from(names).map(lambda name: f"{folder}/{name}")
    user = draw(
        st.sampled_from(
            ("", "", f"u:{SECRET}@", f":{SECRET}@", f"u:{SECRET}%00@", f"u:1/{SECRET}@", f"{SECRET}#@", f"u@{SECRET}@")
        )
    )
    host = draw(st.one_of(st.just(""), st.just(_CLOSED), any_text, any_text.map(lambda text: f"{_CLOSED}{text}")))
    path = draw(st.one_of(file, file, any_text)) if not host or draw(st.booleans()) else "/docs"
    option = st.tuples(st.sampled_from(("table", "collection", "column", "sample", "seed", "tls", "database", "x")), st.one_of(
        st.sampled_from(("docs", "plain", "empty", "outside", "embedding", "7", "all")), any_text)).map("=".join)  # fmt: skip
    query = "&".join(draw(st.lists(st.one_of(option, any_text), max_size=3)))
    slashes = draw(st.sampled_from(("://", "://", "://", ":")))
    return f"{scheme}{slashes}{user}{host}{path}?{query}"


def near(folder: Path) -> st.SearchStrategy[str]:
    """Addresses that fit, nearly do, or do not at all."""
    good = [f"duckdb://{folder}/vectors.duckdb?table=docs", f"sqlite://{folder}/vectors.db?table=plain&sample=90"]
    return st.one_of(addresses(folder), addresses(folder), nasty.near(*good))


def check(address: str, folder: Path) -> str:
    """What became of the rows of an address.

    Raises:
        AssertionError: a refusal that is not one printable line without the password. Any other exception is a bug.
    """
    with contextlib.suppress(ValueError):
        asked = stores.is_store(address) and stores.title(address).partition("://")[2].startswith(_CLOSED)
        allowed_paths.restrict_to(None if asked else lambda: Roots((folder,)))
    try:
        read = vectors.read(address)
    except InputError as error:
        assert len(str(error)) <= LONGEST and str(error).isprintable(), f"not one line: {str(error)!r}"
        assert SECRET not in str(error) or not stores.is_store(address), f"the password: {error}"
        return "refused"
    finally:
        allowed_paths.restrict_to(None)
    assert SECRET not in read.name, "the password"
    return "read"
