"""Printed numbers beside runs: the papers' models by their hub ids, none for other models, none that a paper copied from another."""

from __future__ import annotations

import pytest

from isoviz.models.published import PUBLISHED
from isoviz.studies.published import everything
from isoviz.studies.published.matching import beside, where


@pytest.mark.parametrize(
    ("model", "task", "method", "metric", "printed"),
    [
        ("google-bert/bert-base-cased", "glue/rte", "isobn", "accuracy", [70.75]),
        ("/models/bert-base-cased/", "glue/rte", "isobn", "accuracy", [70.75]),
        ("bert-base-cased@1a2b", "glue/rte", "baseline", "accuracy", [67.87, 67.72, 62.24, 67.87]),
        ("albert/albert-base-v2", "glue/cola", "istar", "matthews", [55.22]),
        ("FacebookAI/roberta-base", "glue/mnli", "cosreg", "accuracy_mismatched", [85.64]),
        ("demo/tiny-bert", "glue/rte", "isobn", "accuracy", []),
        ("google-bert/bert-base-cased", "glue/rte", "isobn", "f1", []),
    ],
)
def test_printed_numbers_beside_a_run(model: str, task: str, method: str, metric: str, printed: list[float]) -> None:
    matches = beside(model, task, method, metric)
    assert [one.value for one in matches] == printed
    assert all("reported elsewhere" not in one.label and "Table" in where(one) for one in matches)


def test_every_paper_has_a_model_with_printed_numbers() -> None:
    keys = {(published.task, published.method, published.metric) for published in everything() if published.task}
    covered = {one.paper for model in PUBLISHED for key in keys for one in beside(model.name, *key)}
    assert covered == {"isolayer", "istar", "isobn", "calibration"}
