"""`isoviz check` on an array and on tables, in a light process, and the pytest fixture."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from isoviz.__main__ import main

pytest_plugins = ("pytester",)

Matrix = NDArray[np.float64]


def cloud(seed: int = 0, n: int = 100) -> Matrix:
    points: Matrix = np.random.default_rng(seed).normal(size=(n, 6)) + 0.5
    return points


def frame(points: Matrix) -> pd.DataFrame:
    return pd.DataFrame({"id": [f"t{row}" for row in range(len(points))], "embedding": list(points)})


WRITERS: dict[str, Callable[[Matrix, Path], Any]] = {
    ".npy": lambda points, path: np.save(path, points),
    ".parquet": lambda points, path: frame(points).to_parquet(path),
    ".csv": lambda points, path: frame(points).assign(embedding=[str(row.tolist()) for row in points]).to_csv(path),
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_is_saved_and_compared(suffix, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, points in (("before", cloud()), ("same", cloud()), ("moved", cloud(1) + 3)):
        WRITERS[suffix](points, Path(f"{name}{suffix}"))
    assert main(["check", f"before{suffix}", "--save", "before.json", "--json"]) == 0
    saved = json.loads(capsys.readouterr().out)
    assert (saved["n"], saved["d"], saved["rows"]) == (100, 6, 100) and "vectors" not in saved
    assert main(["check", f"same{suffix}", "--baseline", "before.json", "--json"]) == 0
    same = json.loads(capsys.readouterr().out)
    assert same["paired"] == saved["named"] == (suffix != ".npy")
    assert main(["check", f"moved{suffix}", "--baseline", "before.json"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1].split()[1] == "changed" and "mean_shift" in shown[-1]
    moved = ["check", f"moved{suffix}", "--baseline", "before.json", "--fail-on"]
    assert main([*moved, "uniformity=100", "mean_shift=50"]) == 0
    assert main([*moved, "mean_shift", "--json"]) == 1
    document = json.loads(capsys.readouterr().out.partition("\n{")[2].join(("{", "")))
    assert [one["measure"] for one in document["drifts"] if one["outcome"] == "changed"] == ["mean_shift"]


def test_rows_are_paired_by_number_or_by_a_named_column_and_strict_fails_on_doubt(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", cloud())
    np.save("b.npy", cloud(1))
    frame(cloud()).rename(columns={"id": "key"}).to_parquet("a.parquet")
    assert main(["check", "a.npy", "--save", "rows.json"]) == 0
    assert main(["check", "a.npy", "--baseline", "rows.json", "--same-rows", "--strict"]) == 0
    capsys.readouterr()
    assert main(["check", "b.npy", "--baseline", "rows.json"]) == 0
    assert "cannot tell" in capsys.readouterr().err
    assert main(["check", "b.npy", "--baseline", "rows.json", "--strict"]) == 1
    assert main(["check", "a.parquet", "--column", "embedding", "--ids", "key", "--save", "ids.json"]) == 0
    by_id = ["check", "a.parquet", "--column", "embedding", "--baseline", "ids.json", "--strict"]
    assert main([*by_id, "--ids", "key"]) == 0
    assert main(by_id) == 1  # not paired, so that a change cannot be excluded


def test_search_is_judged_by_the_relevance_of_documents_to_queries(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    points = cloud(n=120)
    points[:40] = points[40:80] + 0.3 * cloud(2, 40)
    relevance = {"query": [f"t{row}" for row in range(40)], "document": [f"t{row}" for row in range(40, 80)]}
    pd.DataFrame({**relevance, "relevance": 1}).to_csv("pairs.csv", index=False)
    frame(points).to_parquet("a.parquet")
    frame(np.concatenate([points[:40], np.roll(points[40:], 1, axis=0)])).to_parquet("b.parquet")
    searched = ["--pairs", "pairs.csv"]
    assert main(["check", "a.parquet", "--save", "a.json", *searched, "--json"]) == 0
    assert "searches" not in json.loads(capsys.readouterr().out)
    gate = ["--baseline", "a.json", *searched, "--fail-on", "ndcg10=0.01", "--json"]
    assert main(["check", "a.parquet", *gate]) == 0
    found = {one["measure"]: one for one in json.loads(capsys.readouterr().out)["drifts"]}
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    scores = unit[:40] @ unit[40:].T
    rank = 1 + (scores > scores[np.arange(40), np.arange(40)][:, None]).sum(axis=1)
    for name, of_queries in {"ndcg10": 1 / np.log2(rank + 1), "recall10": np.ones(40), "mrr": 1 / rank}.items():
        assert found[name]["before"] == pytest.approx(np.where(rank <= 10, of_queries, 0).mean()), name
    assert main(["check", "b.parquet", *gate]) == 1
    assert main(["check", "a.parquet", "--baseline", "a.json"]) == 0
    assert "ndcg10, recall10, mrr left out: the baseline was saved with pairs" in capsys.readouterr().err


def test_five_rows_print_their_cosines(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", cloud(n=5))
    np.save("b.npy", cloud(n=5)[::-1])
    assert main(["check", "a.npy", "--save", "a.json"]) == 0
    assert main(["check", "a.npy", "--baseline", "a.json"]) == 2
    capsys.readouterr()
    assert main(["check", "b.npy", "--baseline", "a.json", "--same-rows"]) == 1
    assert "row cosine" in " ".join(capsys.readouterr().out.split())


def test_arrays_need_neither_torch_nor_pandas(tmp_path):
    np.save(tmp_path / "a.npy", cloud())
    script = (
        "import sys; from isoviz.__main__ import main\n"
        "code = main(['check', 'a.npy', '--save', 'a.json']) or main(['check', 'a.npy', '--baseline', 'a.json'])\n"
        "print(code, {'torch', 'pandas', 'pyarrow', 'pytest', 'sqlalchemy'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 set()"


# ----------------------------------------------------------------------------------------------------------- fixture


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Callable[..., pytest.RunResult]:
    """A project whose test checks vectors with the fixture; called with pytest's options, it runs in this process."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # where the package is installed, it is there already
    np.save(pytester.path / "vectors.npy", cloud())
    frame(cloud()).to_parquet(pytester.path / "vectors.parquet")
    pytester.makepyfile(
        """
        import numpy as np

        def test_array(isoviz_check):
            vectors = np.load("vectors.npy")
            result = isoviz_check(vectors, "baselines/array.json", fail_on={"mean_shift": 0.2}, same_rows=True)
            assert result is None or result.paired

        def test_file(isoviz_check):
            result = isoviz_check("vectors.parquet", "baselines/file.json", strict=True)
            assert result is None or result.paired
        """
    )
    return lambda *options: pytester.runpytest_inprocess("-p", "isoviz.pytest_plugin", *options)


