"""`isoviz study`: one JSON document, a result on disk, and one-line errors."""

from __future__ import annotations

import json

import pytest

from isoviz import studies
from isoviz.__main__ import main
from isoviz.studies import istar_figure_2


@pytest.fixture
def tiny_quick(monkeypatch):
    """The quick scale at a size of a blink; everything else is as in the real one."""
    plan = istar_figure_2.Plan(points=700, shrinkage_points=300, sizes=(8, 32), draws=10, d=12)
    monkeypatch.setattr(istar_figure_2, "PLANS", {**istar_figure_2.PLANS, "quick": plan})


def test_list_is_one_document_with_every_study(capsys):
    assert main(["study", "list", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["studies", "warnings"]
    assert {card["slug"] for card in document["studies"]} == {entry.slug for entry in studies.listed()}
    assert len(document["studies"]) == 23
    for card in document["studies"]:
        assert set(card["scales"]) == {"quick", "full"}
        assert card["kind"] in ("figure", "table")
        assert card["open_points"]


def test_run_writes_the_document_it_prints(tiny_quick, capsys, tmp_path):
    folder = tmp_path / "new" / "folder"
    assert main(["study", "run", "istar-figure-2", "--out", str(folder), "--json"]) == 0
    out, _ = capsys.readouterr()
    document = json.loads(out)
    assert document.pop("warnings")
    assert json.loads((folder / "istar-figure-2.json").read_text()) == document
    assert studies.Result.model_validate(document).provenance.scale == "quick"


def test_run_speaks_plainly(tiny_quick, capsys):
    assert main(["study", "run", "istar-figure-2"]) == 0
    out, _ = capsys.readouterr()
    assert "what they draw is in --json" in out and "scale quick, seed 0" in out


def test_a_study_of_your_own_encoder_and_files(tiny_models, cola, capsys, tmp_path):
    words = ["--model", f"toy/bert={tiny_models('bert')}", "--tasks", "glue/cola", "--data", f"glue/cola={cola}"]
    assert main(["study", "run", "isobn-figures", *words, "--out", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert "mean |ρ|" in out
    assert "differs in the encoder: here toy/bert, there bert-base-cased" in out
    assert "Figure 1, Figure 2, Figure 4: what they draw is in --json and --out" in out
    progress = [line for line in err.splitlines() if line]
    assert len(progress) == len(set(progress))
    stored = studies.Result.model_validate_json((tmp_path / "isobn-figures.json").read_text())
    assert [figure.name for figure in stored.figures] == ["sigma", "correlation", "ev"]
