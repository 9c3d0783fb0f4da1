"""More seeds for an experiment: every setup gets the same new ones."""

from __future__ import annotations

from isoviz.config import RunConfig
from isoviz.runs.duplicates import more_seeds


def test_every_setup_gets_the_same_new_seeds() -> None:
    plain = RunConfig(method="baseline", params={})
    other = plain.model_copy(update={"epochs": 7})
    existing = [plain.model_copy(update={"seed": seed}) for seed in (0, 4)] + [
        other,
        other.model_copy(update={"seed": 1}),
    ]
    more = more_seeds(existing, 3)
    assert [(config.epochs, config.seed) for config in more] == [
        (epochs, seed) for seed in (5, 6, 7) for epochs in (plain.epochs, 7)
    ]
    setups = {config.setup_key() for config in existing}
    assert {config.setup_key() for config in more} == setups
    assert not {(c.setup_key(), c.seed) for c in more} & {(c.setup_key(), c.seed) for c in existing}
    threads = plain.model_copy(update={"threads": plain.threads + 1, "seed": 1})
    assert len(more_seeds([plain, threads], 3)) == 3, "threads do not make another setup"
    assert more_seeds([], 3) == []
