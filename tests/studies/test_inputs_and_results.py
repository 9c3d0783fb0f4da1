"""What a user may choose, and the plain data of a result: words in, words out, and nothing lost on the way to JSON."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np
import pytest

from isoviz import studies
from isoviz.errors import InputError
from isoviz.studies import figures, istar_figure_2
from isoviz.studies.inputs import Inputs, NamedModel
from isoviz.studies.result import Table

RECORDS = sorted((Path(__file__).resolve().parents[2] / "docs" / "data").glob("*.json"))


def test_arguments_are_restored_without_this_machines_folders(tmp_path):
    folder = tmp_path / "encoder"
    folder.mkdir()
    inputs = Inputs.read(
        [f"org/name={folder}", str(folder), "hub/id@main"], ["glue/mrpc", "glue/cola"], ["glue/mrpc=/data/mrpc"]
    )
    assert [(model.source, model.name) for model in inputs.models] == [
        (str(folder), "org/name"),
        (str(folder), "encoder"),
        ("hub/id@main", "hub/id@main"),
    ]
    assert dict(inputs.data) == {"glue/mrpc": "/data/mrpc"}
    assert inputs.words() == ["--model", "org/name=DIR", "encoder=DIR", "hub/id@main", "--tasks", "glue/mrpc",
                              "glue/cola", "--data", "glue/mrpc=DIR"]  # fmt: skip
    sizes = Inputs.read(max_train=800, learning_rate=1e-4, epochs=None)
    assert sizes.words() == ["--max-train", "800", "--lr", "0.0001"]
    assert set(sizes.given()) == {"max_train", "learning_rate"}
    assert Inputs().words() == []
    assert Inputs.read().given() == {}


def test_a_folder_may_have_an_equals_sign(tmp_path):
    folder = tmp_path / "lr=3e-5"
    folder.mkdir()
    assert NamedModel.read(str(folder)) == NamedModel(str(folder), "lr=3e-5")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"models": ["=x"]}, "model: expected MODEL or NAME=MODEL"),
        ({"models": ["name="]}, "model: expected MODEL or NAME=MODEL"),
        ({"data": ["folder"]}, "data: expected TASK=DIR, as in glue/mrpc"),
    ],
)
def test_other_words_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        Inputs.read(**words)


def test_a_study_refuses_what_it_does_not_take():
    for name in ("models", "tasks"):
        with pytest.raises(InputError, match="'istar-figure-2' does not take this .it makes its own points."):
            istar_figure_2.FIGURE_2.run("quick", print, Inputs.read(**{name: ["demo/tiny-bert"]}))
    with pytest.raises(InputError, match="allowed: full, quick"):
        istar_figure_2.FIGURE_2.run("huge", print)


def test_a_matrix_survives_in_steps():
    values = np.random.default_rng(0).random((9, 9))
    z = figures.matrix("", values).traces[0]["z"]
    restored = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape(9, 9) / figures.SHADES
    np.testing.assert_allclose(restored, values, atol=0.5 / figures.SHADES + 1e-12)


def test_cells_are_texts_counts_and_three_digits():
    assert Table(title="t", header=list("abcd"), rows=[["x", 12345, 0.123456, None]]).lines() == [
        ["x", "12,345", "0.123", "—"]
    ]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_every_record_in_the_docs_belongs_to_a_study_and_is_complete(path):
    result = studies.Result.model_validate_json(path.read_text(encoding="utf-8"))
    study = studies.get(path.stem)
    assert result.provenance.study == study.slug
    assert result.provenance.scale in study.scales
    assert result.figures or result.tables
    assert not any(text.startswith(("/", "~")) for text in result.provenance.inputs)
