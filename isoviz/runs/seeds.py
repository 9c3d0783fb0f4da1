"""More seeds for runs that were launched together."""

from __future__ import annotations

from collections.abc import Iterable

from isoviz.config import RunConfig


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
