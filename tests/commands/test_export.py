"""`export`: the matrix or the model is written, and bad words are one line."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from isoviz.__main__ import main
from isoviz.models.extract import encode
from isoviz.posthoc import zca
from tests.models.sentence_folders import TEXTS, make
from tests.whatif.trained import train


@pytest.fixture
def made(tmp_path, tiny_models):
    """A model, and a file with its vectors."""
    model = make(tmp_path / "model", tiny_models("bert"), dense=8, normalize=True)
    np.save(tmp_path / "vectors.npy", encode(str(model), TEXTS))
    return model, tmp_path / "vectors.npy"


def call(capsys, *words):
    code = main(["export", *map(str, words)])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_model_that_made_the_vectors_and_the_chain(made, tmp_path, capsys):
    model, vectors = made
    words = ["--chain", "zca:eps=0.01", "--fit-on", vectors, "--model", model, "--out", tmp_path / "white", "--json"]
    code, out, _ = call(capsys, *words)
    document = json.loads(out)
    assert code == 0 and document["deviation"] < 1e-5 and document["rows"] == len(TEXTS)
    image = zca(eps=0.01).fit_transform(np.load(vectors))
    np.testing.assert_allclose(encode(str(tmp_path / "white"), TEXTS), image, atol=1e-5 * np.abs(image).max())


def test_vectors_that_the_model_does_not_produce_are_reported(tiny_models, tmp_path, capsys):
    model = make(tmp_path / "model", tiny_models("bert"), normalize=True)
    own = encode(str(model), TEXTS, truncate=9)
    files = {
        "own": own,
        "renormalised": own / np.linalg.norm(own, axis=1, keepdims=True),
        "of another model": own[:, ::-1] * np.where(np.arange(9) % 2, -1, 1),
    }
    for name, vectors in files.items():
        np.save(tmp_path / f"{name}.npy", vectors)
        words = ["--chain", "zca:eps=0.01", "--fit-on", tmp_path / f"{name}.npy", "--model", model, "--truncate-dim", 9]
        code, out, _ = call(capsys, *words, "--out", tmp_path / name, "--json")
        document, written = json.loads(out), json.loads((tmp_path / name / "origin.json").read_text())
        assert code == 0 and document["deviation"] < 1e-5
        reported = [written["warning"]] if name != "own" else []
        assert document["warnings"] == reported and all(reported)
        assert ("Warning" in (tmp_path / name / "README.md").read_text()) == (name != "own")


def test_the_effect_on_other_rows_of_the_file(tmp_path, capsys):
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    points = rng.normal(size=(300, 6)) * [30, 1, 1, 1, 1, 1] + 4.0 * np.outer(labels, np.eye(6)[3])
    frame = pd.DataFrame(points, columns=[f"x{index}" for index in range(6)])
    frame.assign(id=range(300), label=labels).to_csv(tmp_path / "a.csv", index=False)
    words = ["--chain", "zca", "--fit-on", tmp_path / "a.csv", "--out", tmp_path / "a.zip"]
    code, out, _ = call(capsys, *words, "--json")
    effects = {effect["name"]: effect for effect in json.loads(out)["effects"]}
    assert code == 0 and json.loads(out)["rows"] == 300
    assert effects["Silhouette"]["low"] > 0.05, "the first dimension hides the labels"
    assert effects["Silhouette"]["rows"] == "100 rows, with the chain fitted on 100 other rows"
    assert "Measured: Silhouette" in zipfile.ZipFile(tmp_path / "a.zip").read("README.md").decode()

    pairs = pd.DataFrame({"left": range(60), "right": range(30, 90), "score": rng.normal(size=60)})
    pairs.to_csv(tmp_path / "pairs.csv", index=False)
    words[-1] = tmp_path / "b.zip"
    assert "Spearman, cosine" in call(capsys, *words, "--pairs", tmp_path / "pairs.csv")[1]


def test_a_run_in_both_forms(tiny_models, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path / "home"))
    run = train(tmp_path / "home", tiny_models, epochs=1)
    words = ["--chain", "all_but_the_top:remove=1", "--run", run, "--out"]
    code, out, _ = call(capsys, *words, tmp_path / "chain.zip")
    assert code == 0 and "frozen head: " in out and "48 validation rows" in out
    code, out, _ = call(capsys, *words, tmp_path / "chain")
    assert code == 0 and "a sentence-transformers model" in out and (tmp_path / "chain" / "modules.json").is_file()
    assert call(capsys, *words, tmp_path / "chain")[2] == (
        f"isoviz: --out: '{tmp_path / 'chain'}' exists; choose a new file or folder\n"
    )
