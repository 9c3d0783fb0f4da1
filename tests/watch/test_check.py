"""The gate: replicates against the metrics themselves, distances against loops, error rates, decisions, and baselines as files."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ortho_group

import isoviz
from isoviz import metrics
from isoviz.errors import InputError
from isoviz.metrics.intervals import jackknife_error
from isoviz.watch import drift
from isoviz.watch.drift.measures import MEASURES, _product, measured, squared_distances

Matrix = NDArray[np.float64]

OF_SETS = {name for name, measure in MEASURES.items() if not (measure.agreement or measure.search)}


def cloud(n: int = 120, d: int = 8, seed: int = 0) -> Matrix:
    """Rows off centre, with a falling spectrum."""
    points: Matrix = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(2, 0.5, d) + 0.5
    return points


def codes_of(n: int, groups: int = 12) -> NDArray[np.int64]:
    return np.random.default_rng(5).permutation(np.arange(n) % groups)


# ----------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("groups", [12, 3])
def test_values_without_a_group_are_those_of_the_other_rows(groups):
    points, codes = cloud(500), codes_of(500, groups)
    if groups == 3:  # one group has all of the highest pairs
        points[codes == 2] += 100
    found = measured(points, codes)
    assert found.missing == {} and found.values.keys() == OF_SETS - {"mean_shift", "covariance_distance"}
    for group in (0, groups - 1):
        rest = points[codes != group]
        unit = rest / np.linalg.norm(rest, axis=1, keepdims=True)
        floor = np.quantile((unit @ unit.T)[np.triu_indices(len(rest), 1)], 0.99)
        assert found.without["noise_floor"][group] == pytest.approx(floor)
        for name in found.values.keys() - {"noise_floor"}:
            assert found.without[name][group] == pytest.approx(getattr(metrics, name)(rest)), name


def test_errors_agree_with_the_intervals_of_the_project():
    points, codes = cloud(400), codes_of(400, 40)
    found = measured(points, codes)
    expected = metrics.isoscore_interval(points, codes)
    assert jackknife_error(found.without["isoscore_unbiased"]) == pytest.approx(expected.standard_error)
    level = next(one for one in isoviz.ruler(points).floor if one.share == 0.99)
    assert found.values["noise_floor"] == pytest.approx(level.cosine)
    reach = 1.96 * jackknife_error(found.without["noise_floor"])
    assert 0.7 < reach / ((level.high - level.low) / 2) < 1.4


def test_the_product_of_covariances_is_the_mean_over_distinct_rows():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(8, 3)) + 1
    y = 0.5 * x + generator.normal(size=(8, 3))
    expected = np.mean([((x[i] - x[j]) @ (y[k] - y[m])) ** 2 / 4 for i, j, k, m in itertools.permutations(range(8), 4)])
    x, y = x - x.mean(0), y - y.mean(0)
    assert _product(x, y, x.T @ x, y.T @ y, x.T @ y) == pytest.approx(expected)


@pytest.mark.parametrize("d", [5, 300])  # also more dimensions than twice the rows
def test_distances_are_unbiased_and_without_a_group_those_of_the_other_rows(d):
    codes = codes_of(120)
    x, y = cloud(120, d), 1.3 * cloud(120, d, seed=1) + 0.2
    found, rest = squared_distances(x, y, codes), codes != 3
    again = squared_distances(x[rest], y[rest], codes[rest] % 12)
    for name, values in found.items():
        assert values.shape == (13,) and values[4] == pytest.approx(again[name][0], rel=1e-9), name


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_distances_of_one_population_are_zero_on_average(shared):
    """Also where the rows of the two sets are not independent of each other."""
    generator = np.random.default_rng(1)
    values: dict[str, list[float]] = {"mean_shift": [], "covariance_distance": []}
    for _ in range(300):
        base = generator.normal(size=(40, 6))
        x, y = (shared**0.5 * base + (1 - shared) ** 0.5 * generator.normal(size=(40, 6)) for _ in range(2))
        for name, found in squared_distances(x, y, codes_of(40, 3)).items():
            values[name].append(found[0])
    for found in values.values():
        assert abs(np.mean(found)) < 3.5 * np.std(found) / np.sqrt(len(found))


def test_known_changes_are_found_at_their_size():
    points = cloud(400, 16)
    before = drift.baseline(points)
    widths = np.linspace(2, 0.5, 16)
    moved = points + 0.3 * np.linalg.norm(widths) * np.eye(16)[3]
    found = {one.measure: one for one in drift.check(moved, before, same_rows=True).drifts}
    assert found["mean_shift"].outcome == "changed" and found["mean_shift"].change == pytest.approx(0.3, rel=0.05)
    assert found["covariance_distance"].outcome == "within tolerance"
    longer = points.mean(0) + 1.2 * (points - points.mean(0))
    found = {one.measure: one for one in drift.check(longer, before, same_rows=True).drifts}
    assert found["covariance_distance"].change == pytest.approx(0.44, rel=1e-3)
    assert found["mean_shift"].outcome == "within tolerance"
    turned = points @ np.linalg.qr(np.random.default_rng(3).normal(size=(16, 16)))[0]
    changed = drift.check(turned, before, same_rows=True).with_outcome("changed")
    seen = {"mean_shift", "covariance_distance", "row_cosine"}
    assert seen <= {*changed} <= {*seen, "rogue_share"}


# --------------------------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize("paired", [False, True])
def test_unchanged_populations_seldom_count_as_changed(paired):
    """With tolerances of 0, at most 5 % of draws; of 100, more than 12 would be three standard deviations."""
    generator = np.random.default_rng(11)
    judged: dict[str, float | None] = dict.fromkeys(OF_SETS - {"rogue_share"}, 0.0)
    false = 0
    for _ in range(100):
        base = generator.normal(size=(100, 8))
        x, y = (base + generator.normal(size=(100, 8)) + 1 for _ in range(2)) if paired else (
            generator.normal(size=(100, 8)) + 1 for _ in range(2)
        )  # fmt: skip
        false += not drift.check(y, drift.baseline(x), fail_on=judged, same_rows=paired).ok()
    assert false <= 12


@pytest.mark.parametrize(
    ("change", "error", "tolerance", "outcome"),
    [
        (0.10, 0.01, 0.05, "changed"),
        (-0.10, 0.01, 0.05, "changed"),
        (0.02, 0.01, 0.05, "within tolerance"),
        (0.05, 0.01, 0.05, "cannot tell"),
        (-0.03, 0.01, 0.05, "cannot tell"),
        (0.0, 0.0, 0.0, "within tolerance"),
    ],
)
def test_a_change_must_lie_beyond_the_tolerance_with_its_whole_interval(change, error, tolerance, outcome):
    found = drift._drift("mean_cosine", (0.5, 0.5 + change, change, error), 3.0, {"mean_cosine": tolerance})
    assert found.outcome == outcome
    assert (found.low, found.high) == pytest.approx((change - 3 * error, change + 3 * error))


def test_what_is_not_known_passes_unless_strict():
    result = drift.check(cloud(60, seed=1), drift.baseline(cloud(60)))
    assert result.with_outcome("changed") == [] and result.with_outcome("cannot tell")
    assert result.ok() and not result.ok(strict=True)
    assert len(result.notes()) >= len(result.with_outcome("cannot tell"))


def test_only_named_measures_decide_and_fewer_make_intervals_shorter():
    before, other = drift.baseline(cloud()), cloud(seed=1) + 3
    one = drift.check(other, before, fail_on={"uniformity": 50.0})
    assert one.ok() and {drift.outcome for drift in one.drifts} == {"not judged", "within tolerance"}
    every = drift.check(other, before)
    assert "mean_shift" in every.with_outcome("changed") and {d.outcome for d in every.drifts} <= {
        "changed",
        "within tolerance",
        "cannot tell",
    }
    widths = [next(d.high - d.low for d in result.drifts if d.measure == "uniformity") for result in (one, every)]
    assert widths[0] < widths[1]
    default = {d.measure: d.tolerance for d in every.drifts}
    assert default["isoscore_unbiased"] == pytest.approx(0.2 * every.drifts[0].before)


# ------------------------------------------------------------------------------------------------------------- pairs


def unmoved(result: drift.Check) -> bool:
    same = {name: 1.0 * measure.agreement for name, measure in MEASURES.items()}
    return all(same[one.measure] - 1e-9 < one.low <= one.high <= same[one.measure] for one in result.drifts)


def test_ids_pair_rows_in_any_order_and_make_intervals_shorter():
    points, ids = cloud(), [f"t{row}" for row in range(120)]
    before = drift.baseline(points, ids=ids)
    order = np.random.default_rng(2).permutation(120)
    same = drift.check(points[order], before, ids=[ids[row] for row in order])
    assert same.paired and unmoved(same)
    noisy = points + 0.05 * np.random.default_rng(3).normal(size=points.shape)
    paired, apart = drift.check(noisy, before, ids=ids), drift.check(noisy, before)
    assert paired.paired and not apart.paired
    for one, other in zip(paired.drifts, apart.drifts, strict=False):
        if one.measure in ("mean_cosine", "isoscore_unbiased", "uniformity"):
            assert one.high - one.low < 0.3 * (other.high - other.low)


def test_precision_and_type_of_the_numbers_do_not_matter():
    points = cloud()
    before = drift.baseline(points)
    single = drift.check(points.astype(np.float32), before, same_rows=True)
    assert unmoved(single)
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(points).requires_grad_()
    assert isoviz.check(tensor, isoviz.baseline(tensor), same_rows=True).drifts == single.drifts


def test_large_sets_are_sampled_and_compared_on_equally_many_rows(monkeypatch):
    points = cloud(2_600)
    monkeypatch.setattr(drift, "MOST_ROWS", 200)
    before = drift.baseline(points)
    assert (before.n, len(before.ids)) == (2_600, 200)
    assert before.ids == drift.baseline(points).ids != drift.baseline(points, seed=1).ids
    assert drift.check(cloud(100, seed=1), before).rows == 100
    again = drift.check(points, before, same_rows=True)
    assert again.rows == 200 and all(one.change == 0 for one in again.drifts)
    assert len(drift.baseline(np.random.default_rng(0).normal(size=(50, 40_000)).astype(np.float32)).ids) == 40


def test_few_rows_of_many_dimensions_leave_measures_out():
    before = drift.baseline(cloud(80, 200))
    assert {"effective_rank", "rogue_share"} == before.missing.keys()
    result = drift.check(cloud(80, 200, seed=1), before)
    assert result.missing.keys() == before.missing.keys() and result.ok()
    with pytest.raises(InputError) as error:
        drift.check(cloud(80, 200, seed=1), before, fail_on={"effective_rank": 5.0})
    assert error.value.field == "fail_on"


# -------------------------------------------------------------------------------------------------------- row by row


def by_name(result: drift.Check) -> dict[str, drift.Drift]:
    return {one.measure: one for one in result.drifts}


@pytest.mark.parametrize("kept", [100, 400])
def test_rows_in_another_order_change_although_the_set_does_not(kept, monkeypatch):
    points = cloud(400)
    monkeypatch.setattr(drift, "MOST_ROWS", kept)
    result = drift.check(points[np.random.default_rng(0).permutation(400)], drift.baseline(points), same_rows=True)
    assert not result.ok() and "rows in another order: " in result.sentence
    assert {"row_cosine", "neighbour_recall10"} == {*result.with_outcome("changed")}
    assert all(-1 <= one.low <= one.after <= one.high <= 1 for one in result.drifts[-3:])


@pytest.mark.parametrize("noise", [0.02, 1.0])
def test_agreement_is_that_of_numpy_and_scipy(noise):
    old = cloud(300).astype(np.float32).astype(float)
    new = old @ ortho_group.rvs(8, random_state=0) + noise * np.random.default_rng(4).normal(size=old.shape)
    new = new.astype(np.float32).astype(float)
    found = by_name(drift.check(new, drift.baseline(old), same_rows=True, fail_on={"row_cosine": 0.01}))
    x, y = (points / np.linalg.norm(points, axis=1, keepdims=True) for points in (old, new))
    assert found["row_cosine"].after == pytest.approx((x * y).sum(1).mean())
    near = [np.argsort(-(z @ z.T) + 9 * np.eye(300), axis=1, kind="stable")[:, :10] for z in (x, y)]
    recall = np.mean([len({*a} & {*b}) / 10 for a, b in zip(*near, strict=True)])
    assert found["neighbour_recall10"].after == pytest.approx(recall)
    reach = 2.0227 * (x * y).sum(1).std(ddof=1) / 300**0.5
    assert found["row_cosine"].high == pytest.approx(found["row_cosine"].after + reach, rel=1e-3)


CANARIES = {
    "same model, numerical noise": lambda x: x.astype(np.float16),
    "same model, rows in another order: 12 of 12": lambda x: np.roll(x, 1, axis=0),
    "same model, but 2 of 12 rows changed": lambda x: np.where(np.arange(12)[:, None] < 2, -x, x),
    "same model, rotated": lambda x: x @ ortho_group.rvs(64, random_state=0),
    "a related model": lambda x: x + 0.3 * np.random.default_rng(6).normal(size=x.shape),
    "another model": lambda x: np.random.default_rng(7).normal(size=x.shape),
}


@pytest.mark.parametrize(("verdict", "change"), CANARIES.items(), ids=CANARIES)
@pytest.mark.parametrize("kept", [12, 400])
def test_a_few_paired_rows_tell_whether_the_model_is_the_same(verdict, change, kept):
    points = np.random.default_rng(5).normal(size=(kept, 64))
    before = drift.baseline(points, ids=range(kept))
    result = drift.check(change(points[:12]), before, ids=range(12))
    assert result.identity.startswith(verdict) and result.ok() == ("noise" in verdict)
    assert len(result.row_cosines) == result.rows == 12 and list(by_name(result)) == ["row_cosine"]
    assert np.mean(list(result.row_cosines.values())) == pytest.approx(by_name(result)["row_cosine"].after)
    assert len(result.notes()) <= 4 and verdict in result.sentence


@pytest.mark.parametrize(("change", "outcome"), [(0.3, "within tolerance"), (-0.3, "changed"), (-0.01, "cannot tell")])
def test_search_fails_unless_a_fall_beyond_the_named_margin_is_excluded(change, outcome):
    points, draw = cloud(), np.random.default_rng(0).uniform(0.3, 0.7, size=(50, 3))
    old = {f"q{row}": tuple(values) for row, values in enumerate(draw.tolist())}
    noise = 0.05 * (change == -0.01) * np.random.default_rng(1).normal(size=draw.shape)
    new = {name: tuple(values) for name, values in zip(old, (draw + change + noise).tolist(), strict=True)}
    before = drift.baseline(points, searches=old)
    result = drift.check(points, before, same_rows=True, searches=new, fail_on={"ndcg10": 0.01})
    assert by_name(result)["ndcg10"].outcome == outcome and result.ok() == (ok := change > 0)
    default = drift.check(points, before, same_rows=True, searches=new)
    assert default.ok() == (outcome != "changed") and default.ok(strict=True) == ok
    for other in (drift.baseline(points), drift.baseline(points, searches={"q": (1.0, 1.0, 1.0)})):
        with pytest.raises(InputError, match="pairs: the baseline"):
            drift.check(points, other, searches=new)


# ------------------------------------------------------------------------------------------------------------- files


def test_a_baseline_survives_its_file(tmp_path):
    before = drift.baseline(cloud(), ids=range(120))
    before.write(tmp_path / "before.json")
    read = drift.Baseline.read(tmp_path / "before.json")
    old = json.loads((tmp_path / "before.json").read_text())
    assert old.pop("searches") == {} and drift.Baseline.model_validate(old) == read  # of versions before
    assert read == before
    assert read.points == pytest.approx(cloud(), rel=1e-6)
    for name, (value, low, high) in read.measures.items():
        assert low <= value <= high, name
    assert isoviz.check(cloud(), tmp_path / "before.json", ids=range(120)).ok(strict=True)


DAMAGED: dict[str, dict[str, Any]] = {
    "another format": {"format": 2},
    "no format": {"format": None},
    "unknown field": {"spam": 1},
}


@pytest.mark.parametrize("change", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_baseline_is_refused_in_one_line(change, tmp_path):
    body = json.loads(drift.baseline(cloud()).model_dump_json()) | change
    (tmp_path / "before.json").write_text(json.dumps(body))
    with pytest.raises(InputError) as error:
        drift.Baseline.read(tmp_path / "before.json")
    assert error.value.field == "baseline" and "\n" not in str(error.value)


def with_row(value: float) -> Matrix:
    points = cloud()
    points[7] = value
    return points


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "few rows": (cloud(39), {}, "vectors"),
    "words": (np.full((50, 8), "a"), {}, "vectors"),
    "identical rows": (np.ones((50, 8)), {}, "vectors"),
    "zero vectors": (np.where(np.arange(120)[:, None] < 90, 0.0, cloud()), {}, "vectors"),
    "nan": (with_row(np.nan), {}, "vectors"),
    "another width": (cloud(50, 9), {}, "vectors"),
    "few common ids": (cloud(), {"ids": range(61, 181)}, "ids"),
    "repeated ids": (cloud(), {"ids": [1] * 120}, "ids"),
    "rows although there are ids": (cloud(), {"same_rows": True}, "same_rows"),
    "unknown measure": (cloud(), {"fail_on": {"mean_cosin": 1.0}}, "fail_on"),
    "negative tolerance": (cloud(), {"fail_on": {"mean_cosine": -1.0}}, "fail_on"),
    "no measure": (cloud(), {"fail_on": {}}, "fail_on"),
}


@pytest.mark.parametrize(("points", "options", "field"), BAD.values(), ids=BAD)
def test_bad_input_names_its_field(points, options, field):
    with pytest.raises(InputError) as error:
        drift.check(points, drift.baseline(cloud(), ids=range(120)), **options)
    assert error.value.field == field and "\n" not in str(error.value)
