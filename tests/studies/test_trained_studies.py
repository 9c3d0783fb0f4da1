"""What every trained study has in common: it draws the existing runs, judges claims by their numbers, and shares runs."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest

from isoviz import methods, studies, tasks
from isoviz.__main__ import main
from isoviz.runs.store import Store
from isoviz.statistics import two_samples
from isoviz.studies import isobn, istar, layer_profiles, records
from isoviz.studies.inputs import Inputs
from isoviz.studies.judging import (
    Change,
    against_baseline,
    detectable,
    goes_with,
    moved,
    never_better,
    signs,
    unchanged,
)
from isoviz.studies.papers import PAPERS
from isoviz.studies.records import Evidence
from isoviz.studies.study import TrainedStudy
from tests.dashboard import made_up
from tests.studies import made_runs

TRAINED = [entry.study for entry in studies.listed() if isinstance(entry.study, TrainedStudy)]


def falling(config):
    """Performance falls and isotropy rises with λ, in every seed."""
    lam = config.params.get("lam", 0.0) if config.method == "istar" else 0.0
    return {"score": 0.8 - 0.02 * lam + 0.001 * config.seed, "star": 0.3 + 0.03 * lam + 0.001 * config.seed}


def outcomes(result):
    return [verdict.outcome for verdict in result.verdicts]


@pytest.mark.parametrize("study", TRAINED, ids=lambda study: study.slug)
def test_it_draws_none_some_and_all_of_its_runs(study):
    planned = study.declared("quick")
    assert len({config.seed for config in planned}) >= 3
    assert len({config.identity for config in planned}) == len(planned)
    runs = made_runs.records(planned, lambda config: {})
    for part in ([], runs[:1], runs[: len(runs) // 2], runs):
        result = study.draw(part, "quick")
        assert result.planned == len(planned)
        assert len(result.runs) == len(part)
        assert len(result.verdicts) == len(study.claims) > 0
        assert studies.Result.model_validate_json(result.model_dump_json()) == result
        assert all(verdict.sentence.endswith(".") for verdict in result.verdicts)
        if not part:
            assert {verdict.outcome for verdict in result.verdicts} == {"cannot tell"}
            assert any(note.startswith("0 of") for note in result.notes)
    assert not any("have finished" in note for note in result.notes)


@pytest.mark.parametrize("study", TRAINED, ids=lambda study: study.slug)
def test_its_full_scale_is_the_papers_and_valid(study):
    planned = study.declared("full")
    assert not any(config.model.startswith("demo/") or config.task.startswith("demo/") for config in planned)
    assert all(config.batching == "shuffled" for config in planned)
    for config in {(c.task, c.method, c.direction): c for c in planned}.values():
        task = tasks.get(config.task)
        methods.get(config.method).check_kind(task.kind)
        assert task.checked_direction(config.direction) == (config.direction or "")
    assert len({config.seed for config in planned}) in (3, 5)


SIZES = {
    "calibration-table": {1: (45, (3 * 4 + 1) * 9 * 3), 2: (18, 2 * (4 + 2) * 3), 3: (18, (4 + 2) * 3), 4: (45, (3 * 4 + 1) * 9 * 3),
                          5: (18, (4 + 2) * 3)},
    "isobn-table": {1: (27, 2 * 7 * 4 * 5)},
    "isolayer-figure": {2: (12, 2 * 3 * 2 * 5)},
    "isolayer-table": {2: (12, 2 * 3 * 2 * 5), 3: (24, 2 * 3 * 5 * 5)},
    "istar-figure": {3: (48, 3 * 9 * 8 * 5), 4: (9, 3 * 3 * 5), 5: (15, 3 * 5 * 5), 6: (9, 3 * 3 * 5), 7: (18, 3 * 6 * 5),
                     8: (15, (13 + 13 + 7) * 5)},
    "istar-table": {1: (30, 3 * 9 * 5 * 5), 2: (24, 3 * 9 * 6 * 4 * 5)},
}  # fmt: skip
"""Study → runs at the quick and at the full scale: the paper's models × tasks × settings × seeds."""


