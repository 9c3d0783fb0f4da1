"""`transform`: every transform of the catalogue on files, in blocks, and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from isoviz import posthoc
from isoviz.__main__ import main
from isoviz.operations import transform
from isoviz.parameters import start_values
from isoviz.readouts.cosines import overlap
from isoviz.readouts.image import Image
from isoviz.whatif import chains
from tests.posthoc.clouds import cloud
from tests.readouts.searches import made


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `train.npy` (float32) and `dev.npy` (float64), in blocks of three rows."""
    np.save(tmp_path / "train.npy", cloud().astype(np.float32))
    np.save(tmp_path / "dev.npy", cloud(10, seed=1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transform, "BLOCK", 3 * 8 * 8)
    return tmp_path


@pytest.mark.parametrize("slug", [slug for slug, kind in posthoc.catalogue().items() if not kind.needs])
def test_every_transform_is_offered(slug: str, files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    step = chains.step(slug, **start_values(posthoc.get(slug).Params))
    words = ["--chain", step.text, "--in", "dev.npy", "--fit-on", "train.npy", "--out", "after.npy", "--json"]
    assert main(["transform", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["chain"] == step.text and document["out"]["n"] == 10
    expected = step.make().fit(np.load("train.npy")).transform(np.load("dev.npy"))
    np.testing.assert_allclose(np.load("after.npy"), expected, rtol=1e-12, atol=1e-12)
    kept = overlap(Image(np.load("dev.npy")), Image(expected)).value
    assert document["neighbours"]["recall10"] == pytest.approx(kept, abs=1e-9) and document["neighbours"]["n"] == 10
    assert not list(files.glob("*.partial"))


def test_a_search_judges_the_chain_on_all_questions_and_on_those_held_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    search = made(seed=4)
    for name, points in (("documents", search.documents), ("questions", search.questions)):
        np.save(tmp_path / f"{name}.npy", points)
    (tmp_path / "qrels").mkdir()  # relevance as BEIR has it, by row numbers
    links = pd.DataFrame(np.add(search.relevance, [1, 1, 0]), columns=["query-id", "corpus-id", "score"])
    links.to_csv(tmp_path / "qrels/test.tsv", sep="\t", index=False)
    words = [
        "transform",
        "--chain",
        "zca:strength=1",
        "--in",
        f"{tmp_path}/documents.npy",
        "--out",
        f"{tmp_path}/o.npy",
    ]
    words += ["--queries", f"{tmp_path}/questions.npy", "--relevance", str(tmp_path), "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["search"]
    chain = chains.step("zca", strength=1.0).make().fit(search.documents)
    means = []
    for change in (lambda points: points, chain.transform):
        documents, questions = (np.asarray(change(part)) for part in (search.documents, search.questions))
        cosines = (
            (questions @ documents.T) / np.linalg.norm(questions, axis=1)[:, None] / np.linalg.norm(documents, axis=1)
        )
        scores = np.zeros((len(questions), 2))
        for row, ranking in enumerate(np.argsort(-cosines, axis=1)[:, :10]):
            grades = {document: grade for query, document, grade in search.relevance if query == row}
            discount = 1 / np.log2(np.arange(2, 12))
            ideal = np.sort([*grades.values(), *[0] * 10])[::-1][:10] @ discount
            scores[row, 0] = np.array([grades.get(document, 0) for document in ranking]) @ discount / ideal
        means.append(scores[:, 0].mean())
    assert found["all"]["questions"] == 60 and found["held_back"]["questions"] == 20
    assert found["all"]["ndcg10_change"]["value"] == pytest.approx(means[1] - means[0], abs=1e-6)
    assert main([*words[:-3], "--json"]) == 2 and "--relevance: questions need" in capsys.readouterr().err


def test_float32_stays_float32_and_a_file_may_be_replaced(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = np.load("train.npy")
    chain = "all_but_the_top:remove=2~pca_whitening:components=3"
    assert main(["transform", "--chain", chain, "--in", "train.npy", "--out", "train.npy"]) == 0
    after = np.load("train.npy")
    assert after.dtype == np.float32 and after.shape == (120, 3)
    (files / "beside").touch()
    assert (files / "train.npy").stat().st_mode == (files / "beside").stat().st_mode, "as any new file"
    fitted = posthoc.chain([step.make() for step in chains.read(chain)])
    np.testing.assert_allclose(after, fitted.fit_transform(before), rtol=1e-6, atol=1e-6)
    text = capsys.readouterr().out
    assert "All-but-the-top → PCA whitening, fitted on train.npy (n = 120)" in text and "removed 2" in text


def test_languages_come_from_a_column_of_both_tables(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def table(name: str, points: NDArray[np.float64], languages: list[str | None]) -> None:
        frame = pd.DataFrame(points, columns=[f"dim_{number}" for number in range(points.shape[1])])
        frame.assign(language=languages).to_parquet(name)

    train, dev = cloud(), cloud(10, seed=1)
    table("train.parquet", train, ["de", "en", "fr"] * 40)
    table("dev.parquet", dev, ["en"] * 4 + ["de"] * 4 + ["xx", None])
    words = ["--chain", "language_removal", "--groups", "language", "--in", "dev.parquet", "--fit-on", "train.parquet"]
    assert main(["transform", *words, "--out", "after.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["affine"] is False
    means = [train[1::3].mean(axis=0)] * 4 + [train[::3].mean(axis=0)] * 4 + [train.mean(axis=0)] * 2
    np.testing.assert_allclose(np.load("after.npy"), dev - np.array(means), atol=1e-9)


def test_embed_filter_names_its_model(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("wide.npy", cloud(20, 128))
    chain = "embed_filter:model=demo/tiny-bart,ratio=4"
    assert main(["transform", "--chain", chain, "--in", "wide.npy", "--out", "after.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chain"] == chain and np.load("after.npy").shape == (20, 32)


def test_it_says_what_was_dropped_and_what_cannot_be_judged(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    random = np.random.default_rng(0)
    np.save("few.npy", random.normal(size=(20, 64)))
    np.save("alike.npy", random.normal(size=8) + 1e-4 * random.normal(size=(60, 8)))

    def said(chain: str, source: str, *more: str) -> str:
        assert main(["transform", "--chain", chain, "--in", source, "--out", "out.npy", *more]) == 0
        return capsys.readouterr().out

    assert "the same cosine, −1/19" in said("zca", "few.npy")
    assert "IsoScore, unbiased, is undefined for these vectors" in said("zca:ridge=0.1", "train.npy")
    assert "IsoScore, unbiased" not in said("zca:ridge=0.1", "dev.npy", "--fit-on", "train.npy")
    assert "IsoScore, unbiased" not in said("batch_norm", "train.npy")
    assert "Before the transforms, the rows cannot be told apart" in said("all_but_the_top", "alike.npy")
    assert (
        "times the mean variance: this is plain centring"
        in json.loads(said("zca:eps=1e6", "dev.npy", "--json"))["notes"][0]
    )
