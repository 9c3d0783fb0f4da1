"""Finished views on disk: one folder per key, written whole by a rename, the longest unseen removed above a limit."""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.exploring import points
from isoviz.exploring.progress import read_json, write_json
from isoviz.home import home
from isoviz.metrics.record import CloudRecord

if TYPE_CHECKING:
    import pandas as pd

PROFILE: Final = "profile.json"
ARRAYS: Final = "arrays.safetensors"
LIMIT: Final = 2 * 2**30
"""Bytes that finished views may take on disk together; `ISOVIZ_VIEWS_LIMIT` in GiB overrides it."""


def root() -> Path:
    """Where views are kept, in `isoviz.home.home()`."""
    return home() / "views"


def limit() -> int:
    """Bytes that finished views may take; `InputError` for an `ISOVIZ_VIEWS_LIMIT` that is no number of GiB."""
    asked = os.environ.get("ISOVIZ_VIEWS_LIMIT", "").strip()
    if not asked:
        return LIMIT
    try:
        gibibytes = float(asked)
    except ValueError:
        gibibytes = -1.0
    if not 0 < gibibytes < 1e6:
        raise InputError(f"ISOVIZ_VIEWS_LIMIT: must be a number of GiB above 0 (got '{asked}')")
    return int(gibibytes * 2**30)


def array_name(layer: int, pooling: str, what: str) -> str:
    """The name of an array in the file: `ev`, `sigma`, `mean`, `cosine`, `cloud`, `correlation` or `order` of one cloud."""
    return f"{layer}.{pooling}.{what}"


@dataclass(frozen=True)
class ViewResult:
    """A finished view.

    Attributes:
        folder: where it lies.
        facts: what `isoviz.exploring.measuring.compute` says of it: `rows`, `depth`, `entries` (one per layer × pooling), ...
    """

    folder: Path
    facts: Mapping[str, Any] = field(repr=False)

    @property
    def depth(self) -> int:
        """Number of the last layer; 0 is the embedding output."""
        return int(self.facts["depth"])

    @property
    def pending(self) -> tuple[str, ...]:
        """Measures that are not in the entries yet; they follow while its job runs, and nothing else changes."""
        return tuple(self.facts.get("pending", ()))

    @functools.cached_property
    def entries(self) -> list[CloudRecord]:
        """The record of every cloud, as `isoviz.models.profile.profile` gives them."""
        return [CloudRecord.model_validate(entry) for entry in self.facts["entries"]]

    @functools.cached_property
    def together(self) -> CloudRecord | None:
        """The record of all layers' tokens as one cloud, see `isoviz.exploring.shrinkage.together`; None while it is pending
        or where it could not be had (`facts["shrinkage"]["reason"]`)."""
        found = self.facts["layers"]
        return None if found is None else CloudRecord.model_validate(found)

    @property
    def poolings(self) -> list[str]:
        """In the order in which they are shown."""
        return list(dict.fromkeys(entry.pooling for entry in self.entries))

    def entry(self, layer: int, pooling: str) -> CloudRecord:
        """The record of one cloud; KeyError for one that is not there."""
        for entry in self.entries:
            if (entry.layer, entry.pooling) == (layer, pooling):
                return entry
        raise KeyError((layer, pooling))

    def array(self, layer: int, pooling: str, what: str) -> NDArray[Any] | None:
        """One array of one cloud, see `array_name`; None for what was not kept."""
        from safetensors import safe_open

        name = array_name(layer, pooling, what)
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                return None
            found: NDArray[Any] = file.get_tensor(name)
            return found

    def kept(self, layer: int, pooling: str) -> int:
        """How many points of one cloud are kept, without reading them; KeyError for a cloud that is not there."""
        from safetensors import safe_open

        name = array_name(layer, pooling, "cloud")
        with safe_open(self.folder / ARRAYS, framework="np") as file:
            if name not in file.keys():  # noqa: SIM118 (no mapping)
                raise KeyError((layer, pooling))
            return int(file.get_slice(name).get_shape()[0])

    def points(self, layer: int, pooling: str) -> NDArray[np.float32]:
        """The kept points of one cloud, (m, d): one per line of `table(pooling)`; KeyError for a cloud that is not there."""
        found = self.array(layer, pooling, "cloud")
        if found is None:
            raise KeyError((layer, pooling))
        return found.astype(np.float32)

    def table(self, pooling: str) -> pd.DataFrame:
        """What each point is: `row` (its number in the split, from 0), the row's columns, `length` in tokens; of a run's
        encoder on its own task also `prediction` and `error`; for pooling `tokens`, `token` before them."""
        from safetensors import safe_open

        with safe_open(self.folder / ARRAYS, framework="np") as file:
            packed = file.get_tensor(points.TOKENS if pooling == "tokens" else points.ROWS)
        return points.unpacked(packed)


def find(key: str, *, at: Path | None = None) -> ViewResult | None:
    """The finished view of a key, None if there is none; looking keeps it from being the next to go."""
    folder = (at or root()) / "results" / key
    facts = read_json(folder / PROFILE)
    if facts is None:
        return None
    with contextlib.suppress(OSError):  # removed this moment, or another user's
        os.utime(folder)
    return ViewResult(folder, facts)


def publish(partial: Path, key: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, at: Path) -> Path:
    """Write a result into the folder `partial`, on the same disk, then give it its place by one rename."""
    from safetensors.numpy import save_file

    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, partial / ARRAYS)
    write_json(partial / PROFILE, facts)
    final = at / "results" / key
    final.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.rename(partial, final)
    except OSError:  # the same content came from elsewhere
        if not (final / PROFILE).is_file():
            raise
        shutil.rmtree(partial, ignore_errors=True)
        if not facts.get("pending"):
            finish(key, facts, at=at)
    return final


def finish(key: str, facts: Mapping[str, Any], *, at: Path) -> bool:
    """Give a result that was published without all measures the facts that have them. False if it is not there any more."""
    found = find(key, at=at)
    if found is None:
        return False
    if found.pending:
        try:
            write_json(found.folder / PROFILE, facts)
        except FileNotFoundError:  # removed this moment
            return False
    return True


def size(*, at: Path | None = None) -> int:
    """Bytes of all finished views."""
    return sum(_bytes(folder) for folder in _folders(at or root()))


def shrink(limit: int, *, at: Path | None = None, keep: str | None = None) -> list[str]:
    """Remove the views that nobody looked at for longest until at most `limit` bytes are left.

    Args:
        keep: a key that stays, however large it is.

    Returns:
        The keys that are gone.
    """
    folders = sorted(_folders(at or root()), key=_last_seen)
    sizes = {folder: _bytes(folder) for folder in folders}
    total = sum(sizes.values())
    gone = []
    for folder in folders:
        if total <= limit:
            break
        if folder.name == keep:
            continue
        # Renamed first: a reader finds all of it or nothing.
        aside = folder.with_name(f".gone-{folder.name}-{secrets.token_hex(4)}")
        with contextlib.suppress(FileNotFoundError):
            os.rename(folder, aside)
            gone.append(folder.name)
        shutil.rmtree(aside, ignore_errors=True)
        total -= sizes[folder]
    return gone


def _folders(at: Path) -> list[Path]:
    try:
        return [path for path in (at / "results").iterdir() if not path.name.startswith(".")]
    except FileNotFoundError:
        return []


def _last_seen(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _bytes(folder: Path) -> int:
    total = 0
    for name in (PROFILE, ARRAYS):
        with contextlib.suppress(FileNotFoundError):
            total += (folder / name).stat().st_size
    return total
