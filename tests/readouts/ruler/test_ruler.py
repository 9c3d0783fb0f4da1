"""The ruler: quantiles against loops and closed forms, coverage of its intervals, honesty where nothing separates, and six lines."""

from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

import isoviz
from isoviz import metrics
from isoviz.errors import InputError
from isoviz.readouts import ruler as rulers
from isoviz.readouts.ruler import related
from isoviz.readouts.ruler.pairs import pairs_of
from isoviz.statistics import intervals

Matrix = NDArray[np.float64]


@pytest.fixture(autouse=True)
def _fewer_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "_HALVES", 60)


def cloud(n: int, generator: np.random.Generator, d: int = 24) -> Matrix:
    """Rows around a common direction, with a falling spectrum."""
    points: Matrix = generator.normal(size=(n, d)) * np.linspace(2, 0.3, d) + 0.6
    return points


def twins(m: int, generator: np.random.Generator, noise: float = 0.7) -> tuple[Matrix, NDArray[np.int64]]:
    """2m rows; row k and row m + k are related."""
    base = cloud(m, generator)
    points = np.concatenate([base + noise * generator.normal(size=base.shape) for _ in range(2)])
    return points, np.stack([np.arange(m), m + np.arange(m)], axis=1)


def test_the_floor_is_that_of_all_pairs() -> None:
    points = cloud(40, np.random.default_rng(0))
    expected = [a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in itertools.combinations(points, 2)]
    ruler = isoviz.ruler(points)
    assert ruler.compared == 780 and not ruler.sampled and ruler.related is None
    for level in ruler.floor:
        assert level.cosine == pytest.approx(np.quantile(expected, level.share))
        assert level.low <= level.cosine <= level.high
    reading = ruler.read(float(np.median(expected)))
    assert reading.percentile == pytest.approx(0.5, abs=1e-6) and reading.probability is None


def test_pairs_of_two_sides_are_compared_across_and_known_ones_left_out() -> None:
    points, pairs = twins(15, np.random.default_rng(0))
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    expected = [unit[a] @ unit[15 + b] for a in range(15) for b in range(15) if a != b]
    ruler = rulers.ruler(points, pairs=pairs)
    assert ruler.compared == 210 and ruler.floor[0].cosine == pytest.approx(np.median(expected))


def test_intervals_of_the_floor_cover_the_population() -> None:
    """On the sphere the quantiles are known: (1 + c)/2 has a beta distribution. Off centre they are those of many more pairs."""
    generator = np.random.default_rng(1)
    d = 12
    sphere = {share: 2 * beta.ppf(share, (d - 1) / 2, (d - 1) / 2) - 1 for share in rulers.LEVELS}
    many = cloud(6_000, generator)
    unit = many / np.linalg.norm(many, axis=1, keepdims=True)
    values = (unit[:3_000] @ unit[3_000:].T).ravel()
    shifted = {share: float(np.quantile(values, share)) for share in rulers.LEVELS}
    for truth, draw in ((sphere, lambda: generator.normal(size=(120, d))), (shifted, lambda: cloud(120, generator))):
        covered = dict.fromkeys(truth, 0)
        for _ in range(100):
            points = draw()
            floor = pairs_of(points, None, generator, 3_000).cosines(points)
            for share, value in truth.items():
                level = floor.level(share)
                covered[share] += level.low <= value <= level.high
        assert min(covered.values()) >= 88  # of 100 at 95 %: three standard deviations


def test_related_pairs_are_calibrated_and_a_threshold_holds_on_other_pairs() -> None:
    generator = np.random.default_rng(2)
    ruler = rulers.ruler(*twins(300, generator)[:1], pairs=twins(300, generator)[1], precision=0.8)
    found = ruler.related
    assert found is not None and found.separates and found.threshold is not None
    assert np.all(np.diff(found.probability) >= 0) and found.error[0] < 0.08
    other, pairs = twins(2_000, generator)
    unit = other / np.linalg.norm(other, axis=1, keepdims=True)
    values = unit[pairs[:, 0]] @ unit[pairs[:, 1]].T
    hits = (np.diag(values) >= found.threshold.cosine).mean()
    misses = (values[~np.eye(len(values), dtype=bool)] >= found.threshold.cosine).mean()
    precision = hits / (hits + misses)
    assert found.threshold.low - 0.01 <= precision <= found.threshold.high + 0.01
    assert hits == pytest.approx(found.threshold.recall, abs=0.06)


def test_auc_is_the_share_of_comparisons_won() -> None:
    points, pairs = twins(60, np.random.default_rng(3), noise=2.0)
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    values = unit[:60] @ unit[60:].T
    won = (np.diag(values)[:, None] > values[~np.eye(60, dtype=bool)]).mean()
    ruler = rulers.ruler(points, pairs=pairs)
    assert ruler.related is not None and ruler.related.auc[0] == pytest.approx(won, abs=0.01)


def test_rounding_decides_no_comparison_and_is_no_variant() -> None:
    """Many cosines of codes are equal, and the sums behind them depend on the order of the dimensions in their last digits."""
    points, pairs = twins(60, np.random.default_rng(3), noise=2.0)
    codes, order = np.sign(points - points.mean(axis=0)), np.random.default_rng(0).permutation(24)
    first, other = (rulers.ruler(x, pairs=pairs).related for x in (codes, codes[:, order]))
    assert first is not None and other is not None and first.auc == pytest.approx(other.auc, rel=1e-9)
    two_places = cloud(2, np.random.default_rng(1))[np.arange(60) % 2]
    assert "all-but-the-top" not in {variant.name for variant in rulers.ruler(two_places).variants}


