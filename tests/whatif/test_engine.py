"""The engine's closed forms against `isoviz.metrics` on arrays that were really transformed: each transform, chains of two."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from isoviz import metrics, posthoc
from isoviz.errors import InputError
from isoviz.metrics.cloud import UndefinedWarning
from isoviz.parameters import start_values
from isoviz.posthoc import chain
from isoviz.readouts.heads import FrozenHead
from isoviz.tasks import metrics as task_metrics
from isoviz.whatif import chains
from isoviz.whatif.embeddings import Cloud, Embeddings
from isoviz.whatif.engine import WhatIf, instant_metrics, slow_metrics

SINGLE = [
    "zca",
    "zca:strength=0.5",
    "zca:strength=0",
    "zca:strength=0.7,eps=0.3",
    "pca_whitening",
    "pca_whitening:strength=0.3",
    "pca_whitening:components=5",
    "all_but_the_top",
    "all_but_the_top:remove=3",
    "all_but_the_top:remove=2,literal=true",
    "isobn",
    "isobn:beta=1.5,form=code",
    "batch_norm",
    "batch_norm:eps=0",
    "cluster_based:n_clusters=3,remove=2",
    "rotation:seed=4",
    "shift:by=-3",
    "scale:factor=0.01",
]
for slug, kind in posthoc.catalogue().items():  # one that is not named above is tried as What-if adds it
    if slug not in {text.partition(":")[0] for text in SINGLE} and not kind.needs:
        SINGLE.append(chains.step(slug, **start_values(kind.Params)).text)
PAIRS = [
    f"{first}~{second}"
    for first, second in itertools.product(  # from all coordinates to all coordinates, and from narrower ones
        ["rotation", "shift:by=-3", "isobn:beta=1.5,form=code", "zca:strength=0.5", "zca", "pca_whitening:components=5",
         "all_but_the_top:remove=3", "cluster_based:n_clusters=3,remove=2"],
        ["rotation:seed=4", "batch_norm", "isobn", "zca:strength=0.7,eps=0.3", "pca_whitening:strength=0.3",
         "all_but_the_top:remove=2,literal=true", "cluster_based:n_clusters=3,remove=2"],
    )
    # the choice among equal directions is arbitrary
    if first not in ("zca", "pca_whitening:components=5") or not second.startswith("all_but_the_top")
]  # fmt: skip
LONGER = [
    "scale:factor=3~rotation~zca:strength=0.4~isobn~all_but_the_top:remove=2~shift",
    "rotation~rotation:seed=1~isobn~zca",
]


def made(
    n: int = 300,
    m: int = 160,
    d: int = 12,
    *,
    labels: int = 2,
    seed: int = 0,
    kind: str = "classification",
    mean: float = 2.0,
) -> Embeddings:
    """Correlated dimensions of different spread away from the origin; the head made the labels, with noise."""
    random = np.random.default_rng(seed)
    mixing = random.normal(size=(d, d)) * random.uniform(0.2, 2.0, size=d)
    cloud: Cloud = "head"
    train = (random.normal(size=(n, d)) @ mixing + mean).astype(np.float32)
    validation = (random.normal(size=(m, d)) @ mixing + mean).astype(np.float32)
    weight = random.normal(size=(labels if kind == "classification" else 1, d))
    bias = -weight @ np.full(d, mean)

    def labelled(points: np.ndarray) -> np.ndarray:
        logits = points @ weight.T + bias
        noisy = logits + 0.5 * logits.std() * random.normal(size=logits.shape)
        return noisy.argmax(axis=1) if kind == "classification" else noisy[:, 0]

    head = FrozenHead(weight, bias, kind)
    return Embeddings(
        key="made",
        cloud=cloud,
        facts={"primary": "accuracy", "kind": kind, "seed": 0, "differs": False, "run": "r", "task": "t"},
        train=train,
        validation=validation,
        train_labels=labelled(train),
        labels=labelled(validation),
        predicted=head.predict(validation.astype(np.float64)),
        head=head,
    )


@pytest.fixture(scope="module")
def engine() -> WhatIf:
    return WhatIf(made())


@pytest.fixture(scope="module")
def narrow() -> WhatIf:
    """Fewer training points than dimensions."""
    return WhatIf(made(n=20, m=30, d=40, seed=3))


def transformed(stored: Embeddings, text: str) -> tuple[np.ndarray, np.ndarray]:
    """Both splits, through the catalogue's own transforms."""
    fitted = chain([step.make() for step in chains.read(text)]).fit(stored.train)
    return np.asarray(fitted.transform(stored.train)), np.asarray(fitted.transform(stored.validation))


def check(engine: WhatIf, text: str, tolerance: float = 1e-9) -> None:
    stored = engine.source
    answer = engine.answer(chains.read(text))
    _, after = transformed(stored, text)
    assert (answer.n, answer.d) == after.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for metric in instant_metrics():
            expected = metric.evaluate(after)
            assert answer.measures[metric.slug] == pytest.approx(expected, rel=tolerance, abs=tolerance), metric.slug
        np.testing.assert_allclose(answer.ev, metrics.explained_variance(after), rtol=0, atol=tolerance)
    if after.shape[1] == stored.head.width:
        predicted = (after @ stored.head.weight.T + stored.head.bias).argmax(axis=1)
        expected = task_metrics.compute(["accuracy"], stored.labels, predicted)["accuracy"]
        assert answer.readouts["frozen"].value == pytest.approx(expected, abs=1.5 / len(after))
        # a tie to the last digit may fall either way
        assert (answer.readouts["frozen"].predicted != predicted).sum() <= 1
    else:
        assert (
            answer.readouts["frozen"].value is None
            and f"reads {stored.head.width} numbers, the chain leaves" in answer.reasons["frozen"]
        )


