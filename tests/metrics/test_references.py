"""The values that stand beside an IsoScore are those of the records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from isoviz import metrics
from isoviz.runs.examples import EXAMPLES, METHODS, Examples

ROOT = Path(__file__).resolve().parents[2]
REFERENCES = metrics.get("isoscore").references


def test_the_embedding_model() -> None:
    table = json.loads((ROOT / "docs" / "embeddings.json").read_text("utf-8"))[0]
    figures = json.loads((ROOT / "docs" / "data" / "isobn-figures.json").read_text("utf-8"))
    rows = [dict(zip(part["header"], row, strict=True)) for part in figures["tables"][:1] for row in part["rows"]]
    recorded = table["lines"]["none"]["isoscore"]
    assert table["title"].startswith("STS-B validation")
    assert REFERENCES[0].value == pytest.approx(recorded["value"], abs=5e-5)
    assert REFERENCES[0].n == recorded["n"]
    assert {REFERENCES[0].d} == {row["d"] for row in rows if row["encoder"].endswith("all-MiniLM-L6-v2")}


def test_the_bundled_encoder_before_and_after_fine_tuning() -> None:
    (profile,) = (EXAMPLES / "views").glob("*/profile.json")
    view = json.loads(profile.read_text("utf-8"))
    assert (view["request"]["model"], view["request"]["task"]) == ("demo/tiny-bert", "demo/acceptability")
    (before,) = (entry for entry in view["entries"] if (entry["layer"], entry["pooling"]) == (4, "mean"))
    assert REFERENCES[1].value == pytest.approx(before["readings"]["isoscore"]["value"], abs=5e-5)
    assert (REFERENCES[1].n, REFERENCES[1].d) == (before["n"], before["d"])

    (run,) = (
        row
        for row in Examples().list(group=METHODS)
        if (row.config.task, row.config.method, row.config.seed) == ("demo/acceptability", "baseline", 0)
    )
    assert run.config.model == "demo/tiny-bert" and run.result is not None
    after = run.result.isotropy.clouds["head"]
    assert REFERENCES[2].value == pytest.approx(run.result.isotropy.number("isoscore"), abs=5e-5)
    assert (REFERENCES[2].n, REFERENCES[2].d) == (after.n, after.d)


def test_only_isoscore_itself_has_its_values() -> None:
    assert [metric.slug for metric in metrics.catalogue().values() if metric.references] == ["isoscore"]
    assert "0.31" in metrics.get("isoscore").tooltip
