"""The verdicts and the cells of every trained study, from runs with given numbers."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.studies import calibration, isobn, isolayer, istar, istar_layers
from isoviz.studies.calibration import sets
from isoviz.studies.inputs import Inputs
from isoviz.studies.isolayer import median_run
from isoviz.studies.judging import SPECTRUM
from isoviz.studies.published import margin
from isoviz.studies.records import Evidence, LayerProfile
from tests.studies import made_runs


def draw(study, numbers, profile=None, scale="quick", **chosen):
    """Of all its runs at a scale."""
    inputs = Inputs.read(**chosen)
    runs = [
        made_runs.record(config, profile=profile(config) if profile else None, **numbers(config))
        for config in study.declared(scale, inputs)
    ]
    return study.draw(runs, scale, inputs)


def outcomes(result):
    return [verdict.outcome for verdict in result.verdicts]


def verdict_on(result, words):
    (verdict,) = [verdict for verdict in result.verdicts if words in verdict.claim]
    return verdict


def lam_of(config):
    return float(config.params.get("lam", 0.0)) if config.method == "istar" else 0.0


def wobble(config, size=0.001):
    """Seeds differ, and not by the same amount in every setting."""
    settings = (lam_of(config), *(float(config.params.get(name, 0.0)) for name in ("zeta", "beta", "layer")))
    own = sum(weight * value for weight, value in zip((0.1, 0.07, 0.05, 0.1), settings, strict=True))
    return size * config.seed * (1 + own + 0.1 * len(config.method))


def noisy(config, size):
    """A score whose spread over seeds is about `size`, different with every method."""
    return 0.8 + size * ((config.seed * 7 + len(config.method) * 3 + len(config.params)) % 5 - 2)


def better_with(method, gain, base=0.8):
    return lambda config: {"score": base + wobble(config) + gain * (config.method == method) * (1 + 0.01 * config.seed)}


def rouges(size):
    return lambda config: dict.fromkeys(("rouge1", "rouge2", "rougeL"), noisy(config, size))


def epochs(ratio, jitter):
    """Flow takes `ratio` times as long."""
    return lambda config: {
        "minutes": ratio ** (config.method == "flow") * (1 + jitter * config.seed * (config.method == "flow"))
    }


def by_lambda(gain, noise=0.001):
    return lambda config: {"score": 0.7 - gain * lam_of(config) + wobble(config, noise)}


def by_zeta(height):
    def numbers(config):
        zeta = float(config.params["zeta"])
        return {"score": 0.7 + height * zeta * (1 - zeta) + wobble(config, 0.001 if height else 0.02)}

    return numbers


def explained(gain):
    """EV_1 to EV_3 are smaller with the IsoLayer by the gain."""

    def numbers(config):
        sway = wobble(config, 0.00002) * (1 if gain else (-1) ** config.seed)
        first = 0.4 - gain * (config.method == "isolayer") + sway
        return {"score": 0.8 + wobble(config), "ev": [first, first + 0.2, first + 0.3]}

    return numbers


HELD, NOT, OPEN = "held", "not held", "cannot tell"
SLOW = "many times as long"
JUDGED = [
    (calibration.TABLE_1, better_with("cosreg", 0.05), "consistently better", NOT),
    (calibration.TABLE_1, better_with("cosreg", -0.05), "consistently better", HELD),
    (calibration.TABLE_1, better_with("cosreg", 0.0), "consistently better", HELD),
    (calibration.TABLE_1, lambda config: {"score": noisy(config, 0.2)}, "consistently better", OPEN),
    (calibration.TABLE_1, better_with("", 0.0), "degrades performance severely", OPEN),
    (calibration.TABLE_2, lambda config: {"bleu": 80 + wobble(config)}, "comparable BLEU", HELD),
    (calibration.TABLE_2, lambda config: {"bleu": 80 + wobble(config) - 44 * (config.method == "flow")}, "comparable BLEU", NOT),
    *(
        (study, epochs(ratio, jitter), SLOW, outcome)
        for study in (calibration.TABLE_2, calibration.TABLE_3)
        for ratio, jitter, outcome in ((10.0, 0.01, HELD), (1.5, 0.01, NOT), (3.0, 0.5, OPEN), (2.1, 0.1, OPEN))
    ),
    *(
        (study, rouges(size), claim, outcome)
        for size, outcome in ((0.0001, HELD), (0.02, OPEN))
        for study, claim in (
            (calibration.TABLE_3, "better in ROUGE-1"),
            (calibration.TABLE_3, "comparably to uncalibrated BART"),
            (calibration.TABLE_5, "better in ROUGE-L"),
        )
    ),
    *(
        (istar.TABLE_1, by_lambda(gain, noise), claim, outcome)
        for gain, noise, outcome in ((0.02, 0.001, HELD), (-0.02, 0.001, NOT), (0.0, 0.01, OPEN))
        for claim in ("on plain fine-tuning", "on CosReg")
    ),
    (istar.TABLE_2, by_lambda(0.01), "optimal λ is negative", HELD),
    (istar.TABLE_2, by_lambda(-0.01), "optimal λ is negative", NOT),
    (istar.FIGURE_7, by_zeta(0.1), "strictly between", HELD),
    (istar.FIGURE_7, by_zeta(-0.1), "strictly between", NOT),
    (istar.FIGURE_7, by_zeta(0.0), "strictly between", OPEN),
    *(
        (isobn.TABLE_1, lambda config, gain=gain: {"score": 0.8 + wobble(config) + gain * config.params.get("beta", 0)}, claim, outcome)
        for gain, outcome in ((0.02, HELD), (-0.02, NOT))
        for claim in ("on every task", "the average")
    ),
    (isolayer.TABLE_2, better_with("isolayer", 0.05), "improves performance", HELD),
    (isolayer.TABLE_2, better_with("isolayer", -0.05), "improves performance", NOT),
    *(
        (isolayer.TABLE_3, explained(gain), "better explained variance", outcome)
        for gain, outcome in ((0.1, HELD), (-0.1, NOT), (0.0, OPEN))
    ),
]  # fmt: skip


@pytest.mark.parametrize(("study", "numbers", "claim", "outcome"), JUDGED)
def test_a_claim_is_judged_by_the_runs(study, numbers, claim, outcome):
    assert verdict_on(draw(study, numbers), claim).outcome == outcome


# ---------------------------------------------------------------------------------------------------- calibration


def test_collapsed_spectrum_control_counts_as_degraded_and_its_isotropy_is_kept():
    def numbers(config):
        dead = config.method in SPECTRUM and config.task == "demo/paraphrase"
        i1 = 1.0 - 0.0001 * config.seed if config.method in SPECTRUM else 0.5 + wobble(config)
        return {"score": 0.5 if dead else 0.8 + wobble(config), "collapsed": "one class" if dead else None, "i1": i1}

    first, fourth = draw(calibration.TABLE_1, numbers), draw(calibration.TABLE_4, numbers)
    rows = {row[1]: row for row in first.tables[0].rows}
    assert rows["Spectrum control (polynomial)"][3] == "— (3 without a number)"
    verdict = verdict_on(first, "degrades performance severely")
    assert verdict.outcome == "held" and "6 of 18 runs collapsed" in verdict.sentence
    of_paraphrase = [row for row in fourth.tables[0].rows if row[1] == "Paraphrase"]
    assert [row[3] for row in of_paraphrase][2:4] == ["1.000 ± 0.000", "1.000 ± 0.000"]
    assert outcomes(fourth)[:2] == ["held", "held"]


def test_printed_numbers_are_beside_runs_of_the_same_model_and_task():
    chosen = {"models": ["FacebookAI/roberta-base"], "tasks": ["glue/mrpc", "glue/mnli"]}
    numbers = {"f1": 0.8, "accuracy_mismatched": 0.7}
    result = draw(calibration.TABLE_1, lambda config: numbers, scale="full", **chosen)
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
        on, flow = config.method in SPECTRUM, config.method == "flow"
        return {
            "bleu": 40 + wobble(config) - 5 * on,
            "i1": 0.6 + wobble(config) + 0.3 * on,
            "minutes": 0.5 + wobble(config) + 4.5 * flow,
        }

    result = draw(calibration.TABLE_2, numbers)
    labels = [row[2] for row in result.tables[0].rows]
    assert labels[-2:] == ["Baseline, small set", "Flow, small set"] and len(labels) == 6
    # CosReg's and Flow's differences from none are far below the margin, 1.37 BLEU
    assert outcomes(result) == ["held"] * 4


@pytest.mark.parametrize(
    ("place", "metric", "expected"),
    [
        (("calibration", "Table 2"), "bleu", 2 * 0.685),  # 0.08, 0.35, 1.02 and 2.25
        (("calibration", "Table 3"), "rouge1", 2 * 0.0015),  # 0.05 and 0.25 percent
        (("calibration", "Table 4"), "i1", 0.02),
        (("isolayer", "Table 2"), "accuracy", 0.0),  # printed without deviations
    ],
)
def test_margins_are_twice_the_median_printed_deviation(place, metric, expected):
    assert margin(*place, metric) == pytest.approx(expected)


def test_comparisons_without_an_effect_are_left_out_and_named():
    """A regression has one output row: CosReg's sum is empty, and the spectrum is a single value."""
    methods = ("CosReg", "Spectrum control (polynomial)", "Spectrum control (exponential)")
    for study in (calibration.TABLE_1, calibration.TABLE_4):
        result = draw(study, lambda config: {"score": 0.8 + wobble(config), "i1": 0.5 + wobble(config)})
        notes = [note for note in result.notes if note.startswith("Not compared: ")]
        named = {note.removeprefix("Not compared: ").split(",")[0] for note in notes}
        assert named == {f"{method} on Similarity" for method in methods}
        sentences = " ".join(verdict.sentence for verdict in result.verdicts)
        assert not any(name in sentences for name in named)
    assert "over 10 settings of 2 tasks" in result.verdicts[2].sentence


