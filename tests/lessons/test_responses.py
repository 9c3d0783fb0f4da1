"""Which measure sees what: the record is what the engine computes, each cell says what its values do, and no other thing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from factory import record_responses
from isoviz import metrics, reference
from isoviz.lessons import responses
from isoviz.lessons.responses import CHANGES, SEEDS

RECORD = responses.recorded()
Values = dict[str, list[float | None]]


def measured(seeds: Any) -> dict[str, Values]:
    """measure → change → values, computed now."""
    ours = reference.of_this_project(record_responses.measures())
    parts: dict[str, Any] = {"plain": {}, **{change.slug: change.part for change in CHANGES}}
    rows = {name: [record_responses.values(part, seed, ours) for seed in seeds] for name, part in parts.items()}
    return {m.slug: {name: [row[m.slug] for row in each] for name, each in rows.items()} for m in ours}


def test_the_record_has_every_measure_and_these_clouds() -> None:
    ours = {metric.slug for metric in reference.of_this_project(record_responses.measures())}
    assert set(RECORD["values"]) == ours, f"run `make docs`, which writes {record_responses.PATH.name}"
    assert RECORD["clouds"] == {"plain": responses.PLAIN, "changes": {c.slug: dict(c.part) for c in CHANGES}}
    assert tuple(RECORD["seeds"]) == SEEDS
    assert {len(values) for row in RECORD["values"].values() for values in row.values()} == {len(SEEDS)}


def test_the_record_is_what_the_engine_computes() -> None:
    seeds = SEEDS[3:5]
    for slug, row in measured(seeds).items():
        for name, values in row.items():
            recorded = [RECORD["values"][slug][name][SEEDS.index(seed)] for seed in seeds]
            np.testing.assert_allclose(
                np.array(values, float), np.array(recorded, float), rtol=1e-5, atol=1e-9, err_msg=f"{slug}, {name}"
            )
    assert record_responses.depends_on_moments(50, record_responses.measures()) >= set(RECORD["of_moments"])


def test_clouds_that_were_not_recorded_say_the_same() -> None:
    """Five more draws: exact statements stay exact, and every arrow keeps its direction."""
    fresh = measured(range(100, 105))
    for slug, row in responses.table().items():
        for change in CHANGES:
            claim = row[change.slug].claim
            if claim == "undefined":
                continue
            before, after = (np.array(fresh[slug][name], float) for name in (change.begins or "plain", change.slug))
            higher = (after[:, None] > before).mean()
            if claim == "same":
                np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-9, err_msg=slug)
            elif claim != "unclear":
                assert (higher if claim in ("rises", "reads higher") else 1 - higher) > 0.5, (slug, change.slug)


# ------------------------------------------------------------------------------- each claim, in both directions


@pytest.mark.parametrize("kind", ["shift", "scale", "rotation"])
def test_it_agrees_with_the_invariances_that_measures_declare(kind: Any) -> None:
    exact = {slug for slug, row in responses.table().items() if row[kind].claim == "same"}
    declared = {slug for slug in responses.table() if kind in metrics.get(slug).unchanged_by}
    assert exact == declared


def test_only_a_bias_moves_where_the_distribution_stays() -> None:
    for slug, row in responses.table().items():
        assert {row[name].claim for name in ("few", "copies")} <= {"reads higher", "reads lower", "unclear", "same"}, (
            slug
        )
        changed = {row[name].claim for name in ("rogue", "low_rank", "clusters")}
        assert changed <= {"rises", "falls", "unclear", "same"}, slug
    # the covariance is the Gaussian's, so what depends on it alone is only biased; what sees tails moves
    tails = {slug: row["tails"].claim for slug, row in responses.table().items()}
    assert tails["isoscore"] == "reads lower" and tails["ev_1"] == "reads higher" and tails["epps_pulley"] == "rises"
    assert tails["isoscore_unbiased"] == "unclear"


# ----------------------------------------------------------------------------------------------------- the table
