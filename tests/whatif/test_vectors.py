"""Any vectors under chains: the engine's image and read-outs against transforms applied to points, held-back rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isoviz import posthoc, readouts
from isoviz.errors import InputError
from isoviz.metrics import isoscore
from isoviz.metrics.measuring import measure_cloud
from isoviz.metrics.sample import Sample
from isoviz.readouts.division import divide
from isoviz.readouts.isotropy import influence_of
from isoviz.vectors import VectorSet
from isoviz.whatif import chains
from isoviz.whatif.engine import WhatIf
from isoviz.whatif.images import NotReadyError, image_of

RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, 150)
LABELLED = VectorSet(
    RNG.normal(size=(150, 10)) * np.geomspace(3, 0.3, 10) + 2.0 + np.outer(LABELS, np.eye(10)[9]),
    pd.DataFrame({"label": np.array(["no", "yes"])[LABELS]}),
    name="made",
)
CHAINS = (
    "zca:strength=0.5",
    "all_but_the_top:remove=2,literal=true",
    "pca_whitening:components=4",
    "truncation:keep=6~zca:eps=0.1",
    "rotation:seed=3~shift:by=2~isobn",
    "cluster_based:n_clusters=3,remove=1",
)


@pytest.mark.parametrize("text", CHAINS)
def test_read_outs_match_transformed_points(text: str) -> None:
    steps, part = chains.read(text), divide(LABELLED)
    engine = WhatIf(divide(LABELLED))
    chain = posthoc.chain([step.make() for step in steps]).fit(LABELLED.points[part.fit])
    after = np.asarray(chain.transform(LABELLED.points[part.rows]))
    assert image_of(engine.image(steps)).cosines == pytest.approx(readouts.image.Image(after).cosines, abs=1e-5)
    answer = engine.answer(steps)
    assert answer.d == after.shape[1]
    assert answer.measures["isoscore"] == pytest.approx(isoscore(after), abs=1e-8)
    expected = readouts.measure(readouts.image.Image(after), part.annotations, answer.readouts)
    assert {slug: one.value for slug, one in answer.readouts.items()} == pytest.approx(
        {slug: one.value for slug, one in expected.items()}, abs=1e-5
    )


def test_what_follows_has_intervals_and_what_comes_at_once() -> None:
    engine = WhatIf(divide(LABELLED))
    steps = chains.read("zca")
    with pytest.raises(NotReadyError):
        engine.answer(steps, build=False)
    full = _run(engine.stages(steps))
    slugs = [comparison.readout.slug for comparison in full.comparisons]
    assert sorted(slugs) == ["knn", "nearest", "noise_floor", "probe", "random_pairs"]
    for one in full.comparisons:
        assert one.difference.low is not None and one.difference.low <= one.difference.value <= one.difference.high
    # whitening makes the narrow direction that holds the label as wide as the others
    knn = next(comparison for comparison in full.comparisons if comparison.readout.slug == "knn")
    assert knn.after > knn.before
    assert {cell.readout.slug: cell.difference.n for cell in full.crossed} == {"probe": 150, "knn": 150}
    assert 0 < full.overlap.value < 1
    assert _run(engine.stages(steps)) is full
    assert engine.answer(steps, build=False).n == 50  # known now


def _run(stages):  # type: ignore[no-untyped-def]
    while True:
        try:
            next(stages)
        except StopIteration as end:
            return end.value


def test_held_back_rows_are_others_under_the_same_fit() -> None:
    shown, held_back = WhatIf(divide(LABELLED)), WhatIf(divide(LABELLED, "held back"))
    assert np.array_equal(shown.train, held_back.train)
    assert set(shown.source.rows).isdisjoint(held_back.source.rows)
    assert held_back.comparison(chains.read("zca"), "knn").difference.n == 50


def test_a_layer_that_needs_a_run_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="trained on a run's labels and head"):
        WhatIf(divide(LABELLED)).image(chains.read("isolayer"))


def test_groups_of_a_set_are_its_labels_and_a_run_has_none() -> None:
    engine, steps = WhatIf(divide(LABELLED)), chains.read("language_removal~zca:strength=0.5")
    part = divide(LABELLED)
    assert part.groups[0] is not None and part.groups[1] is not None
    np.testing.assert_array_equal(part.groups[1], LABELS[part.rows])
    chain = posthoc.chain([step.make() for step in steps]).fit(LABELLED.points[part.fit], part.groups[0])
    after = np.asarray(chain.transform(LABELLED.points[part.rows], part.groups[1]))
    assert engine.answer(steps).measures["isoscore"] == pytest.approx(isoscore(after), abs=1e-8)
    full = _run(engine.stages(steps))
    assert not full.crossed  # the rows' own labels are in the transform
    bare = WhatIf(divide(VectorSet(LABELLED.points, pd.DataFrame(index=range(150)), name="bare")))
    for one in (
        lambda: bare.answer(steps),
        lambda: engine.affine(steps),
        lambda: engine.answer(chains.read("embed_filter")),
    ):
        with pytest.raises(InputError) as caught:
            one()
        assert caught.value.field == "chain"


def test_it_says_what_a_chain_drops_and_which_scores_it_spoils() -> None:
    points = RNG.normal(size=(150, 10)) @ RNG.normal(size=(10, 10)) + 2.0
    points[:, 4] = 3.0
    set_of = VectorSet(points, pd.DataFrame(index=range(150)), name="dead")
    engine = WhatIf(divide(set_of))
    white = engine.answer(chains.read("zca~rotation"))
    assert white.notes == ("ZCA whitening: 1 of 10 directions hold almost no variance and are dropped",)
    assert engine.answer(()).dead == [4] == engine.answer(chains.read("zca")).dead and white.dead == []
    assert (
        engine.answer(chains.read("zca~shift:by=100~binary"))
        .notes[-1]
        .startswith("Binary quantisation: 10 of 10 dimensions")
    )
    # other rows than those of the fit are independent draws; the same ones are not
    assert white.measures["isoscore_unbiased"] is not None
    part = divide(set_of)
    same = WhatIf(replace(part, rows=part.fit))
    for text in ("zca", "pca_whitening:strength=0.4", "zca:ridge=0.1~cluster_based:n_clusters=2,remove=1"):
        answer = same.answer(chains.read(text))
        assert answer.measures["isoscore_unbiased"] is None and "whitened" in answer.reasons["isoscore_unbiased"]
    assert same.answer(chains.read("zca:strength=0")).measures["isoscore_unbiased"] is not None


def test_few_rows_and_few_fitted_rows() -> None:
    few = VectorSet(RNG.standard_t(3, size=(21, 40)), pd.DataFrame(index=range(21)), name="few")
    engine = WhatIf(divide(few))
    assert engine.answer(chains.read("zca")).simplex and not engine.answer(chains.read("zca:ridge=0.1")).simplex
    start = engine.answer(())
    reading = measure_cloud(Sample(few.points[engine.source.rows]), "", interval=False).readings["isoscore_unbiased"]
    assert (
        start.measures["isoscore_unbiased"] == pytest.approx(reading.value)
        or reading.undefined == start.reasons["isoscore_unbiased"]
    )
    heavy = VectorSet(RNG.standard_t(2, size=(21, 5)), pd.DataFrame(index=range(21)), name="heavy")
    assert "cannot be estimated from 7 rows" in WhatIf(divide(heavy)).answer(()).reasons["isoscore_unbiased"]


def test_the_ratio_of_scores_is_that_of_the_points() -> None:
    engine, part = WhatIf(divide(LABELLED)), divide(LABELLED)
    for text in ("zca:strength=0.5", "pca_whitening:components=4", "rotation~isobn"):
        steps = chains.read(text)
        after = np.asarray(
            posthoc.chain([step.make() for step in steps])
            .fit(LABELLED.points[part.fit])
            .transform(LABELLED.points[part.rows])
        )
        centred = after - after.mean(0)
        expected = influence_of(centred, (centred**2).sum(1), np.cov(after.T), after.shape[1])
        np.testing.assert_allclose(engine.answer(steps).isotropy.influence, expected, rtol=1e-6, atol=1e-9)