# ---------------------------------------------------------------------------------------------------- I-STAR


def test_tables_name_the_best_settings():
    best = {row[1]: row[2:] for row in draw(istar.TABLE_1, by_lambda(0.02)).tables[0].rows}
    assert all(cell.endswith("λ = −5") for cell in best["I-STAR"]) and best["Base"][0].startswith("0.70")
    pairs = draw(
        istar.TABLE_2,
        lambda config: {"score": by_lambda(0.01)(config)["score"] + 0.005 * (config.params["zeta"] == 0.8)},
    )
    assert [row[2:4] for row in pairs.tables[0].rows] == [["−5", "0.8"]]
    assert "λ = −5 minus λ = 1" in pairs.verdicts[0].sentence  # fmt: skip


def profile(star=lambda config, layer: 0.2, twonn=lambda config, layer: 5.0, mean=lambda config: (0.1, -0.2)):
    """A profile of four layers by its numbers."""
    return lambda config: LayerProfile(
        layers=tuple(range(5)),
        twonn=(None, *(twonn(config, layer) for layer in range(1, 5))),
        isoscore_star=tuple(star(config, layer) for layer in range(5)),
        mean_activation=mean(config),
        rows=500,
    )


def either(config):
    """λ of I-STAR or of CosReg."""
    return float(config.params.get("lam", 0.0))


