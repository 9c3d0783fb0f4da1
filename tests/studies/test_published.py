"""The printed numbers: known names, plausible values, and doubts that follow from the numbers themselves."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest

from isoviz import methods, studies, tasks
from isoviz.errors import InputError
from isoviz.studies import papers
from isoviz.studies.calibration_stars import stars, stars_in_words, stars_table
from isoviz.studies.papers import PAPERS, place_names
from isoviz.studies.published import Printed, beside, everything, of
from isoviz.studies.records import Evidence
from isoviz.tasks.metrics import METRICS

EXCLUDE = "exclude each other"
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


def test_partition_scores_that_exclude_each_other_are_marked_and_no_others():
    """Values between m and M vary by at most (M − m)/(2√(mM)) of their mean, so I2 ≤ (1 − I1)/(2√I1), but for rounding."""
    pairs: dict[tuple[str, ...], dict[str, Printed]] = {}
    for one in everything():
        if one.metric in ("i1", "i2"):
            pairs.setdefault((one.place, one.model, one.task, one.label, one.remark), {})[one.metric] = one
    assert len(pairs) == 141
    for pair in pairs.values():
        i1, i2 = pair["i1"].value, pair["i2"].value
        loosest = (1 - (i1 - 0.005)) / (2 * math.sqrt(max(i1 - 0.005, 1e-9)))
        marked = [EXCLUDE in value.doubt for value in pair.values()]
        if i2 - 0.005 > loosest:
            assert all(marked), pair
        if i2 <= (1 - i1) / (2 * math.sqrt(max(i1, 1e-9))):
            assert not any(marked), pair


def test_isoscores_that_the_explained_variance_rules_out_are_marked():
    """The rest of the variance spread evenly gives the largest IsoScore that three printed EV_k allow."""
    width = {"bert-base-cased": 768, "roberta-large": 1024}
    marked = []
    for score in of("isolayer", "Table 2"):
        if score.metric != "isoscore":
            continue
        label = "IsoLayer" if score.method == "isolayer" else "baseline (paper 000)"
        ev = [
            one.value
            for one in of("isolayer", "Table 3")
            if (one.model, one.task, one.label) == (score.model, score.task, label) and one.metric.startswith("ev_")
        ]
        shares = [ev[0] - 0.005, *(after - before for before, after in itertools.pairwise(ev))]
        rest, d = 1 - sum(shares), width[score.model]
        most = (1 / (sum(share**2 for share in shares) + rest**2 / (d - 3)) - 1) / (d - 1)
        assert bool(score.doubt) == (score.value > most + 1e-4), (score, most)
        marked.append(bool(score.doubt))
    assert (len(marked), sum(marked)) == (12, 9)


def test_the_stars_are_tested_again():
    columns = ["model", "label", "task", "metric"]
    by_cell = stars().set_index(columns)
    assert by_cell.index[by_cell["starred"]].tolist() == [
        ("RoBERTa", "CosReg", "glue/mnli", "accuracy_mismatched"),
        ("RoBERTa", "Spectrum-Pol", "glue/wnli", "accuracy"),
    ]
    names = ["difference", "student", "welch", "student_holm", "welch_holm"]
    mnli, wnli = by_cell[by_cell["starred"]][[*names, "doubt"]].to_dict("records")
    assert [mnli[name] for name in names] == pytest.approx([0.45, 0.043, 0.0505, 1.0, 1.0], abs=5e-4)
    assert wnli["student"] == pytest.approx(0.054, abs=1e-3) and "exponential" in wnli["doubt"]
    exponential = by_cell.loc["RoBERTa", "Spectrum-Exp", "glue/wnli", "accuracy"]
    assert exponential["student"] == pytest.approx(0.016, abs=5e-4) and not exponential["starred"]
    # nothing that is better survives a correction
    assert not ((by_cell["difference"] > 0) & (by_cell["student_holm"] < 0.05)).any()
    text = stars_in_words()
    assert "CosReg on RoBERTa, glue/mnli (mismatched): +0.45, p = 0.043 by the paper's test, 0.050 by Welch's" in text
    assert "after Holm's correction none of the better ones remain" in text
    rows = {tuple(row[:4]): row[4:] for row in stars_table(Evidence((), ())).rows}
    assert rows["RoBERTa", "CosReg", "MNLI", "mismatched accuracy"][:4] == [0.45, "yes", 0.0429, 0.0501]
    assert [cells[1] for cells in rows.values()].count("yes") == 2


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


def test_a_paper_is_found_by_its_name() -> None:
    assert papers.get("isobn").paper is methods.catalogue()["isobn"].paper
    with pytest.raises(InputError, match="calibration"):
        papers.get("isobm")
    with pytest.raises(InputError, match="calibration"):  # one of another package must not break the list of all
        replace(studies.get("istar-figure-2"), slug="lab-figure-2")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Figures 1, 2 and 4, Table 2", ("Figure 1", "Figure 2", "Figure 4", "Table 2")),
        ("Figures 3–5 and 7", ("Figure 3", "Figure 4", "Figure 5", "Figure 7")),
        ("I-STAR, caption of Figure 2", ("Figure 2",)),
        ("section 3", ()),
    ],
)
def test_places_are_read_from_words(text: str, names: tuple[str, ...]) -> None:
    assert place_names(text) == names
