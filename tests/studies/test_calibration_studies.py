"""The tables of isotropy calibration, from runs with given numbers, and the stars from the printed ones."""

from __future__ import annotations

import pytest

from isoviz.studies.calibration_understanding import CalibrationTable1, CalibrationTable4
from isoviz.studies.calibration_writing import CalibrationTable2, CalibrationTable3, CalibrationTable5, sets
from isoviz.studies.evidence import Evidence
from isoviz.studies.inputs import Inputs
from tests.studies import made_runs

SPECTRUM = ("spectrum_pol", "spectrum_exp")


def draw(study, numbers, scale="quick", **chosen):
    """Of all its runs at a scale."""
    inputs = Inputs.read(**chosen)
    runs = made_runs.records(study.declared(scale, inputs), numbers)
    return study().draw(runs, scale, inputs)


def verdicts(result):
    return {verdict.claim: verdict for verdict in result.verdicts}


def wobble(config):
    """Seeds differ, and not by the same amount with every method."""
    return 0.001 * config.seed * (1 + 0.1 * len(config.method))


def test_table_1_has_the_stars_with_what_welch_and_holm_make_of_them():
    result = draw(CalibrationTable1, lambda config: {"score": 0.8 + wobble(config)})
    stars = result.tables[1]
    by_cell = {(row[0], row[1], row[2], row[3]): row for row in stars.rows}
    mismatched = by_cell["RoBERTa", "CosReg", "MNLI", "mismatched accuracy"]
    assert mismatched[4:8] == [0.45, "yes", 0.0429, 0.0501]
    assert mismatched[8] > 0.5 and mismatched[9] > 0.5
    assert len([row for row in stars.rows if row[5] == "yes"]) == 2
    verdict = verdicts(result)["Calibration improves performance significantly in two cells, both of RoBERTa."]
    assert verdict.outcome == "not held"
    assert "p = 0.043 by the paper's test" in verdict.sentence


@pytest.mark.parametrize(("gain", "outcome"), [(0.05, "not held"), (-0.05, "held"), (0.0, "held")])
def test_table_1_asks_for_a_consistent_gain(gain, outcome):
    def numbers(config):
        return {"score": 0.8 + wobble(config) + (gain * (1 + 0.01 * config.seed) if config.method == "cosreg" else 0.0)}

    claim = "No calibration method is consistently better than the uncalibrated model."
    assert verdicts(draw(CalibrationTable1, numbers))[claim].outcome == outcome


def test_collapsed_spectrum_control_counts_as_degraded_and_its_isotropy_is_kept():
    def numbers(config):
        dead = config.method in SPECTRUM and config.task == "demo/paraphrase"
        i1 = 1.0 - 0.0001 * config.seed if config.method in SPECTRUM else 0.5 + wobble(config)
        return {"score": 0.5 if dead else 0.8 + wobble(config), "collapsed": "one class" if dead else None, "i1": i1}

    first, fourth = draw(CalibrationTable1, numbers), draw(CalibrationTable4, numbers)
    rows = {row[1]: row for row in first.tables[0].rows}
    assert rows["Spectrum control (polynomial)"][3] == "— (3 without a number)"
    claim = "Spectrum control degrades performance severely in some cases, or prevents learning."
    assert verdicts(first)[claim].outcome == "held" and "6 of 18 runs collapsed" in verdicts(first)[claim].sentence
    of_paraphrase = [row for row in fourth.tables[0].rows if row[1] == "Paraphrase"]
    assert [row[3] for row in of_paraphrase][2:4] == ["1.000 ± 0.000", "1.000 ± 0.000"]
    assert [verdict.outcome for verdict in fourth.verdicts][:2] == ["held", "held"]


def test_printed_numbers_are_beside_runs_of_the_same_model_and_task():
    chosen = {"models": ["FacebookAI/roberta-base"], "tasks": ["glue/mrpc", "glue/mnli"]}
    result = draw(CalibrationTable1, lambda config: {"f1": 0.8, "accuracy_mismatched": 0.7}, "full", **chosen)
    by_caption = {printed.what: printed for printed in result.published}
    assert by_caption["RoBERTa, glue/mrpc, none, f1"].published == 85.35
    assert by_caption["RoBERTa, glue/mrpc, none, f1"].reproduced == pytest.approx(80.0)
    assert by_caption["RoBERTa, glue/mnli, CosReg, accuracy_mismatched"].reproduced == pytest.approx(70.0)
    assert all(one.where == "Isotropy calibration, Table 1" for one in by_caption.values())


def test_flow_is_compared_on_the_small_set():
    planned = CalibrationTable2.declared("quick")
    (name, full), (other, small) = sets(Evidence(tuple(planned), ()))
    assert (name, other) == ("", "small set")
    assert full.distinct("method") == ["baseline", "cosreg", *SPECTRUM]
    assert small.distinct("method") == ["baseline", "flow"]

    def numbers(config):
        return {
            "bleu": 40 + wobble(config) - (5 if config.method in SPECTRUM else 0),
            "i1": 0.6 + wobble(config) + (0.3 if config.method in SPECTRUM else 0),
            "minutes": 0.5 + wobble(config) + (4.5 if config.method == "flow" else 0),
        }

    result = draw(CalibrationTable2, numbers)
    labels = [row[2] for row in result.tables[0].rows]
    assert labels[-2:] == ["Baseline, small set", "Flow, small set"] and len(labels) == 6
    assert [verdict.outcome for verdict in result.verdicts] == ["cannot tell", "held", "held"]
    assert "takes 10.0 times as long" in result.verdicts[2].sentence


def test_summaries_say_whether_all_rouges_agree():
    def numbers(config):
        drop = {"baseline": 0.0, "cosreg": 0.01, "spectrum_pol": 0.05, "spectrum_exp": 0.06, "flow": 0.02}[
            config.method
        ]
        score = 0.8 - drop + wobble(config)
        return {"rouge1": score, "rouge2": score / 2, "rougeL": score - 0.1, "i1": 0.6 + drop + wobble(config)}

    third, fifth = draw(CalibrationTable3, numbers), draw(CalibrationTable5, numbers)
    assert [verdict.outcome for verdict in third.verdicts[:2]] == ["held", "held"]
    assert fifth.verdicts[1].outcome == "held"
    assert "is 1.000 over" in fifth.verdicts[0].sentence
    assert fifth.tables[0].header[3:6] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert third.runs == fifth.runs
