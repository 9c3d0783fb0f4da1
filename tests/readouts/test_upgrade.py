"""Maps between two encoders' vectors against SciPy and scikit-learn, their traps, and held-out recall by a loop."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import Ridge

from isoviz.__main__ import main
from isoviz.errors import InputError
from isoviz.readouts.upgrade import fit, upgrade

RNG = np.random.default_rng(2)


def rotation(d: int) -> NDArray[np.float64]:
    return np.asarray(np.linalg.qr(RNG.normal(size=(d, d)))[0])


OLD = RNG.normal(size=(300, 8)) * np.geomspace(2, 0.3, 8) + 1.0
NEW = 2.5 * OLD @ rotation(8) - 3.0 + 0.2 * RNG.normal(size=(300, 8))


def test_procrustes_is_scipys_with_the_best_factor() -> None:
    x, y = OLD - OLD.mean(axis=0), NEW - NEW.mean(axis=0)
    expected, total = orthogonal_procrustes(x, y)
    matrix, offset = fit(OLD, NEW, "procrustes")
    factor = total / (x**2).sum()
    np.testing.assert_allclose(matrix, factor * expected, atol=1e-9)
    np.testing.assert_allclose(OLD.mean(axis=0) @ matrix + offset, NEW.mean(axis=0), atol=1e-9)
    assert factor == pytest.approx(2.5, abs=0.05)


def test_ridge_is_scikit_learns_with_a_penalty_of_the_grid() -> None:
    matrix, offset = fit(OLD, NEW, "ridge")
    unit = ((OLD - OLD.mean(axis=0)) ** 2).sum() / 8
    known = [Ridge(alpha=unit * power).fit(OLD, NEW) for power in np.logspace(-6, 2, 9)]
    assert min(np.abs(one.coef_.T - matrix).max() + np.abs(one.intercept_ - offset).max() for one in known) < 1e-6


@pytest.mark.parametrize("kind", ["procrustes", "ridge"])
@pytest.mark.parametrize("shape", [(40, 6, 9), (40, 9, 6), (30, 50, 50), (30, 50, 40), (30, 1, 3)])
def test_other_widths_and_fewer_rows_than_dimensions(kind: str, shape: tuple[int, int, int]) -> None:
    n, d, width = shape
    old = RNG.normal(size=(n, d))
    new = (old @ RNG.normal(size=(d, width))) + 2.0
    result = upgrade(old, new, kind)  # type: ignore[arg-type]
    assert result.affine.matrix.shape == (d, width) and np.isfinite(result.affine.matrix).all()
    assert n - 1 <= result.mapped.n <= n and 0 <= result.mapped.value <= 1  # on a line, one may be as near as a copy
    if kind == "procrustes":
        spans = np.linalg.svd(result.affine.matrix, compute_uv=False)
        used = spans[spans > 1e-9 * spans[0]]
        np.testing.assert_allclose(used, used[0], rtol=1e-9)  # a factor times orthonormal directions
        assert len(used) <= min(n - 1, d, width)
    if d <= width and n > d:
        assert upgrade(old, new, "ridge").mapped.value > 0.95  # a linear map loses nothing


def test_recall_is_of_the_half_that_the_map_was_not_fitted_on() -> None:
    order = np.random.default_rng(0).permutation(300)
    shares = {"mapped": [], "old": []}
    for fitted, held_out in ((order[:150], order[150:]), (order[150:], order[:150])):
        held_out = np.sort(held_out)
        mapped = fit(OLD[fitted], NEW[fitted], "procrustes").of_points(OLD[held_out])
        unit = {
            k: v / np.linalg.norm(v, axis=1, keepdims=True)
            for k, v in (("m", mapped), ("n", NEW[held_out]), ("o", OLD[held_out]))
        }
        for row in range(150):
            others = np.delete(np.arange(150), row)
            truth, *found = [
                set(others[np.argsort(-unit[documents][others] @ unit[query][row])[:10]].tolist())
                for query, documents in (("n", "n"), ("n", "m"), ("o", "o"))
            ]
            for name, one in zip(shares, found, strict=True):
                shares[name].append(len(truth & one) / 10)
    result = upgrade(OLD, NEW)
    assert result.mapped.value == pytest.approx(np.mean(shares["mapped"]), abs=5e-4)  # but for ties in single precision
    assert result.old.value == pytest.approx(np.mean(shares["old"]), abs=5e-4)
    assert result.gain.value == pytest.approx(result.mapped.value - result.old.value)
    assert result.mapped.low < result.mapped.value < result.mapped.high
    again = RNG.permutation(300)
    assert upgrade(OLD[again], NEW[again]).mapped.value == pytest.approx(result.mapped.value, abs=0.05)  # other halves


def test_questions_search_all_rows_each_mapped_by_the_other_halfs_map(tmp_path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    asked = RNG.normal(size=(40, 8)) * np.geomspace(2, 0.3, 8) + 1.0, RNG.normal(size=(40, 8)) - 3.0
    order, mapped = np.random.default_rng(0).permutation(300), np.empty_like(NEW)
    for fitted, held_out in ((order[:150], order[150:]), (order[150:], order[:150])):
        mapped[held_out] = fit(OLD[fitted], NEW[fitted], "procrustes").of_points(OLD[held_out])

    def first(questions: NDArray[np.float64], documents: NDArray[np.float64]) -> list[set[int]]:
        cosines = questions @ (documents / np.linalg.norm(documents, axis=1, keepdims=True)).T
        return [set(row[:10].tolist()) for row in np.argsort(-cosines, axis=1)]

    truth = first(asked[1], NEW)
    result = upgrade(OLD, NEW, questions=asked)
    for shown, found in ((result.mapped, first(asked[1], mapped)), (result.old, first(asked[0], OLD))):
        expected = np.mean([len(one & other) / 10 for one, other in zip(truth, found, strict=True)])
        assert shown.value == pytest.approx(expected, abs=1e-3) and shown.n == 40
    monkeypatch.chdir(tmp_path)
    for name, points in {"old": OLD, "new": NEW, "q": asked[0], "r": asked[1]}.items():
        np.save(f"{name}.npy", points)
    (tmp_path / "links.csv").write_text("query,document\n" + "".join(f"{row},{row}\n" for row in range(1, 41)))
    words = [
        "upgrade",
        "--old",
        "old.npy",
        "--new",
        "new.npy",
        "--queries",
        "q.npy",
        "r.npy",
        "--relevance",
        "links.csv",
    ]
    assert main([*words, "--require", "recall10=0.999", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["recall10"]["mapped"]["value"] == pytest.approx(result.mapped.value)
    assert [one["name"] for one in document["search"]["encoders"]] == ["new", "old", "mapped"]
    assert main(["upgrade", "--old", "old.npy", "--new", "new.npy", "--queries", "q.npy", "q.npy"]) == 0
    capsys.readouterr()
    assert main(["upgrade", "--old", "old.npy", "--new", "new.npy", "--relevance", "links.csv"]) == 2
    assert "--queries: give two files" in capsys.readouterr().err


def test_rows_must_match() -> None:
    for old, new in ((OLD, NEW[:-1]), (OLD[:20], NEW[:20])):
        with pytest.raises(InputError) as caught:
            upgrade(old, new)
        assert caught.value.field == "new"


def test_the_command_line_writes_the_map(tmp_path, capsys, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.chdir(tmp_path)
    np.save("old.npy", OLD.astype(np.float32))
    np.save("new.npy", NEW.astype(np.float32))
    assert main(["upgrade", "--old", "old.npy", "--new", "new.npy", "--out", "map.zip", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["recall10"]["mapped"]["value"] == pytest.approx(upgrade(OLD, NEW).mapped.value, abs=1e-3)
    assert document["old"]["d"] == 8 and document["recall10"]["gain"]["n"] == 300
    assert set(zipfile.ZipFile("map.zip").namelist()) == {"transform.safetensors", "README.md", "origin.json"}
    assert main(["upgrade", "--old", "old.npy", "--new", "new.npy", "--map", "ridge"]) == 0
    assert "0." in capsys.readouterr().out
    low, high = (document["recall10"]["mapped"][end] for end in ("low", "high"))
    for share, code, words in (
        (low - 0.01, 0, "Recall"),
        ((low + high) / 2, 1, "cannot tell whether recall10 is"),
        (high + 0.01, 1, "recall10 is below"),
    ):
        assert main(["upgrade", "--old", "old.npy", "--new", "new.npy", "--require", f"recall10={share}"]) == code
        assert words in capsys.readouterr().out
