"""The printed numbers: known names, plausible values, and doubts that follow from the numbers themselves."""

from __future__ import annotations

from collections import Counter

import pytest

from isoviz import methods, tasks
from isoviz.studies.papers import PAPERS
from isoviz.studies.published import beside, everything
from isoviz.tasks.metrics import METRICS

OTHER = {"lam", "zeta", "minutes_per_epoch", "average", "isoscore", "i1", "i2", "ev_1", "ev_2", "ev_3"}


def test_every_table_exists():
    assert Counter((published.paper, published.place) for published in everything()) == {
        ("isolayer", "Table 2"): 36,
        ("isolayer", "Table 3"): 96,
        ("istar", "Table 1"): 90,
        ("istar", "Table 2"): 60,
        ("isobn", "Table 1"): 40,
        ("isobn", "Table 2"): 72,
        ("calibration", "Table 1"): 130,
        ("calibration", "Table 2"): 48,
        ("calibration", "Table 3"): 24,
        ("calibration", "Table 4"): 234,
        ("calibration", "Table 5"): 36,
    }


def test_names_are_ours():
    for one in everything():
        assert one.paper in {source.slug for source in PAPERS}
        assert one.method in methods.catalogue()
        assert one.task in tasks.catalogue() or (one.task == "" and one.metric in ("average", "lam", "zeta"))
        relative = one.metric.startswith("relative_improvement_")
        assert one.metric.removesuffix("_mismatched") in METRICS or one.metric in OTHER or relative


def test_no_cell_is_printed_twice():
    """A cell is known by its place; papers that copy a number say so in the method's label or the remark."""
    keys = Counter((o.paper, o.place, o.model, o.task, o.label, o.metric, o.remark) for o in everything())
    assert [key for key, count in keys.items() if count > 1] == []


def test_values_are_where_their_metrics_live():
    for one in everything():
        if one.value is None:
            assert one.doubt  # a printed NaN
        elif one.metric in METRICS and METRICS[one.metric].highest == 1.0:
            assert -1 <= one.on_our_scale <= 1
            assert one.on_our_scale == pytest.approx(one.value / 100)
        elif one.metric in ("i1", "i2", "ev_1", "ev_2", "ev_3", "isoscore"):
            assert 0 <= one.value <= 1 and one.on_our_scale == one.value
        assert one.sd is None or one.sd >= 0


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
    assert all("reported elsewhere" not in one.label and "Table" in one.where for one in matches)
