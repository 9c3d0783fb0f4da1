"""Models that do not fit their checkpoints are bad input; what the text notes, `--json` says under `warnings`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from isoviz.__main__ import main
from isoviz.runs.store import Store
from tests.tiny import TinyModels, without_a_weight

Captured = pytest.CaptureFixture[str]
_NOTED = re.compile(r"^\s*(?:note: |(?=collapsed: ))(.*)$", re.MULTILINE)


@pytest.fixture
def holed(tiny_models: TinyModels, tmp_path: Path) -> Path:
    """A BERT of whose second layer a weight is gone."""
    return without_a_weight(tiny_models("bert"), tmp_path / "holed")


@pytest.fixture(autouse=True)
def _quiet_library() -> Iterator[None]:
    """As in a separate process, where the command line sets this before importing transformers."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    yield
    logging.set_verbosity(level)
    logging.enable_progress_bar()


@pytest.fixture
def small(holed: Path, cola: Path, tmp_path: Path) -> list[str]:
    """Options of a run that takes a second."""
    return ["--model", str(holed), "--task", "glue/cola", "--data", str(cola), "--epochs", "1", "--threads", "1",
            "--batch-size", "8", "--store", str(tmp_path / "store")]  # fmt: skip


def noted(captured: Captured) -> list[str]:
    """The notes of the text output, on stdout or stderr."""
    output = captured.readouterr()
    return [text.strip() for text in _NOTED.findall(output.out + "\n" + output.err)]


def same_in_json(words: Iterable[str], captured: Captured, expect: str) -> list[str]:
    """Both ways of one command; every note of the text is a warning of the document. `expect` is in one of them."""
    assert main([*words]) == 0
    notes = noted(captured)
    assert main([*words, "--json"]) == 0
    warnings = json.loads(captured.readouterr().out)["warnings"]
    assert any(expect in note for note in notes), notes
    assert set(notes) <= set(warnings)
    assert len(set(warnings)) == len(warnings)
    return warnings


@pytest.mark.parametrize("verb", [["train"], ["sweep", "--method", "istar", "--grid", "lam=0.5,1"]])
def test_weights_that_do_not_fit_are_bad_input_and_leave_no_run(
    small: list[str], tmp_path: Path, capsys: Captured, verb: list[str]
) -> None:
    assert main([*verb, *small, "--json"]) == 2
    output = capsys.readouterr()
    assert output.out == "" and len(output.err.strip().splitlines()) == 1
    assert "1 encoder weight is missing from the checkpoint (bert.encoder.layer.1.output.dense.weight)" in output.err
    assert "--allow-random" in output.err
    assert not (tmp_path / "store").exists() or Store(tmp_path / "store").list() == []


def test_train_and_runs(small: list[str], tmp_path: Path, capsys: Captured) -> None:
    warnings = same_in_json(["train", *small, "--allow-random"], capsys, "random weights: 1 encoder weight is missing")
    store = ["--store", str(tmp_path / "store")]
    assert set(warnings) == set(same_in_json(["runs", "list", *store], capsys, "random weights: "))
    (first, _) = Store(tmp_path / "store").list()
    same_in_json(["runs", "show", first.id, *store], capsys, "random weights: ")
    assert main(["runs", "export", first.id, *store]) == 0
    exported = json.loads(capsys.readouterr().out)
    assert any(text.startswith("random weights: ") for text in exported["warnings"])
    assert exported["runs"][0]["warnings"] == exported["warnings"]


@pytest.mark.parametrize("pooling", [[], ["--pooling", "head"]])
def test_measure_a_model(holed: Path, capsys: Captured, pooling: list[str]) -> None:
    words = ["measure", "--model", str(holed), "--max-eval", "8", "--allow-random", *pooling]
    same_in_json(words, capsys, "random weights: 1 encoder weight is missing")
