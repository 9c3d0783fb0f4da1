"""Which of the runs that someone is about to launch exist already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isoviz.config import RunConfig

if TYPE_CHECKING:
    from isoviz.runs.store import Store

_THERE: Final = ("finished", "queued", "running")


def existing(store: Store, configs: Sequence[RunConfig]) -> dict[tuple[str, int], str]:
    """`RunConfig.identity` of those with an equal run that has finished, waits or runs → the newest such run's id.

    Runs that are stopping do not count. Equal runs name the same data folder; whether its files have changed since is not looked at.
    """
    wanted = {config.identity for config in configs}
    found = store.summaries(
        status=_THERE,
        model={config.model for config in configs},
        task={config.task for config in configs},
        method={config.method for config in configs},
        kinds=(),
    )
    stopping = {row.id for row in store.list(status="running") if row.stop_requested}
    ids: dict[tuple[str, int], str] = {}
    for run in found:  # newest first
        if (run.setup, run.seed) in wanted and not run.unreadable and run.id not in stopping:
            ids.setdefault((run.setup, run.seed), run.id)
    return ids
