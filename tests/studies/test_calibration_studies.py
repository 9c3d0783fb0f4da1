"""The tables of isotropy calibration, from runs with given numbers, and the stars from the printed ones."""

from __future__ import annotations

import pytest

from isoviz.studies import calibration
from isoviz.studies.calibration import sets
from isoviz.studies.inputs import Inputs
from isoviz.studies.published import margin
from isoviz.studies.records import Evidence
from tests.studies import made_runs

SPECTRUM = ("spectrum_pol", "spectrum_exp")


def draw(study, numbers, scale="quick", **chosen):
    """Of all its runs at a scale."""
    inputs = Inputs.read(**chosen)
    runs = made_runs.records(study.declared(scale, inputs), numbers)
    return study.draw(runs, scale, inputs)


def verdicts(result):
    return {verdict.claim: verdict for verdict in result.verdicts}


def wobble(config):
    """Seeds differ, and not by the same amount with every method."""
    return 0.001 * config.seed * (1 + 0.1 * len(config.method))


def test_table_1_has_the_stars_with_what_welch_and_holm_make_of_them():
    result = draw(calibration.TABLE_1, lambda config: {"score": 0.8 + wobble(config)})
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
    assert verdicts(draw(calibration.TABLE_1, numbers))[claim].outcome == outcome


def test_collapsed_spectrum_control_counts_as_degraded_and_its_isotropy_is_kept():
    def numbers(config):
        dead = config.method in SPECTRUM and config.task == "demo/paraphrase"
        i1 = 1.0 - 0.0001 * config.seed if config.method in SPECTRUM else 0.5 + wobble(config)
        return {"score": 0.5 if dead else 0.8 + wobble(config), "collapsed": "one class" if dead else None, "i1": i1}

    first, fourth = draw(calibration.TABLE_1, numbers), draw(calibration.TABLE_4, numbers)
    rows = {row[1]: row for row in first.tables[0].rows}
    assert rows["Spectrum control (polynomial)"][3] == "— (3 without a number)"
    claim = "Spectrum control degrades performance severely in some cases, or prevents learning."
    assert verdicts(first)[claim].outcome == "held" and "6 of 18 runs collapsed" in verdicts(first)[claim].sentence
    of_paraphrase = [row for row in fourth.tables[0].rows if row[1] == "Paraphrase"]
    assert [row[3] for row in of_paraphrase][2:4] == ["1.000 ± 0.000", "1.000 ± 0.000"]
    assert [verdict.outcome for verdict in fourth.verdicts][:2] == ["held", "held"]


def test_printed_numbers_are_beside_runs_of_the_same_model_and_task():
    chosen = {"models": ["FacebookAI/roberta-base"], "tasks": ["glue/mrpc", "glue/mnli"]}
    result = draw(calibration.TABLE_1, lambda config: {"f1": 0.8, "accuracy_mismatched": 0.7}, "full", **chosen)
    by_caption = {printed.what: printed for printed in result.published}
    assert by_caption["RoBERTa, glue/mrpc, none, f1"].published == 85.35
    assert by_caption["RoBERTa, glue/mrpc, none, f1"].reproduced == pytest.approx(80.0)
    assert by_caption["RoBERTa, glue/mnli, CosReg, accuracy_mismatched"].reproduced == pytest.approx(70.0)
    assert all(one.where == "Isotropy calibration, Table 1" for one in by_caption.values())


def test_flow_is_compared_on_the_small_set():
    planned = calibration.TABLE_2.declared("quick")
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

    result = draw(calibration.TABLE_2, numbers)
    labels = [row[2] for row in result.tables[0].rows]
    assert labels[-2:] == ["Baseline, small set", "Flow, small set"] and len(labels) == 6
    # CosReg's and Flow's differences from none are far below the margin, 1.37 BLEU
    assert [verdict.outcome for verdict in result.verdicts] == ["held", "held", "held", "held"]
    assert "takes 10.0 times as long" in result.verdicts[3].sentence


def test_summaries_say_whether_all_rouges_agree():
    def numbers(config):
        drop = {"baseline": 0.0, "cosreg": 0.01, "spectrum_pol": 0.05, "spectrum_exp": 0.06, "flow": 0.02}[
            config.method
        ]
        score = 0.8 - drop + wobble(config)
        return {"rouge1": score, "rouge2": score / 2, "rougeL": score - 0.1, "i1": 0.6 + drop + wobble(config)}

    third, fifth = draw(calibration.TABLE_3, numbers), draw(calibration.TABLE_5, numbers)
    by_claim = verdicts(third)
    assert by_claim["No calibrated model is significantly better in ROUGE-1."].outcome == "held"
    spectrum = "Spectrum control makes the vocabulary more isotropic at the cost of ROUGE-1."
    assert by_claim[spectrum].outcome == "held"
    assert fifth.verdicts[1].outcome == "held"
    assert "is 1.000 over" in fifth.verdicts[0].sentence
    assert fifth.tables[0].header[3:6] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert third.runs == fifth.runs