def test_as_many_runs_as_the_papers_say():
    assert {study.slug: tuple(len(study.declared(scale)) for scale in ("quick", "full")) for study in TRAINED} == {
        f"{kind}-{number}": sizes for kind, of_kind in SIZES.items() for number, sizes in of_kind.items()
    }


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (falling, ["held", "held"]),
        (lambda config: {**falling(config), "score": 1.5 - falling(config)["score"]}, ["not held", "held"]),
        (lambda config: {"score": 0.8 + 0.01 * config.seed}, ["cannot tell", "cannot tell"]),
    ],
)
def test_an_inverse_relation_is_seen_in_both_directions(numbers, expected):
    planned = istar.FIGURE_3.declared("quick")
    assert outcomes(istar.FIGURE_3.draw(made_runs.records(planned, numbers), "quick")) == expected


@pytest.mark.parametrize("study", TRAINED, ids=lambda study: study.slug)
def test_nothing_is_claimed_of_performance_where_nothing_was_learned(study):
    runs = made_runs.records(study.declared("quick"), lambda config: {"score": 0.3 + 0.01 * config.seed})
    result = study.draw(runs, "quick")
    assert any("nothing was learned" in note for note in result.notes)
    verdicts = {verdict.claim: verdict for verdict in result.verdicts}
    for claim in study.claims:
        verdict = verdicts[claim.sentence]
        assert verdict.sentence.startswith("Nothing was learned") == claim.about_performance
        assert verdict.outcome == "cannot tell" or not claim.about_performance


def test_missing_collapsed_and_failed_runs_are_explained_gaps():
    planned = istar.FIGURE_3.declared("quick", Inputs.read(tasks=["demo/acceptability"]))
    of_cell = [config for config in planned if config.params.get("lam") == -1.0]
    runs = [
        made_runs.record(of_cell[0], score=0.7, star=0.1),
        made_runs.record(of_cell[1], score=0.5, star=0.1, collapsed="predicts one class"),
        made_runs.record(of_cell[2], "failed"),
    ]
    result = istar.FIGURE_3.draw(runs, "quick", Inputs.read(tasks=["demo/acceptability"]))
    rows = {row[2]: row for row in result.tables[0].rows}
    assert rows["−1"][4] == "0.700 (2 without a number)"
    assert rows["none"][4] == "— (0 of 3 runs)"
    assert any("Left out, because they did not finish: failed" in note for note in result.notes)
    assert any(
        "Collapsed runs, whose scores are left out: 1 (I-STAR on Acceptability)." in note for note in result.notes
    )


def test_judgements_by_their_rules():
    configs = [made_up.config(method, seed) for method in ("baseline", "isobn") for seed in range(5)]

    def evidence(gain):
        def score(config):
            return 0.7 + 0.01 * config.seed + (gain * (1 + 0.1 * config.seed) if config.method == "isobn" else 0.0)

        return Evidence(tuple(configs), tuple(made_runs.record(config, score=score(config)) for config in configs))

    for gain, outcome in ((0.1, "not held"), (-0.1, "held")):
        (change,) = against_baseline(evidence(gain), "accuracy", ["isobn"])
        assert (change.name, len(change.values)) == ("IsoBN on Acceptability", 5)
        assert signs([change]) == [1 if gain > 0 else -1]
        assert change.mean == pytest.approx(1.2 * gain) and change.ends[0] < change.mean < change.ends[1]
        assert never_better({"IsoBN": [change]})[0] == outcome
        # two of three tasks are most, one is not
        (other,) = against_baseline(evidence(-gain), "accuracy", ["isobn"])
        assert never_better({"IsoBN": [change, change, other]})[0] == outcome
    assert never_better({"IsoBN": []})[0] == "cannot tell"
    assert Change.of("a", {0: 1.0}, {1: 1.0}).words() == "a no common seed"
    assert Change.of("a", {0: 1.0}, {0: 0.5}).words() == "a +0.500, 1 seed"
    assert evidence(0.1).learned() is True
    assert Evidence(tuple(configs), ()).learned() is None
    assert goes_with([("a", 1, 1), ("a", 2, 2), ("a", 3, 3)], "of x with y", 1)[0] == "cannot tell"


