"""Decisions on simulated batches, the measures, and bad input in one line each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isoviz
from isoviz import metrics
from isoviz.errors import InputError
from isoviz.watch import Alarm, Watch, WatchWarning, measures_of

Batch = NDArray[np.float32]
WIDTH = 64


def healthy(generator: np.random.Generator, n: int = 32) -> Batch:
    """Anisotropic, with a large common mean: mean cosine about 0.8, about 20 directions."""
    spread = np.linspace(1.5, 0.1, WIDTH)
    return (generator.standard_normal((n, WIDTH)) * spread + 2).astype(np.float32)


def alike(generator: np.random.Generator) -> Batch:
    return (1 + 1e-3 * generator.standard_normal((32, WIDTH))).astype(np.float32)


def nothing(generator: np.random.Generator) -> Batch:
    return np.zeros((32, WIDTH), dtype=np.float32)


def identical(generator: np.random.Generator) -> Batch:
    return np.ones((32, WIDTH), dtype=np.float32)


def line(generator: np.random.Generator) -> Batch:
    return (generator.standard_normal((32, 1)) * np.linspace(-1, 1, WIDTH)).astype(np.float32)


def plane(generator: np.random.Generator) -> Batch:
    return (generator.standard_normal((32, 2)) @ np.eye(WIDTH)[:2]).astype(np.float32)


def trained(
    watch: Watch, collapse: Callable[[np.random.Generator], Batch] | None, healthy_steps: int = 300
) -> Alarm | None:
    generator = np.random.default_rng(1)
    for _ in range(healthy_steps):
        assert watch.step(healthy(generator)) is None
    for _ in range(100 if collapse else 0):
        if watch.step(collapse(generator)):
            break
    return watch.alarm


def test_a_healthy_training_is_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trained(isoviz.Watch(warmup=0), None, 1000) is None


@pytest.mark.parametrize(
    ("collapse", "kind", "words"),
    [
        (alike, "alike", "point the same way"),
        (identical, "alike", "point the same way"),
        (nothing, "alike", "almost all vectors point the same way"),
        (line, "few", "about 1.0 directions only"),
        (plane, "few", "directions only"),
    ],
)
def test_a_collapse_is_found_within_thirty_steps(collapse: Any, kind: str, words: str) -> None:
    alarm = trained(Watch(on_collapse="log"), collapse)
    assert alarm is not None and alarm.kind == kind and 300 < alarm.step <= 330
    assert words in str(alarm) and "\n" not in str(alarm)


def test_nothing_is_decided_during_warm_up() -> None:
    watch = Watch(warmup=50, on_collapse="log")
    generator = np.random.default_rng(0)
    assert all(watch.step(alike(generator)) is None for _ in range(50))
    assert any(watch.step(alike(generator)) for _ in range(30))


def test_the_actions() -> None:
    heard: list[Alarm] = []
    watch = Watch(on_collapse=heard.append)
    assert trained(watch, alike) is heard[0] and not watch.should_stop
    watch = Watch(on_collapse="stop")
    with pytest.warns(WatchWarning, match="collapse at step"):
        trained(watch, alike)
    assert watch.should_stop
    watch.restart()
    assert watch.alarm is None and not watch.should_stop


def test_measures_are_those_of_the_last_window() -> None:
    watch = Watch(measure_every=50, window=320, on_collapse="log")
    generator = np.random.default_rng(1)
    batches = [healthy(generator) for _ in range(100)]
    for batch in batches:
        watch.step(batch)
    last = np.concatenate(batches[-10:])
    assert watch.latest["isotropy/n"] == 320
    assert watch.latest["isotropy/isoscore_unbiased"] == metrics.isoscore_unbiased(last)
    assert watch.latest["isotropy/mean_cosine"] == metrics.mean_cosine(last)
    interval = metrics.participation_ratio_interval(last)
    assert watch.latest["isotropy/directions_low"] == pytest.approx(interval.low)
    assert watch.latest["isotropy/directions"] == pytest.approx(interval.estimate)


@pytest.mark.parametrize(
    ("batch", "warning"),
    [
        (np.full((32, WIDTH), np.nan), "left out 32 of 32 vectors"),
        (np.empty((0, WIDTH)), "0 usable vectors"),
    ],
)
def test_unusable_batches_do_not_leave_the_earlier_numbers(batch: Any, warning: str) -> None:
    watch = Watch(measure_every=10, on_collapse="log")
    trained(watch, None, 10)
    assert watch.latest["isotropy/n"] == 320 and watch.latest["isotropy/mean_cosine"] < 0.9
    with pytest.warns(WatchWarning, match=warning):
        for _ in range(5):
            watch.step(batch)
    assert watch.latest["isotropy/n"] == 320  # of step 10
    for _ in range(15):
        watch.step(batch)
    rows = 20 * len(batch) if np.isfinite(batch).all() else 0  # every one of both intervals
    assert watch.latest.pop("isotropy/n") == rows
    assert watch.latest.get("isotropy/mean_cosine", 1.0) == pytest.approx(1.0)
    assert rows or (not watch.latest and set(watch.missing.values()) == {"no usable vectors since the measures before"})
    generator = np.random.default_rng(2)
    for _ in range(10):  # and it recovers
        watch.step(healthy(generator))
    assert watch.latest["isotropy/n"] >= 320


def test_some_zero_vectors_are_no_collapse() -> None:
    watch = Watch(warmup=0, on_collapse="log", kinds=("alike",))
    generator = np.random.default_rng(0)
    with pytest.warns(WatchWarning, match="are zero"):
        for _ in range(300):
            batch = healthy(generator)
            batch[:24] = 0  # of two random rows, both are zero in 56 % of pairs
            assert watch.step(batch) is None


def test_a_biased_measure_is_left_out_with_too_few_points() -> None:
    values, missing = measures_of(healthy(np.random.default_rng(0), 200))
    assert missing["effective_rank"] == "not enough points: 200 of 320"
    assert "effective_rank" not in values
    values, missing = measures_of(healthy(np.random.default_rng(0), 320))
    assert "effective_rank" not in missing and values["effective_rank"] > 1


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
def test_a_last_batch_may_have_any_size(rows: int) -> None:
    watch = Watch(warmup=0, on_collapse="log")
    generator = np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alarms = [watch.step(alike(generator)[:rows]) for _ in range(200)]
    assert any(alarms) == (rows > 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"on_collapse": "halt"}, "on_collapse must be log, warn, stop or a function, got 'halt'"),
        ({"false_alarm_rate": 0.0}, "false_alarm_rate must lie between 0 and 1"),
        ({"alike": 1.0}, "alike must be a cosine"),
        ({"few": 1.0}, "few must be a number of directions above 1"),
        ({"kinds": ("line",)}, "kinds must be some of alike, few"),
        ({"warmup": -1}, "warmup must be a whole number of at least 0"),
        ({"measure_every": 0}, "measure_every must be a whole number of at least 1"),
        ({"window": 1.5}, "window must be a whole number of at least 2"),
        ({"pooling": "max"}, "pooling must be mean, cls or last"),
    ],
)
def test_bad_options_name_their_field(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as refused:
        Watch(**options)
    assert refused.value.field in options


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        (np.ones(8), "vectors must have shape"),
        (np.array([["a", "b"]]), "vectors must be real numbers"),
        (None, "step needs vectors"),
    ],
)
def test_bad_vectors_are_refused_in_one_line(vectors: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Watch().step(vectors)