def of_pairs(x, y) -> tuple[float, float, float]:
    """Alignment of rows and partners with Student's interval, as if the pairs were independent."""
    distances = 2 - 2 * np.einsum("ij,ij->i", *(side / np.linalg.norm(side, axis=1, keepdims=True) for side in (x, y)))
    interval = intervals.of_mean(distances.tolist())
    assert interval is not None
    return metrics.alignment(x, y), *interval


def test_alignment_of_related_pairs() -> None:
    """Of pairs without a common row the interval is Student's; two pairs with a noisy row in common count for little more than one."""
    generator = np.random.default_rng(3)
    points, pairs = twins(60, generator)
    found = rulers.ruler(points, pairs=pairs).related
    apart = of_pairs(points[:60], points[60:])
    assert found is not None and found.alignment == pytest.approx(apart, abs=0.01)
    third = points[60:] + generator.normal(size=(60, 24)) / 20
    both = np.concatenate([pairs, pairs + np.array([0, 60])])
    found = rulers.ruler(np.concatenate([points, third]), pairs=both).related
    narrow = of_pairs(np.tile(points[:60], (2, 1)), np.concatenate([points[60:], third]))
    assert found is not None and found.alignment is not None
    value, low, high = found.alignment
    assert value == pytest.approx(narrow[0], abs=1e-9)
    assert 1.3 < (high - low) / (narrow[2] - narrow[1]) < 1.6


def test_where_nothing_is_related_it_says_so() -> None:
    generator = np.random.default_rng(4)
    wrong = 0
    for _ in range(60):
        points = cloud(80, generator)
        pairs = np.stack([np.arange(40), 40 + np.arange(40)], axis=1)
        wrong += related.permuted(points, pairs, generator) <= related.ALPHA
    assert wrong <= 3
    ruler = rulers.ruler(cloud(90, generator), labels=generator.integers(3, size=90).tolist())
    assert ruler.related is not None and not ruler.related.separates and ruler.related.threshold is None
    assert "No threshold separates" in ruler.read(0.9).sentence


def test_six_lines_of_numpy_give_the_same_numbers(tmp_path: Path) -> None:
    points, pairs = twins(50, np.random.default_rng(6))
    ruler = rulers.ruler(points, pairs=pairs)
    (tmp_path / "ruler.json").write_text(ruler.model_dump_json())
    np.save(tmp_path / "pair.npy", points[[0, 50]])
    process = subprocess.run(
        [sys.executable, "-c", rulers.SIX_LINES], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    cosine, percentile, probability = map(float, process.stdout.split())
    reading = ruler.read(cosine)
    assert (percentile, probability) == pytest.approx((reading.percentile, reading.probability))
    assert len(rulers.SIX_LINES.splitlines()) == 6
    assert rulers.Ruler.model_validate_json(ruler.model_dump_json()) == ruler


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda points: points[:1], "needs at least 10 rows"),
        (lambda points: np.ones_like(points), "all rows are identical"),
        (lambda points: np.where(np.arange(len(points))[:, None] > 4, 0.0, points), "10 rows that are not zero"),
        (
            lambda points: np.where(np.arange(len(points))[:, None] == 4, np.nan, points),
            "row 5 has values that are not finite",
        ),
        (lambda points: points[0], "expected numbers in two dimensions"),
    ],
)
def test_vectors_without_cosines_are_refused(change: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        rulers.ruler(change(cloud(30, np.random.default_rng(0))))  # type: ignore[operator]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": [[0, 99]] * 12}, "rows are numbered from 0 to 29"),
        ({"pairs": [[0, 1]]}, "at least 10 related pairs"),
        ({"pairs": [[0.5, 1]]}, "two columns of row numbers"),
        ({"labels": ["a"]}, "1 for 30 rows"),
        ({"labels": list(range(30))}, "labels: needs at least 10 related pairs"),
        ({"labels": ["a"] * 30}, "hardly any pair of rows is unrelated"),
        ({"labels": ["a"] * 30, "pairs": [[0, 1]]}, "not both"),
        ({"share": 1.0}, "share: must be above 0"),
        ({"precision": 0}, "precision: must be above 0"),
    ],
)
def test_wrong_relations_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rulers.ruler(cloud(30, np.random.default_rng(0)), **options)  # type: ignore[arg-type]


def test_many_rows_are_sampled_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rulers, "MOST_ROWS", 50)
    ruler = rulers.ruler(cloud(200, np.random.default_rng(0)))
    assert (ruler.n, ruler.rows, ruler.compared, ruler.sampled) == (200, 50, 1225, True)
    assert "50 rows drawn with seed 0" in ruler.protocol


def test_cosines_near_1_keep_their_digits_and_rows_that_are_alike_are_said() -> None:
    random = np.random.default_rng(0)
    ruler = isoviz.ruler(random.normal(size=16) + 0.006 * random.normal(size=(80, 16)))
    assert "the mean cosine of two of them is 0.9999" in ruler.alike and ruler.read(0.99993).sentence.startswith(
        "0.99993 is "
    )
    assert isoviz.ruler(cloud(40, random)).alike == ""
    lengths = np.outer(1 + 0.1 * random.random(80), random.normal(size=8)) + 1e-8 * random.normal(size=(80, 8))
    alike = isoviz.ruler(lengths)
    assert "cannot be told apart" in alike.alike and max(level.high for level in alike.floor) <= 1