UP, DOWN, FLAT = (Change("a", tuple(sign * 0.1 + 0.001 * n for n in range(3)), 0.05) for sign in (1, -1, 0))
WIDE = Change("a", (-0.2, 0.0, 0.25), 0.05)


@pytest.mark.parametrize(
    ("changes", "of", "outcome"),
    [
        ([UP, UP], "every", "held"), ([UP, FLAT], "every", "cannot tell"), ([UP, DOWN], "every", "not held"),
        ([UP, UP, DOWN], "most", "held"), ([UP, DOWN, DOWN], "most", "not held"), ([UP, WIDE, DOWN], "most", "cannot tell"),
        ([UP, DOWN, DOWN], "any", "held"), ([DOWN, DOWN], "any", "not held"), ([DOWN, WIDE], "any", "cannot tell"),
    ],
)  # fmt: skip
def test_a_direction_is_held_refuted_or_open(changes, of, outcome):
    assert moved(changes, "It changes by", of=of)[0] == outcome
    assert moved(changes, "It changes by", of=of, ended=False)[0] == ("cannot tell" if outcome == "held" else outcome)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [([FLAT, FLAT], "held"), ([FLAT, WIDE], "cannot tell"), ([UP], "not held"), ([FLAT, DOWN], "not held"),
     ([Change("a", FLAT.values)], "cannot tell"), ([Change("a", (0.001, 0.002), 0.05)], "cannot tell")],
)  # fmt: skip
def test_no_change_is_shown_by_intervals_within_the_margin_alone(changes, outcome):
    assert unchanged(changes, "It changes by")[0] == outcome


def test_a_significant_difference_within_the_margin_refutes_nothing():
    small = Change("a", (0.010, 0.011, 0.012), 0.05)
    assert signs([small]) == [1] and signs([small], beyond_margin=True) == [0]
    assert unchanged([small], "It changes by")[0] == "held"


def test_the_detectable_difference_has_the_power_it_promises():
    """80 % of the paired t-tests of three seeds find a true difference of that size."""
    values = (0.0, 0.01, 0.02)
    text = detectable([Change("a", values)])
    size = float(text.removesuffix(".").rpartition(" ")[2])
    drawn = np.random.default_rng(0).normal(size, 0.01, (4000, 3))
    assert (two_samples.paired_t(drawn) < 0.05).mean() == pytest.approx(0.8, abs=0.03)
    assert detectable([Change("a", (0.5, 0.5, 0.5))]) == "" == detectable([Change("a", (0.1, 0.2))])


def planned(scale, **chosen):
    return istar.FIGURE_3.declared(scale, Inputs.read(**chosen))


def test_chosen_tasks_models_and_settings_go_into_the_runs():
    own, new = planned("quick", tasks=["demo/similarity"]), planned("quick", tasks=["demo/sentiment"])
    assert [({config.max_train for config in part}, len(part)) for part in (own, new)] == [({1500}, 24), ({1000}, 24)]
    squad = planned("full", models=["google-bert/bert-base-cased"], tasks=["squad", "glue/rte"], seeds=[7], epochs=1)
    assert {(config.task, config.max_length, config.epochs, config.seed) for config in squad} == {
        ("squad", 384, 1, 7), ("glue/rte", 256, 1, 7),
    }  # fmt: skip
    assert len(squad) == 2 * 8
    settings = {"learning_rate": 1e-4, "batch_size": 16, "max_length": 32, "max_eval": 400}
    chosen = planned("full", tasks=["glue/cola"], **settings)
    assert {tuple(getattr(config, name) for name in settings) for config in chosen} == {tuple(settings.values())}


def test_a_record_names_no_folder(tmp_path):
    folder = tmp_path / "encoder"
    folder.mkdir()
    inputs = Inputs.read([f"google-bert/bert-base-cased={folder}"], ["glue/rte"])
    planned = isobn.TABLE_1.declared("full", inputs)
    assert {config.model for config in planned} == {str(folder)} and len(planned) == 4 * 5
    result = isobn.TABLE_1.draw(made_runs.records(planned, lambda config: {"score": 0.7}), "full", inputs)
    assert str(tmp_path) not in result.model_dump_json()
    assert result.provenance.config["models"] == ["google-bert/bert-base-cased"]
    assert {printed.published: round(printed.reproduced, 6) for printed in result.published} == {
        67.87: 70.0,
        70.75: 70.0,
    }


