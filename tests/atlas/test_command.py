"""`isoviz atlas` and `isoviz ruler --publish`, from a table of encoders to records."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from isoviz.__main__ import main
from isoviz.atlas import corpora, records
from tests.atlas.test_records import pairs
from tests.tiny import TinyModels


@pytest.fixture
def box(tmp_path: Path, tiny_models: TinyModels, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `encoders.csv`, `mine.csv` and its texts and pairs are."""
    monkeypatch.chdir(tmp_path)
    encoders = pd.DataFrame(
        {"model": [str(tiny_models("bert"))], "name": "lab/encoder", "weights": "", "licence": "MIT"}
    )
    encoders.to_csv("encoders.csv", index=False)
    related = pd.DataFrame(pairs(), columns=list(corpora.COLUMNS))
    related.to_csv("mine.csv", index=False)
    texts = pd.DataFrame({"text": [*related["sentence1"], *related["sentence2"]]})
    texts.assign(id=range(len(texts))).to_csv("texts.csv", index=False)
    linked = pd.DataFrame({"left": [*range(12), 0], "right": [*range(12, 24), 13], "score": 12 * [1.0] + [0.0]})
    linked.to_csv("pairs.csv", index=False)
    return tmp_path


def test_a_table_of_encoders_becomes_records(box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["atlas", "--models", "encoders.csv", "--corpora", "mine.csv", "--out"]
    assert main([*command, "one", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (record,) = records.in_folder(box / "one")
    assert document["records"] == [f"one/{record.file_name}"] and document["table"] == record.table()
    assert (record.encoder.name, record.encoder.licence, record.encoder.weights) == ("lab/encoder", "MIT", "")
    assert record.corpus.digest == corpora.read("mine.csv").digest and record.protocol == "mean"
    assert main([*command, "one"]) == 0, "the same again"
    assert record.corpus.digest[:8] in capsys.readouterr().out
    assert main([*command, "two", "--pooling", "cls"]) == 0
    assert [one.protocol for one in records.in_folder(box / "two")] == ["cls"]


def test_a_ruler_is_published_as_the_record_of_its_pairs(box: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = pd.read_csv("encoders.csv").at[0, "model"]
    ruler = ["ruler", "--model", model, "--texts", "texts.csv", "--pairs", "pairs.csv"]
    assert main([*ruler, "--publish", "published", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    (record,) = records.in_folder(box / "published")
    assert record.corpus.digest == corpora.read("mine.csv").digest and record.encoder.name == Path(model).name
    assert [level.cosine for level in record.ruler.floor] == pytest.approx(
        [level["cosine"] for level in measured["floor"]], abs=1e-5
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("atlas --models mine.csv --out out", "--models: 'mine.csv' needs a column 'model'"),
        ("atlas --models encoders.csv --corpora encoders.csv --out out", "--corpora: 'encoders.csv' has no column"),
        ("atlas --models encoders.csv --corpora none.csv --out out", "--corpora: "),
        ("atlas --models encoders.csv --corpora mine.csv --pooling sentence --out out", "--pooling: "),
        ("atlas --models encoders.csv --corpora mine.csv --pooling tokens --out out", "--pooling: "),
        ("atlas --models encoders.csv --out mine.csv", "--out: 'mine.csv' is no folder"),
        ("ruler --model demo/tiny-bert --texts texts.csv --publish out", "--publish: "),
    ],
)
def test_bad_input_is_one_line(box: Path, capsys: pytest.CaptureFixture[str], arguments: str, said: str) -> None:
    assert main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"isoviz: {said}") and error.count("\n") == 1 and not (box / "out").exists()
