"""What a user may choose, and the plain data of a result: words in, words out, and nothing lost on the way to JSON."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isoviz import studies
from isoviz.errors import InputError
from isoviz.studies import istar_figure_2
from isoviz.studies.inputs import Inputs, NamedModel
from isoviz.studies.result import SHADES, Matrix, Table

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
    with pytest.raises(TypeError, match="no settings of a study: ..warmup"):
        Inputs.read(warmup=0.1)
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
        ({"models": ["a/b", "a/b"]}, "model: 'a/b' is given twice"),
        ({"tasks": ["glue/rte", "glue/rte"]}, "tasks: 'glue/rte' is given twice"),
        ({"data": ["folder"]}, "data: expected TASK=DIR, as in glue/mrpc"),
        ({"data": ["glue/rte=a", "glue/rte=b"]}, "data: 'glue/rte' has two folders"),
    ],
)
def test_other_words_are_refused(words, message):
    with pytest.raises(InputError, match=message):
        Inputs.read(**words)


def test_a_study_refuses_what_it_does_not_take():
    for name in ("models", "tasks"):
        with pytest.raises(InputError, match="'istar-figure-2' does not take this .it makes its own points."):
            istar_figure_2.FIGURE_2.run("quick", print, Inputs.read(**{name: ["demo/tiny-bert"]}))


def test_a_matrix_survives_in_steps():
    rng = np.random.default_rng(0)
    half = np.triu(rng.random((9, 9)), 1)
    matrix = half + half.T + np.eye(9)
    restored = Matrix.model_validate_json(Matrix.of(matrix).model_dump_json()).array()
    assert restored.shape == (9, 9)
    assert np.array_equal(restored, restored.T)
    np.testing.assert_allclose(restored, matrix, atol=0.5 / SHADES + 1e-12)
    assert np.array_equal(Matrix.of(np.eye(1)).array(), np.eye(1))


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((2, 3)), "square matrix with entries from 0 to 1, got shape .2, 3."),
        (np.array([[1.0, 1.5], [1.5, 1.0]]), "entries from 0 to 1"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "entries from 0 to 1"),
        (np.array([[1.0, 0.2], [0.5, 1.0]]), "symmetric"),
        (np.array([[0.0, 0.2], [0.2, 0.0]]), "ones on its diagonal"),
    ],
)
def test_a_matrix_of_another_kind_is_refused(matrix, message):
    with pytest.raises(ValueError, match=message):
        Matrix.of(matrix)


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