def test_the_fixture_saves_passes_and_fails_in_one_sentence(suite, pytester):
    missing = suite()
    missing.assert_outcomes(failed=2)
    missing.stdout.fnmatch_lines(["*--isoviz-update*"])
    suite("--isoviz-update").assert_outcomes(passed=2)
    saved = {path.name: path.read_bytes() for path in (pytester.path / "baselines").iterdir()}
    suite().assert_outcomes(passed=2)
    np.save(pytester.path / "vectors.npy", cloud() + 3)
    frame(cloud() + 3).to_parquet(pytester.path / "vectors.parquet")
    failed = suite()
    failed.assert_outcomes(failed=2)
    failed.stdout.fnmatch_lines(["mean_shift changed from 0 to *", "FAILED *test_array*", "FAILED *test_file*"])
    failed.stdout.no_fnmatch_line("*Traceback*")
    assert saved == {path.name: path.read_bytes() for path in (pytester.path / "baselines").iterdir()}
    suite("--isoviz-update").assert_outcomes(passed=2)
    suite().assert_outcomes(passed=2)


def test_bad_input_fails_in_one_line_and_doubt_warns(suite, pytester):
    suite("--isoviz-update").assert_outcomes(passed=2)
    np.save(pytester.path / "vectors.npy", cloud(n=30))
    frame(cloud(1)).drop(columns="id").to_parquet(pytester.path / "vectors.parquet")
    bad = suite()
    bad.assert_outcomes(failed=2)
    bad.stdout.fnmatch_lines(["fail_on: mean_shift cannot be judged: *at least 40 rows*", "No change was found, but *"])
    pytester.makepyfile(
        """
        import numpy as np

        def test_doubt(isoviz_check):
            isoviz_check("vectors.parquet", "baselines/file.json")
        """
    )
    doubtful = suite()
    doubtful.assert_outcomes(passed=1)
    doubtful.stdout.fnmatch_lines(["*UserWarning: cannot tell whether *"])
