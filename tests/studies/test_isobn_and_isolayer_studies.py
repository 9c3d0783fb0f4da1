"""IsoBN's Table 1 and Figure 3 and the studies of IsoLayer, from runs and matrices with given numbers."""

from __future__ import annotations

import numpy as np
import pytest

from isoviz.studies import isobn, isobn_figures, isolayer
from isoviz.studies.inputs import Inputs
from isoviz.studies.isobn_figures import assumed, blocks_fit_better, distance, groups
from isoviz.studies.isolayer import median_run
from isoviz.studies.result import Result, Table, provenance
from tests.studies import made_runs


def draw(study, numbers, **chosen):
    """Of all its quick runs."""
    inputs = Inputs.read(**chosen)
    return study.draw(made_runs.records(study.declared("quick", inputs), numbers), "quick", inputs)


def outcomes(result):
    return [verdict.outcome for verdict in result.verdicts]


def wobble(config):
    """Seeds differ, and not by the same amount with every method."""
    own = ("isobn", "baseline", "isolayer").index(config.method)
    return 0.001 * config.seed * (1.5 + 0.3 * own + 0.05 * float(config.params.get("beta", 0.0)))


@pytest.mark.parametrize(("gain", "expected"), [(0.02, "held"), (-0.02, "not held")])
def test_isobn_is_judged_at_its_best_strength_and_on_the_average(gain, expected):
    def numbers(config):
        beta = float(config.params.get("beta", 0.0))
        return {"score": 0.8 + wobble(config) + gain * beta}

    result = draw(isobn.TABLE_1, numbers)
    assert outcomes(result) == [expected, expected]
    rows = {row[1]: row for row in result.tables[0].rows}
    assert rows["none"][2] == "0.802 (0.002)"  # the median and the deviation of 0.8, 0.8018 and 0.8036
    assert rows["IsoBN"][2].endswith("β = 1" if gain > 0 else "β = 0.5")
    assert rows["none"][-1] == "0.802"


def test_isobn_needs_all_tasks_for_its_claims():
    def numbers(config):
        return {"score": 0.4 if config.task == "demo/paraphrase" else 0.8 + wobble(config)}

    result = draw(isobn.TABLE_1, numbers)
    assert outcomes(result)[0] == "cannot tell" and "Nothing was learned" in result.verdicts[0].sentence


def layered(config, gain=0.05):
    """The layer is more isotropic, better, and spreads the variance."""
    more = 1.0 if config.method == "isolayer" else 0.0
    first = 0.6 - 0.3 * more + 0.5 * wobble(config)
    return {
        "score": 0.7 + gain * more + wobble(config),
        "isoscore": 0.05 * (1 + 3 * more) + wobble(config),
        "ev": [first, 0.8, 0.9, *np.linspace(0.91, 0.99, 30)],
    }


def test_isolayer_table_2_has_the_relative_improvement():
    result = draw(isolayer.TABLE_2, layered, tasks=["demo/acceptability"])
    (table,) = result.tables
    assert [row[2] for row in table.rows] == ["Baseline", "IsoLayer", "improvement"]
    assert table.rows[-1][3] == "+7.2 %" and table.rows[-1][4] == "+290.2 %"
    assert outcomes(result) == ["held", "held"]
    assert outcomes(draw(isolayer.TABLE_2, lambda config: layered(config, -0.05)))[1] == "not held"


def test_isolayer_figure_2_has_twenty_components():
    result = draw(isolayer.FIGURE_2, layered)
    assert [panel.title for panel in result.figures[0].panels] == [
        "Acceptability, tiny-bert", "Paraphrase, tiny-bert",
    ]  # fmt: skip
    for panel in result.figures[0].panels:
        assert [series.group for series in panel.series] == ["baseline", "isolayer"]
        assert all(len(series.x) == 20 for series in panel.series)
        assert panel.series[1].y[0] < panel.series[0].y[0]
    assert outcomes(result) == ["held"]