def test_figure_4_sees_the_mean_move_and_isotropy_stay():
    moved = profile(
        star=lambda config, layer: 0.2 - 0.01 * either(config) - wobble(config),
        mean=lambda config: (1.0 - 0.5 * either(config) + wobble(config), 0.0),
    )
    result = draw(istar_layers.FIGURE_4, lambda config: {}, moved)
    (panel,) = result.figures[0].panels
    assert [trace["meta"]["value"] for trace in panel.traces] == [-1.0, 0.0, 1.0]
    assert panel.traces[1]["x"] == [1.0, 2.0] and panel.traces[1]["y"][0] == pytest.approx(1.0018)
    assert outcomes(result) == ["held", "held"]
    still = profile(mean=lambda config: (1.0 + 0.01 * wobble(config, config.seed), 0.0))
    assert outcomes(draw(istar_layers.FIGURE_4, lambda config: {}, still)) == ["cannot tell", "cannot tell"]


def test_figure_5_leaves_out_where_no_dimension_is_defined():
    rising = profile(twonn=lambda config, layer: 5 + layer + lam_of(config) / 5 + wobble(config))
    result = draw(istar_layers.FIGURE_5, lambda config: {}, rising)
    (panel,) = result.figures[0].panels
    assert [trace["meta"]["value"] for trace in panel.traces] == [-5.0, -3.0, 0.0, 3.0, 5.0]
    assert panel.traces[0]["x"] == [1.0, 2.0, 3.0, 4.0]
    assert outcomes(result) == ["held"]
    waiting = draw(istar_layers.FIGURE_5, lambda config: {})
    assert outcomes(waiting) == ["cannot tell"]
    assert "15 finished runs are not measured layer by layer yet." in waiting.notes