def test_a_run_of_the_same_configuration_is_used_again(tmp_path):
    store = Store(tmp_path)
    inputs = Inputs.read(tasks=["demo/acceptability"], seeds=[0])
    planned = istar.FIGURE_3.configs("quick", inputs)
    assert records.read(store, planned) == [] and records.missing(planned, []) == planned
    made_up.finish(store, planned[0], 0.7, 0.2)
    new = made_up.finish(store, planned[0].model_copy(update={"threads": 7, "checkpoint_minutes": 1.0}), 0.71, 0.2)
    made_up.fail(store, planned[0])
    made_up.fail(store, planned[1])
    store.create([planned[2]])
    made_up.finish(store, planned[3].model_copy(update={"epochs": 9}), 0.9, 0.2)
    matched = records.read(store, planned)
    assert [(run.row.id == new, run.row.status) for run in matched] == [
        (True, "finished"), (False, "failed"), (False, "queued"),
    ]  # fmt: skip
    assert records.missing(planned, matched) == [planned[1], *planned[3:]]
    assert matched[0].started is not None and matched[0].number("accuracy") == 0.71


def test_the_command_trains_what_is_missing_and_draws_it(capsys, monkeypatch):
    small = ["--tasks", "demo/acceptability", "--seeds", "0", "--max-train", "32", "--epochs", "1"]
    study = dataclasses.replace(istar.FIGURE_3, uses=lambda config: config.method == "baseline")
    monkeypatch.setattr(studies, "get", lambda slug: study)
    assert main(["study", "run", "istar-figure-3", *small, "--json"]) == 0
    out, err = capsys.readouterr()
    result = studies.Result.model_validate({k: v for k, v in json.loads(out).items() if k != "warnings"})
    assert "1 of 1 runs to carry out" in err
    assert (len(result.runs), result.planned) == (1, 1)
    assert outcomes(result) == ["cannot tell", "cannot tell"]
    assert result.provenance.inputs == small
    assert result.provenance.versions["torch"] and result.provenance.seconds > 0
    assert main(["study", "run", "istar-figure-3", *small]) == 0
    out, err = capsys.readouterr()
    assert "0 of 1 runs to carry out" in err
    assert "cannot tell: Isotropy and performance are inversely related." in out
    check_profile(Store(), result.runs[0])


def check_profile(store, run_id):
    """The layers of a finished run, against what training itself measured of the same tokens."""
    run = records.record(store, run_id)
    assert run.layers is None and layer_profiles.unmeasured([run]) == [run_id]
    (measured,) = layer_profiles.complete(store, [run], lambda share, what: None)
    profile = measured.layers
    assert profile.layers == (0, 1, 2, 3, 4) and profile.rows == 500
    assert profile.twonn[0] is None and all(value > 1 for value in profile.twonn[1:])
    cloud = run.row.result.isotropy.cloud("layer_4")
    assert cloud.dimensions.mean_norm == pytest.approx(math.hypot(*profile.mean_activation), rel=1e-4)
    # Σ_S of 32 training rows moves it a little
    assert profile.isoscore_star[4] == pytest.approx(cloud.number("isoscore"), rel=0.1)
    assert records.record(store, run_id).layers == profile and layer_profiles.unmeasured([measured]) == []


def test_every_place_of_the_papers_is_listed_once_and_can_be_named():
    assert [(entry.source, entry.place) for entry in studies.listed()] == [
        (source, place) for source in PAPERS for place in source.places
    ]
    assert len({entry.slug for entry in studies.listed()}) == len(studies.listed()) == 23
    assert all(studies.get(entry.slug) is entry.study for entry in studies.listed())
    assert studies.get("isobn-table-2") is studies.get("isobn-figures")