@pytest.mark.parametrize("text", ["none", *SINGLE])
def test_one_transform_equals_the_metrics_of_its_image(engine, text):
    check(engine, text)


@pytest.mark.parametrize("text", PAIRS + LONGER)
def test_chains_are_what_the_metrics_say_of_their_image(engine, text):
    check(engine, text)


@pytest.mark.parametrize("text", [text for text in SINGLE if "cluster" not in text and "components" not in text])
def test_fewer_points_than_dimensions(narrow, text):
    check(narrow, text, 1e-8)


def test_what_follows_is_what_the_metrics_say(engine):
    stored = engine.source
    for text in ("zca:strength=0.5", "isobn~all_but_the_top:remove=2", "pca_whitening:components=3"):
        steps = chains.read(text)
        full = engine.full(steps)
        train, after = transformed(stored, text)
        rho = np.asarray(metrics.abs_correlation(after))
        inputs = {"shrinkage_cov": np.cov(train.T), "zeta": 0.2}
        expected = {
            metric.slug: metric.evaluate(after, **{name: inputs[name] for name in metric.inputs})
            for metric in slow_metrics()
        }
        expected["abs_correlation"] = rho[~np.eye(len(rho), dtype=bool)].mean()
        assert full.measures == pytest.approx(expected, rel=1e-9)
        assert {"twonn", "isoscore_star", "rogue_share", "abs_correlation"} <= set(full.measures)
        assert full.readouts["refitted"].value == pytest.approx(stored.refitted_metric(train, after), abs=1e-9)
        values, directions = np.linalg.eigh(np.cov(after.T))
        places = (after - after.mean(axis=0)) @ directions[:, [-1, -2]]
        np.testing.assert_allclose(np.abs(full.map), np.abs(places), atol=1e-4 * np.abs(places).max())
        assert full.map_shares == pytest.approx((values[-1] / values.sum(), values[-2] / values.sum()))
        assert engine.cached_full(steps) is full
    assert engine.full(chains.read("pca_whitening:components=3")).difference("frozen").value is None
    plain = engine.full(()).map  # whose furthest points lie on the positive sides, whatever signs the solver gives
    assert (plain.max(axis=0) >= -plain.min(axis=0)).all()
    nothing = engine.full(()).difference("frozen")
    assert (nothing.value, nothing.low, nothing.high) == (0, 0, 0)


def test_a_rotation_breaks_the_frozen_head_and_not_the_refitted_one(engine):
    full, start = engine.full(chains.read("rotation")), engine.full(())
    assert full.readouts["refitted"].value == pytest.approx(start.readouts["refitted"].value, abs=1 / 160)
    assert full.difference("frozen").excludes_zero and full.difference("frozen").value < -0.1
    assert not full.difference("refitted").excludes_zero


def test_a_collapsed_cloud_has_reasons_instead_of_numbers():
    collapsed = made()
    flat = Embeddings(
        **{**vars(collapsed), "train": np.ones_like(collapsed.train), "validation": np.ones_like(collapsed.validation)}
    )
    answer = WhatIf(flat).answer(chains.read("zca"))
    assert all(value is None for value in answer.measures.values()) and answer.ev is None
    assert answer.reasons["isoscore"] == "all points are equal"
    with pytest.warns(UndefinedWarning):
        metrics.isoscore(np.ones((5, 3)))
    full = WhatIf(flat).full(())
    assert {slug for slug, value in full.measures.items() if value is None} == set(full.reasons)
    assert {"twonn", "isoscore_star", "rogue_share", "abs_correlation"} <= set(full.reasons)
    assert full.reasons["rogue_share"] == "all points are equal"


def test_a_cloud_of_rounding_errors_is_reported(engine):
    for text, only_rounding in (
        ("none", False),
        ("all_but_the_top:remove=11", False),
        ("all_but_the_top:remove=12", True),
        ("all_but_the_top:remove=12~scale:factor=100~zca", True),
        ("rotation~all_but_the_top:remove=12~batch_norm~pca_whitening:components=3", True),
        ("all_but_the_top:remove=12~cluster_based:n_clusters=1,remove=0", True),
    ):
        assert engine.answer(chains.read(text)).only_rounding is only_rounding, text


def test_an_inapplicable_step_says_why(engine):
    for text, reason in (
        ("all_but_the_top:remove=99", "All-but-the-top: remove must be at most 12"),
        ("pca_whitening:components=13", "PCA whitening: components must be at most 12"),
        ("cluster_based:n_clusters=400,remove=1", "Cluster-based: n_clusters must be at most 300"),
    ):
        with pytest.raises(InputError, match=reason):
            engine.answer(chains.read(text))


def test_regression_has_numbers_too():
    stored = made(kind="regression")
    stored.facts["primary"] = "pearson"
    engine = WhatIf(stored)
    full = engine.full(chains.read("isobn"))
    answer = engine.answer(chains.read("isobn"))
    _, after = transformed(stored, "isobn")
    assert answer.readouts["frozen"].value == pytest.approx(
        np.corrcoef(stored.labels, after @ stored.head.weight[0])[0, 1]
    )
    assert full.readouts["refitted"].value > 0.5 and full.difference("refitted").low is not None