def test_figure_6_compares_early_and_late_layers():
    def star(config, layer):
        return 0.4 - 0.05 * layer + 0.02 * (5 - layer) * lam_of(config) + wobble(config) * (1 + layer / 10)

    result = draw(istar_layers.FIGURE_6, lambda config: {}, profile(star=star))
    assert outcomes(result) == ["held", "held"]
    assert "by 0.070 in the earlier half of the layers and by 0.030 in the later half" in result.verdicts[0].sentence


def test_figures_7_and_8_draw_the_metric_against_a_parameter():
    (panel,) = draw(istar.FIGURE_7, by_zeta(0.1)).figures[0].panels
    assert panel.traces[0]["x"] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert panel.references == ["best ζ"]
    result = draw(istar.FIGURE_8, lambda config: {"score": 0.7 + 0.02 * config.params["layer"] + wobble(config)})
    (panel,) = result.figures[0].panels
    assert panel.traces[0]["x"] == [1.0, 2.0, 3.0, 4.0]
    assert panel.references == ["all layers together"]  # which are no place on the axis
    assert panel.plot["layout"]["shapes"][0]["y0"] == pytest.approx(0.7, abs=0.01)
    assert [row[2] for row in result.tables[0].rows] == ["all", "1", "2", "3", "4"]
    assert outcomes(result)[0] == "held"


# ---------------------------------------------------------------------------------------------------- IsoBN, IsoLayer


@pytest.mark.parametrize("gain", [0.02, -0.02])
def test_isobn_is_shown_at_its_best_strength_and_on_the_average(gain):
    result = draw(
        isobn.TABLE_1, lambda config: {"score": 0.8 + 0.001 * config.seed + gain * config.params.get("beta", 0)}
    )
    rows = {row[1]: row for row in result.tables[0].rows}
    assert rows["none"][2] == "0.801 (0.001)"  # median and deviation
    assert rows["IsoBN"][2].endswith("β = 1" if gain > 0 else "β = 0.5")
    assert rows["none"][-1] == "0.801"


def layered(config):
    """The layer is more isotropic, better, and spreads the variance."""
    more = 1.0 if config.method == "isolayer" else 0.0
    return {
        "score": 0.7 + 0.05 * more + 0.001 * config.seed * (1 + more / 4),
        "isoscore": 0.05 * (1 + 3 * more),
        "ev": [0.6 - 0.3 * more + 0.5 * wobble(config) * (1 + more), 0.8, 0.9, *np.linspace(0.91, 0.99, 30)],
    }


def test_isolayer_table_2_has_the_relative_improvement():
    (table,) = draw(isolayer.TABLE_2, layered, tasks=["demo/acceptability"]).tables
    assert [row[2] for row in table.rows] == ["Baseline", "IsoLayer", "improvement"]
    assert table.rows[-1][3:] == ["+7.2 %", "+300.0 %"]


def test_isolayer_figure_2_has_twenty_components():
    result = draw(isolayer.FIGURE_2, layered)
    assert [panel.title for panel in result.figures[0].panels] == ["Acceptability, tiny-bert", "Paraphrase, tiny-bert"]
    for panel in result.figures[0].panels:
        assert [(trace["legendgroup"], len(trace["x"])) for trace in panel.traces] == [
            ("baseline", 20),
            ("isolayer", 20),
        ]
        assert panel.traces[1]["y"][0] < panel.traces[0]["y"][0]
    assert outcomes(result) == ["held"]


def test_isolayer_table_3_takes_the_run_with_the_median_ev_1():
    first = {0: 0.5, 1: 0.3, 2: 0.4}

    def numbers(config):
        ev_1 = first[config.seed] - (0.2 + 0.01 * config.seed) * (config.method == "isolayer")
        return {"score": 0.8 + 0.001 * config.seed, "ev": [ev_1, ev_1 + 0.1 * (config.seed + 1), 0.95]}

    result = draw(isolayer.TABLE_3, numbers, tasks=["demo/acceptability"])
    rows = {row[2]: row for row in result.tables[0].rows}
    assert rows["Baseline"][4:] == ["0.400", "0.700", "0.950", 2]  # seed 2 has the median, and all three are its own
    assert rows["IsoLayer"][4:] == ["0.180", "0.480", "0.950", 2]
    assert rows["IsoBN"][3] == "0.801 (0.001)"
    assert outcomes(result)[1] == "held"
    planned = [config for config in isolayer.TABLE_3.declared("quick") if config.method == "baseline"][:2]
    two = [made_runs.record(config, ev=[0.5 + 0.1 * config.seed]) for config in planned]
    assert median_run(two) is two[0] and median_run([]) is None
