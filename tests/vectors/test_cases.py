"""Files as people have them, in a folder of cases beside the checkout, where there is one: each gives its numbers, or its error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isoviz import metrics, vectors
from isoviz.__main__ import main
from isoviz.posthoc import zca
from isoviz.vectors import intake

BESIDE = Path(__file__).resolve().parents[3]
CASES = next((path.parent for path in BESIDE.glob("*/cases/expected.json")), None)
FILES = (CASES or BESIDE) / "files"
EXPECTED: dict[str, Any] = json.loads((CASES / "expected.json").read_text()) if CASES else {}
NUMBERS = ("n", "d", "mean_cosine", "participation_ratio", "isoscore")
Said = Callable[..., tuple[int, Any, str]]
CHECKS: dict[str, Callable[[Said, str, dict[str, Any]], None]] = {}
"""What a case says beside its numbers, by its file."""


def case(name: str) -> Callable[[Any], Any]:
    def add(check: Any) -> Any:
        CHECKS[name] = check
        return check

    return add


@pytest.fixture
def measured(capsys: pytest.CaptureFixture[str]) -> Said:
    def call(name: str, *options: str) -> tuple[int, Any, str]:
        code = main(["measure", "--embeddings", str(FILES / name), *options, "--json"])
        out, err = capsys.readouterr()
        return code, json.loads(out) if code == 0 else None, err

    return call


def check_numbers(document: Any, expected: dict[str, Any]) -> None:
    for name in NUMBERS:
        if name in expected:
            assert document[name] == pytest.approx(expected[name], abs=1e-6), name


@pytest.mark.parametrize("name", EXPECTED)
def test_case(name: str, measured: Said) -> None:
    expected = EXPECTED[name]
    numbers = expected.get("read", expected)
    if "participation_ratio" in numbers and "n" in numbers:
        code, document, err = measured(name)
        assert code == 0, err
        check_numbers(document, numbers)
    for condition, wanted in expected.items():
        if condition.startswith("with --") and isinstance(wanted, dict):
            check_numbers(measured(name, *condition.removeprefix("with ").split())[1], wanted)
    if "error" in expected:
        code, _, err = measured(name)
        assert code == 2 and len(err.splitlines()) == 1
    if name in CHECKS:
        CHECKS[name](measured, name, expected)


@case("glove.txt")
@case("word2vec.vec")
def _words(measured: Said, name: str, expected: dict[str, Any]) -> None:
    read = vectors.read(FILES / name)
    assert read.columns["text"].tolist()[:3] == read.columns["id"].tolist()[:3] == EXPECTED["glove.txt"]["texts"]


@case("tokens_with_blanks.txt")
def _blanks(measured: Said, name: str, expected: dict[str, Any]) -> None:
    assert vectors.read(FILES / name).columns["text"][[3, 7]].tolist() == [". . .", "at name@example.com"]


@case("numeric_words.txt")
@case("openai_batch.jsonl")
def _ids(measured: Said, name: str, expected: dict[str, Any]) -> None:
    read = vectors.read(FILES / name)
    assert read.columns["id"].tolist()[: len(expected["ids"])] == expected["ids"]
    assert intake.import_file(intake.ImportRequest("either", str(FILES / name))).kind == "vectors"


@case("sentences.txt")
def _sentences(measured: Said, name: str, expected: dict[str, Any]) -> None:
    assert "is plain text" in measured(name)[2]
    summary = intake.import_file(intake.ImportRequest("either", str(FILES / name)))
    assert (summary.kind, summary.n) == ("texts", expected["texts"])


@case("bracketed_text.parquet")
def _bracketed(measured: Said, name: str, expected: dict[str, Any]) -> None:
    assert vectors.read(FILES / name).facts["dimensions"] == ["embedding"]


def _says(name: str, *words: str) -> None:
    @case(name)
    def check(measured: Said, name: str, expected: dict[str, Any]) -> None:
        err = measured(name)[2]
        assert all(word in err for word in words), err


_says("numpy_truncated.csv", "the numbers are missing where numpy wrote '...'", "row 1, column 'v'")
_says("two_arrays.npz", "embeddings, other", "name the one to read")
_says("torch_like.pt", "is a PyTorch file that cannot be read")
_says("text_named.npy", "its content is text")
_says("three_d.npy", "(5, 7, 4)", "x.mean(axis=1) gives (5, 4)", "x.reshape(-1, 4)")
_says("one_d.npy", "(8,)", "add an axis")
_says("two_bad_rows.parquet", "2 of 24 rows have no readable vector, the first is row 5", "--skip-bad-rows")


@case("odd_types.parquet")
def _odd_types(measured: Said, name: str, expected: dict[str, Any]) -> None:
    for column, kind in {"when": "timestamp", "s": "struct"}.items():
        code, _, err = measured(name, "--column", column)
        assert code == 2 and f"column '{column}' holds {kind}" in err and len(err.splitlines()) == 1


@case("vectors.tsv")
def _projector(measured: Said, name: str, expected: dict[str, Any]) -> None:
    code, document, err = measured(name, "--labels", str(FILES / "labels.tsv"))
    assert code == 0, err
    check_numbers(document, expected)
    assert vectors.read(FILES / name, beside=FILES / "labels.tsv").columns["label"].nunique() == 24


@case("zero_rows.npy")
def _zero_rows(measured: Said, name: str, expected: dict[str, Any]) -> None:
    document = measured(name)[1]
    assert document["mean_cosine"] == pytest.approx(expected["mean_cosine"], abs=1e-6)
    assert document["n"] == 300 - expected["zero_rows"]
    assert f"{expected['zero_rows']} of 300 rows are zero and left out" in document["warnings"]


@case("near_copies.npy")
def _near_copies(measured: Said, name: str, expected: dict[str, Any]) -> None:
    document = measured(name)[1]
    assert document["twonn"] == pytest.approx(expected["twonn"], abs=expected["tolerance"])
    assert f"twonn leaves out {expected['left_out']} copies" in document["warnings"]


@case("equal_rows.npy")
def _equal_rows(measured: Said, name: str, expected: dict[str, Any]) -> None:
    document = measured(name)[1]
    assert {document[name] for name in ("isoscore", "twonn", "hubness", "participation_ratio", "ev_1")} == {None}
    assert "isoscore is undefined: all points are equal" in document["warnings"]


@case("dead_dimensions.npy")
def _dead(measured: Said, name: str, expected: dict[str, Any]) -> None:
    assert measured(name)[1]["dead_dimensions"] == expected["dead"]
    points = np.load(FILES / name)
    white = zca().fit(points).transform(points)
    assert metrics.isoscore(white) == pytest.approx(expected["isoscore_after_full_whitening"], abs=1e-6)


@case("centred.npy")
def _centred(measured: Said, name: str, expected: dict[str, Any]) -> None:
    assert measured(name)[1]["outlier_dimensions"] == expected["rogue_by_mean"]


@case("collapsed.npy")
def _collapsed(measured: Said, name: str, expected: dict[str, Any]) -> None:
    document = measured(name)[1]
    assert document["mean_cosine"] == pytest.approx(expected["mean_cosine"], abs=1e-9)
    assert any("cannot be told apart" in warning for warning in document["warnings"])


@case("fewer_rows_than_dimensions.npy")
def _simplex(measured: Said, name: str, expected: dict[str, Any]) -> None:
    points = np.load(FILES / name)
    white = zca().fit(points).transform(points)
    cosine = expected["cosines_after_full_whitening"]
    assert metrics.mean_cosine(white) == pytest.approx(cosine, abs=1e-6)


def test_each_case_is_checked() -> None:
    checked = ("read", "error", *NUMBERS)
    assert not [name for name, expected in EXPECTED.items() if name not in CHECKS and not {*checked} & {*expected}]
