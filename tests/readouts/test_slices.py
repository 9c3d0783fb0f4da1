"""Slices of a set: numbers of plain means and scipy's tests, few false alarms, and true differences found."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import isoviz
from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.metrics import isoscore_unbiased, mean_cosine
from isoviz.readouts import Annotations, slices

NAMES = ["a", "b", "c"]


def test_means_and_tests_are_scipys() -> None:
    generator = np.random.default_rng(0)
    values, codes = generator.normal(size=300), generator.integers(0, 3, 300)
    values[codes == 2] += 1
    values[5] = np.nan
    found = slices.compared(slices.of_units({"m": (values, codes)}, NAMES), NAMES)
    raw = []
    for k, one in enumerate(found):
        defined = np.isfinite(values)
        own, rest = values[defined & (codes == k)], values[defined & (codes != k)]
        assert (one.n, one.value, one.rest) == (len(own), pytest.approx(own.mean()), pytest.approx(rest.mean()))
        ends = stats.t.interval(0.95, len(own) - 1, own.mean(), stats.sem(own))
        assert (one.low, one.high) == pytest.approx(ends)
        every, n = np.concatenate([own, rest]), len(own) + len(rest)
        t = (own.mean() - rest.mean()) / every.std(ddof=1) / np.sqrt(1 / len(own) + 1 / len(rest))
        raw.append(max(stats.ttest_ind(own, rest, equal_var=False).pvalue, 2 * stats.t.sf(abs(t), n - 2)))
    order = np.argsort(raw)
    holm = np.maximum.accumulate(np.array(raw)[order] * [3, 2, 1]).clip(max=1)
    assert np.array([one.p for one in found])[order] == pytest.approx(holm)
    assert found[2].verdict.startswith("differs (p = ")


def test_a_small_slice_of_all_right_answers_is_no_false_alarm_and_its_interval_is_a_shares() -> None:
    generator, alarms = np.random.default_rng(1), 0
    codes = generator.choice(3, 200, p=[0.8, 0.1, 0.1])
    for _ in range(200):
        right = (generator.random(200) < 0.95) * 1.0
        found = slices.compared(slices.of_units({"right": (right, codes)}, NAMES), NAMES)
        alarms += min(one.p for one in found) < slices.ALPHA
    assert alarms <= 16  # 8 %: 5 % and three standard errors
    full = slices.of_units({"right": (np.ones(200), codes)}, NAMES)["right"][1][0]
    assert full.ends is not None
    assert full.ends == pytest.approx((stats.beta.ppf(0.025, full.n, 1), 1.0), abs=1e-6)


def test_isotropy_of_each_slice_is_its_clouds_and_a_shifted_slice_differs() -> None:
    generator = np.random.default_rng(2)
    x = generator.normal(size=(300, 12)) * np.linspace(1, 3, 12)
    x[:100] += 2
    of = slices.slicing(pd.DataFrame({"group": ["a"] * 100 + ["b"] * 150 + ["c"] * 50}), "topic")
    found = {(one.slice, one.measure): one for one in slices.measured(x, Annotations(), of)}
    assert found["a", "IsoScore, unbiased"].value == pytest.approx(isoscore_unbiased(x[:100]))
    assert found["b", "mean cosine"].value == pytest.approx(mean_cosine(x[100:250]))
    assert found["a", "mean cosine"].p < 1e-6
    assert found["a", "norm"].p < 1e-6 < found["b", "reciprocity"].p


def test_columns_and_lengths_become_slices() -> None:
    texts = pd.DataFrame({"text": ["x" * length for length in range(1, 101)], "group": [None, *range(99)]})
    quartiles = slices.slicing(texts, "length")
    assert quartiles.names[0] == "from 1 to 25 characters" and np.bincount(quartiles.codes).tolist() == [25, 25, 25, 25]
    of_numbers = slices.slicing(texts, "year")
    assert len(of_numbers.names) == 4 and of_numbers.codes[0] == -1
    many = slices.slicing(pd.DataFrame({"group": [f"g{i % 30:02}" for i in range(90)] + ["g29"] * 9}), "source")
    assert len(many.names) == slices.MOST and "g29" in many.names and (many.codes == -1).sum() == 30
    for columns, by in ((texts[["group"]], "length"), (texts[["text"]], "year"), (texts.assign(group="x"), "year")):
        with pytest.raises(InputError, match="^by: ") as raised:
            slices.slicing(columns, by)
        assert raised.value.field == "by"


def test_what_a_ruler_says_of_a_slice_whose_unrelated_rows_are_near() -> None:
    generator = np.random.default_rng(4)
    x = generator.normal(size=(200, 16))
    x[:60] += 1.5  # this slice's rows are all alike
    of = slices.slicing(pd.DataFrame({"group": ["near"] * 60 + ["far"] * 140}), "topic")
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = unit @ unit.T
    floor = float(np.quantile(cosines[np.triu_indices(200, 1)], 0.99))
    found = {one.slice: one for one in slices.on_ruler(x, of, None, None, floor, None)}
    above = (cosines > floor) & ~np.eye(200, dtype=bool)
    assert found["near"].value == pytest.approx(above[:60].sum(axis=1).mean() / 199)
    assert found["near"].p < 0.001 and found["near"].value > 0.02 > found["far"].value


def test_from_a_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`measure --by --rows`, `ruler --by` and `check --by` of one search, whose questions in one language are all wrong."""
    generator = np.random.default_rng(5)
    x = generator.normal(size=(160, 16))
    x[100:] = x[:60] + 0.3 * generator.normal(size=(60, 16))
    x[130:] = generator.normal(size=(30, 16))
    ids, language = [f"r{row}" for row in range(160)], ["document"] * 100 + ["de"] * 30 + ["fr"] * 30
    table = pd.DataFrame({"id": ids, "language": language, "vector": list(x)})
    table.to_parquet(tmp_path / "x.parquet")
    table.assign(vector=[*x[:130], *-x[130:]]).to_parquet(tmp_path / "later.parquet")
    relevant = pd.DataFrame({"query": ids[100:], "document": ids[:60], "relevance": 1})
    relevant.to_csv(tmp_path / "pairs.csv", index=False)
    file, pairs, by = (
        str(tmp_path / "x.parquet"),
        ("--pairs", str(tmp_path / "pairs.csv")),
        ("--by", "language", "--json"),
    )

    def document(*words: str, code: int = 0) -> dict[tuple[str, str], dict[str, Any]]:
        assert main([*words, *pairs, *by]) == code
        return {(one["measure"], one["slice"]): one for one in json.loads(capsys.readouterr().out)["slices"]}

    found = document("measure", "--embeddings", file, "--rows", str(tmp_path / "rows.csv"))
    assert found["Recall@10, cosine", "de"]["value"] > 0.9 and found["Recall@10, cosine", "fr"]["p"] < 1e-6
    rows = pd.read_csv(tmp_path / "rows.csv")
    expected = isoviz.rows(x[:100], x[100:])
    np.testing.assert_allclose(rows[["N_10", "share of queries"]], np.stack([expected.n_k, expected.found], 1))
    assert rows["id"].tolist() == ids[:100]
    found = document("ruler", "--embeddings", file)
    assert found["best hit is relevant", "fr"]["p"] < 1e-6 < found["unrelated pairs above the noise floor", "fr"]["p"]
    main(["check", file, "--save", str(tmp_path / "before.json"), *pairs, "--json"])
    capsys.readouterr()
    found = document("check", str(tmp_path / "later.parquet"), "--baseline", str(tmp_path / "before.json"), code=1)
    assert (found["row_cosine", "de"]["value"], found["row_cosine", "fr"]["value"]) == pytest.approx((1, -1))
    assert found["row_cosine", "fr"]["n"] == 30 and found["change of recall10", "de"]["value"] == 0
