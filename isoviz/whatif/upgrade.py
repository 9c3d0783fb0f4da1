"""Mapping a set's vectors to another encoder's, in the background: recall of the new neighbours, and the map as a file."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.jobs.kinds import GIB, Job, JobKind, Pool
from isoviz.posthoc.export import Effect, Origin, as_numpy
from isoviz.readouts.upgrade import Map, Upgrade, upgrade
from isoviz.vectors.sets import VectorSet
from isoviz.whatif.export import ARCHIVE, EXPORTED

PARTS: Final = ("mapped", "old", "gain")
"""What is reported of an `Upgrade`."""


def recalls(result: Upgrade) -> dict[str, dict[str, Any]]:
    """Recall@10 with its 95 % interval and number of rows, for each of `PARTS`."""
    parts = {name: getattr(result, name) for name in PARTS}
    return {name: {part: getattr(one, part) for part in ("value", "low", "high", "n")} for name, one in parts.items()}


def map_file(result: Upgrade, kind: Map, old: str, new: str, n: int) -> bytes:
    """The map as a zip archive for numpy. `old` and `new` name the vectors, `n` is their number."""
    gain, rows = result.gain, f"{result.gain.n:,} rows that the map was not fitted on"
    name = "recall@10 of the new neighbours, old vectors → mapped"
    effect = Effect(name, result.old.value, result.mapped.value, gain.low, gain.high, rows)
    return as_numpy(result.affine, Origin(f"{kind} from {old} to {new}", old, "", n, "all", effects=(effect,)))


def _same_rows(old: VectorSet, new: VectorSet) -> None:
    """Raises `InputError` where both sets name their rows, and differ."""
    if old.n != new.n or not {"id"} <= {*old.columns} & {*new.columns}:
        return
    differs = np.flatnonzero(old.columns["id"].astype(str).to_numpy() != new.columns["id"].astype(str).to_numpy())
    if len(differs):
        row = int(differs[0])
        ids = " and ".join(f"'{one.columns['id'].iloc[row]}'" for one in (old, new))
        raise InputError(f"new: row {row + 1} has different ids, {ids}; put the rows in the same order", field="new")


def _work(job: Job) -> None:
    kind: Map = job.request["map"]
    try:
        old, new = (vectors.load(job.request[name]) for name in ("old", "new"))
    except KeyError:
        raise InputError("new: these vectors are no longer on this server; load them again", field="new") from None
    _same_rows(old, new)
    job.report(0, 1, "fitting and measuring")
    result = upgrade(old.points, new.points, kind)
    content = map_file(result, kind, old.name, new.name, old.n)
    job.publish({"recall10": recalls(result)}, {ARCHIVE: np.frombuffer(content, dtype=np.uint8)})


UPGRADE: Final = JobKind(
    name="upgrade",
    room=__name__,
    work=_work,
    results=EXPORTED,
    pool=Pool("upgrades", cores=2),
    memory=2 * GIB,
    memory_field="new",
)
"""`{"old": key of a set, "new": key of a set, "map": a map}`; the result has `recalls` as `recall10`, and `ARCHIVE`."""
