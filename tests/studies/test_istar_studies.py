"""I-STAR's figures and tables from runs with known numbers: selection, drawing and sentences."""

from __future__ import annotations

import pytest

from isoviz.studies import istar, istar_layers
from isoviz.studies.records import LayerProfile
from tests.studies import made_runs

MAIN = "demo/acceptability"


def draw(study, numbers, profile=None):
    """Of all its quick runs."""
    runs = [
        made_runs.record(config, profile=profile(config) if profile else None, **numbers(config))
        for config in study.declared("quick")
    ]
    return study.draw(runs, "quick")


def outcomes(result):
    return [verdict.outcome for verdict in result.verdicts]


def jitter(config, size=0.001):
    """Seeds differ, and not by the same amount in every setting."""
    settings = [float(config.params.get(name, 0.0)) for name in ("lam", "zeta")]
    return size * config.seed * (1 + 0.1 * settings[0] + 0.07 * settings[1])


def lam_of(config):
    return float(config.params.get("lam", 0.0))


@pytest.mark.parametrize(("gain", "outcome"), [(0.02, "held"), (-0.02, "not held"), (0.0, "cannot tell")])
def test_table_1_takes_the_best_negative_lambda(gain, outcome):
    def numbers(config):
        own = gain * -lam_of(config) if config.method == "istar" else 0.0
        return {"score": 0.7 + own + jitter(config, 0.001 if gain else 0.01)}

    result = draw(istar.TABLE_1, numbers)
    rows = {row[1]: row for row in result.tables[0].rows}
    chosen = {0.02: "λ = −5", -0.02: "λ = −1"}
    if gain:
        assert rows["I-STAR"][2].endswith(chosen[gain]) and rows["I-STAR"][3].endswith(chosen[gain])
    assert rows["Base"][2].startswith("0.701 ± 0.001" if gain else "0.710 ± 0.010")
    assert outcomes(result) == [outcome, outcome]


def test_table_2_names_the_best_pair_and_whether_it_is_clear():
    def numbers(config):
        lam, zeta = config.params["lam"], config.params["zeta"]
        return {"score": 0.7 - 0.01 * lam + 0.005 * (zeta == 0.8) + jitter(config, 0.0005)}

    result = draw(istar.TABLE_2, numbers)
    assert [row[2:4] for row in result.tables[0].rows] == [["−5", "0.8"]]
    assert outcomes(result) == ["held"]
    assert "λ = −5 minus λ = 1" in result.verdicts[0].sentence
    other = draw(istar.TABLE_2, lambda config: {"score": 1.4 - numbers(config)["score"]})
    assert outcomes(other) == ["not held"]


def profile(star=lambda config, layer: 0.2, twonn=lambda config, layer: 5.0, mean=lambda config: (0.1, -0.2)):
    """A profile of four layers by its numbers."""
    return lambda config: LayerProfile(
        layers=tuple(range(5)),
        twonn=(None, *(twonn(config, layer) for layer in range(1, 5))),
        isoscore_star=tuple(star(config, layer) for layer in range(5)),
        mean_activation=mean(config),
        rows=500,
    )


def test_figure_4_sees_the_mean_move_and_isotropy_stay():
    moved = profile(
        star=lambda config, layer: 0.2 - 0.01 * lam_of(config) - jitter(config),
        mean=lambda config: (1.0 - 0.5 * lam_of(config) + jitter(config), 0.0),
    )
    result = draw(istar_layers.FIGURE_4, lambda config: {}, moved)
    (panel,) = result.figures[0].panels
    assert [series.value for series in panel.series] == [-1.0, 0.0, 1.0]
    assert panel.series[1].x == [1.0, 2.0] and panel.series[1].y[0] == pytest.approx(1.001)
    assert outcomes(result) == ["held", "held"]
    still = draw(
        istar_layers.FIGURE_4,
        lambda config: {},
        profile(mean=lambda config: (1.0 + 0.01 * jitter(config, config.seed), 0.0)),
    )
    assert outcomes(still) == ["cannot tell", "cannot tell"]


def test_figure_5_leaves_out_where_no_dimension_is_defined():
    rising = profile(twonn=lambda config, layer: 5 + layer + lam_of(config) / 5 + jitter(config))
    result = draw(istar_layers.FIGURE_5, lambda config: {}, rising)
    (panel,) = result.figures[0].panels
    assert [series.value for series in panel.series] == [-5.0, -3.0, 0.0, 3.0, 5.0]
    assert panel.series[0].x == [1.0, 2.0, 3.0, 4.0]
    assert outcomes(result) == ["held"]
    waiting = draw(istar_layers.FIGURE_5, lambda config: {})
    assert outcomes(waiting) == ["cannot tell"]
    assert "15 finished runs are not measured layer by layer yet." in waiting.notes


def test_figure_6_compares_early_and_late_layers():
    def star(config, layer):
        return 0.4 - 0.05 * layer + 0.02 * (5 - layer) * lam_of(config) + jitter(config) * (1 + layer / 10)

    result = draw(istar_layers.FIGURE_6, lambda config: {}, profile(star=star))
    assert outcomes(result) == ["held", "held"]
    assert "by 0.070 in the earlier half of the layers and by 0.030 in the later half" in result.verdicts[0].sentence


@pytest.mark.parametrize(("height", "expected"), [(0.1, "held"), (-0.1, "not held"), (0.0, "cannot tell")])
def test_figure_7_asks_for_both_ends(height, expected):
    def numbers(config):
        zeta = float(config.params["zeta"])
        return {"score": 0.7 + height * zeta * (1 - zeta) + jitter(config, 0.001 if height else 0.02)}

    result = draw(istar.FIGURE_7, numbers)
    assert outcomes(result) == [expected]
    (panel,) = result.figures[0].panels
    assert panel.series[0].x == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [reference.label for reference in panel.references] == ["best ζ"]


def test_figure_8_keeps_all_layers_aside():
    def numbers(config):
        layer = int(config.params["layer"])
        return {"score": 0.7 + (0.02 * layer if layer else 0.0) + 0.001 * config.seed * (1 + 0.1 * layer)}

    result = draw(istar.FIGURE_8, numbers)
    (panel,) = result.figures[0].panels
    assert panel.series[0].x == [1.0, 2.0, 3.0, 4.0]
    (reference,) = panel.references
    assert reference.label == "all layers together" and reference.value == pytest.approx(0.701)
    assert [row[2] for row in result.tables[0].rows] == ["all", "1", "2", "3", "4"]
    assert outcomes(result)[0] == "held"