def noisy(config, size):
    """A score whose spread over seeds is about `size`, different with every method."""
    return 0.8 + size * ((config.seed * 7 + len(config.method) * 3 + len(config.params)) % 5 - 2)


@pytest.mark.parametrize(("size", "outcome"), [(0.0001, "held"), (0.02, "cannot tell")])
def test_a_claim_that_nothing_changes_needs_intervals_within_the_papers_spread(size, outcome):
    third, fifth = (
        draw(study, lambda config: dict.fromkeys(("rouge1", "rouge2", "rougeL"), noisy(config, size)))
        for study in (calibration.TABLE_3, calibration.TABLE_5)
    )
    for result, claim in (
        (third, "No calibrated model is significantly better in ROUGE-1."),
        (third, "Flow “performs comparably to uncalibrated BART”."),
        (fifth, "No calibrated model is significantly better in ROUGE-L."),
    ):
        assert verdicts(result)[claim].outcome == outcome
    first = draw(calibration.TABLE_1, lambda config: {"score": noisy(config, 10 * size)})
    assert [verdict.outcome for verdict in first.verdicts if "consistently" in verdict.claim] == [outcome]


def test_margins_are_twice_the_median_printed_deviation():
    assert margin("calibration", "Table 2", "bleu") == pytest.approx(2 * 0.685)  # 0.08, 0.35, 1.02 and 2.25
    assert margin("calibration", "Table 3", "rouge1") == pytest.approx(2 * 0.0015)  # 0.05 and 0.25 percent
    assert margin("calibration", "Table 4", "i1") == pytest.approx(0.02)
    assert margin("isolayer", "Table 2", "accuracy") == 0.0  # printed without deviations


@pytest.mark.parametrize(("loss", "outcome"), [(44.0, "not held"), (0.0, "held")])
def test_flows_loss_is_judged_in_the_papers_words(loss, outcome):
    def numbers(config):
        return {"bleu": 80.0 + wobble(config) - loss * (config.method == "flow") * (1 + 0.01 * config.seed)}

    result = draw(calibration.TABLE_2, numbers)
    claim = "Flow “yields comparable BLEU score to the uncalibrated model”."
    assert verdicts(result)[claim].outcome == outcome
    assert any("trains its map along with the task" in point for point in calibration.TABLE_2.open_points)


@pytest.mark.parametrize(
    ("ratio", "jitter", "outcome"),
    [(10.0, 0.01, "held"), (1.5, 0.01, "not held"), (3.0, 0.5, "cannot tell"), (2.1, 0.1, "cannot tell")],
)
def test_flow_is_slow_only_with_an_interval_above_two(ratio, jitter, outcome):
    def numbers(config):
        return {"minutes": ratio ** (config.method == "flow") * (1 + jitter * config.seed * (config.method == "flow"))}

    claim = "Flow takes many times as long per epoch."
    for study in (calibration.TABLE_2, calibration.TABLE_3):
        assert verdicts(draw(study, numbers))[claim].outcome == outcome


def test_spectrum_control_that_keeps_the_norm_cannot_refute_a_collapse():
    result = draw(calibration.TABLE_1, lambda config: {"score": 0.8 + wobble(config)})
    verdict = verdicts(result)["Spectrum control degrades performance severely in some cases, or prevents learning."]
    assert verdict.outcome == "cannot tell" and "c₁ = 0 keeps the norm" in verdict.sentence


def test_comparisons_without_an_effect_are_left_out_and_named():
    """A regression has one output row: CosReg's sum is empty, and the spectrum is a single value."""
    first, fourth = (
        draw(study, lambda config: {"score": 0.8 + wobble(config), "i1": 0.5 + wobble(config)})
        for study in (calibration.TABLE_1, calibration.TABLE_4)
    )
    for result in (first, fourth):
        notes = [note for note in result.notes if note.startswith("Not compared: ")]
        assert {note.removeprefix("Not compared: ").split(",")[0] for note in notes} == {
            "CosReg on Similarity", "Spectrum control (polynomial) on Similarity", "Spectrum control (exponential) on Similarity",
        }  # fmt: skip
        sentences = " ".join(verdict.sentence for verdict in result.verdicts)
        assert "CosReg on Similarity" not in sentences and ") on Similarity" not in sentences
    assert "Flow on Similarity" in " ".join(verdict.sentence for verdict in first.verdicts)
    assert "over 10 settings of 2 tasks" in fourth.verdicts[2].sentence
    assert all("likely detect" in verdict.sentence for verdict in first.verdicts[:4])
