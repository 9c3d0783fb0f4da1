"""Which runs of a plan exist already, and the next seeds for those that do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from isoviz.config import RunConfig

if TYPE_CHECKING:
    from isoviz.runs.store import Store

_THERE: Final = ("finished", "queued", "running")


def existing(store: Store, configs: Sequence[RunConfig]) -> dict[tuple[str, int], str]:
    """`RunConfig.identity` → id of the newest equal run that has finished, waits or runs.

    Stopping runs do not count. Equal runs have the same data folder; changes of its files are not detected.
    """
    identities = {config.identity for config in configs}
    summaries = store.summaries(
        status=_THERE,
        model={config.model for config in configs},
        task={config.task for config in configs},
        method={config.method for config in configs},
    )
    stopping = {row.id for row in store.list(status="running") if row.stop_requested}
    ids: dict[tuple[str, int], str] = {}
    for run in summaries:  # newest first
        if (run.setup, run.seed) in identities and run.id not in stopping:
            ids.setdefault((run.setup, run.seed), run.id)
    return ids


def more_seeds(configs: Iterable[RunConfig], count: int) -> list[RunConfig]:
    """Every setup of these runs with the same `count` seeds that none of them has, seed by seed, so that they stay paired.

    Seeds go up from the largest one.
    """
    setups: dict[str, RunConfig] = {}
    largest = -1
    for config in configs:
        setups.setdefault(config.setup_key(), config)
        largest = max(largest, config.seed)
    seeds = range(largest + 1, largest + 1 + count)
    return [config.model_copy(update={"seed": seed}) for seed in seeds for config in setups.values()]