def test_isolayer_table_3_takes_the_run_with_the_median_ev_1():
    first = {0: 0.5, 1: 0.3, 2: 0.4}

    def numbers(config):
        ev_1 = first[config.seed] - (0.2 + 0.01 * config.seed) * (config.method == "isolayer")
        return {"score": 0.8 + wobble(config), "ev": [ev_1, ev_1 + 0.1 * (config.seed + 1), 0.95]}

    result = draw(isolayer.TABLE_3, numbers, tasks=["demo/acceptability"])
    rows = {row[2]: row for row in result.tables[0].rows}
    assert rows["Baseline"][4:] == ["0.400", "0.700", "0.950", 2]  # seed 2 has the median, and all three are its own
    assert rows["IsoLayer"][4:] == ["0.180", "0.480", "0.950", 2]
    assert rows["IsoBN"][3] == "0.802 (0.002)"
    assert outcomes(result)[1] == "held"


@pytest.mark.parametrize(("gain", "outcome"), [(0.1, "held"), (-0.1, "not held"), (0.0, "cannot tell")])
def test_isolayer_table_3_compares_explained_variance_with_isobn(gain, outcome):
    def numbers(config):
        first = (
            0.4 - gain * (config.method == "isolayer") + 0.02 * wobble(config) * (1 if gain else (-1) ** config.seed)
        )
        return {"score": 0.8 + wobble(config), "ev": [first, first + 0.2, first + 0.3]}

    result = draw(isolayer.TABLE_3, numbers)
    (verdict,) = [verdict for verdict in result.verdicts if "better explained variance" in verdict.claim]
    assert verdict.outcome == outcome


def test_the_median_run_of_an_even_number_and_of_none():
    planned = [config for config in isolayer.TABLE_3.declared("quick") if config.method == "baseline"][:2]
    runs = [made_runs.record(config, ev=[0.5 + 0.1 * config.seed]) for config in planned]
    assert median_run(runs) is runs[0]
    assert median_run([]) is None


def blocks(*sizes, inside=0.9, outside=0.05):
    """|ρ| of dimensions in groups of these sizes."""
    of_group = np.repeat(range(len(sizes)), sizes)
    matrix = np.where(of_group[:, None] == of_group, inside, outside)
    np.fill_diagonal(matrix, 1.0)
    return matrix


def test_groups_are_found_and_assumed_to_be_copies():
    real = blocks(3, 2, 1)
    of_group = groups(real)
    assert [list(of_group).count(group) for group in dict.fromkeys(of_group)] == [3, 2, 1]
    assumption = assumed(real)
    assert list(assumption) == ["real", "batch normalisation", "IsoBN"]
    np.testing.assert_array_equal(assumption["batch normalisation"], np.eye(6))
    np.testing.assert_array_equal(assumption["IsoBN"], blocks(3, 2, 1, inside=1.0, outside=0.0))
    # 4 pairs of 15 at 0.9, the others at 0.05
    assert distance(assumption["batch normalisation"], real) == pytest.approx(np.sqrt((4 * 0.9**2 + 11 * 0.05**2) / 15))
    assert distance(assumption["IsoBN"], real) == pytest.approx(np.sqrt((4 * 0.1**2 + 11 * 0.05**2) / 15))
    assert len(set(groups(np.eye(5)))) == 5 and len(groups(np.eye(1))) == 1


@pytest.mark.parametrize(("identity", "of_blocks", "outcome"), [(0.4, 0.1, "held"), (0.1, 0.2, "not held")])
def test_the_nearer_assumption_is_named(identity, of_blocks, outcome):
    header = ["task", "encoder", "groups", "%", "distance of the identity", "distance of the blocks"]
    table = Table(title="t", header=header, rows=[["MRPC", "e", 3, 80.0, identity, of_blocks]])
    result = Result(title="t", tables=[table], provenance=provenance("isobn-figure-3", "quick", 0, {}, [], 1.0))
    assert blocks_fit_better(result)[0] == outcome


@pytest.mark.filterwarnings("ignore::isoviz.metrics.SmallSampleWarning")
def test_figure_3_of_an_own_encoder(tiny_models, cola):
    inputs = Inputs.read([f"toy={tiny_models('bert')}"], ["glue/cola"], [f"glue/cola={cola}"])
    result = isobn_figures.FIGURE_3.run("quick", lambda share, what: None, inputs)
    (figure,) = result.figures
    assert [panel.matrix.size for panel in figure.panels if panel.matrix] == [16, 16, 16]
    assert figure.panels[1].title == "batch normalisation"
    assert len(result.verdicts) == 2 and result.provenance.config["tasks"][0]["rows"] == 64
