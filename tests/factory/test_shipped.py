"""`isoviz/demo` matches the factory's output: rows, records and cards."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pytest

from factory import pretrain_bart, pretrain_bert, record_examples, rows
from factory.baselines import majority
from factory.cards import BART, BERT, card
from factory.record_baselines import RECIPE, SPECIAL, model_for
from factory.record_presets import MOST_OTHERS
from factory.tasks import SLUGS, generate, generator
from isoviz import tasks, vectors
from isoviz.demo import (
    FOLDER,
    PRESETS_RECORD,
    baselines,
    bundled_model_dir,
    bundled_models,
    mean,
    recorded_demo,
    rows_dir,
)
from isoviz.models import extract, sources
from isoviz.runs.planning import PRESETS, Preset
from isoviz.studies import Result
from isoviz.vectors import demo_sets
from isoviz.whatif.texts import FIRST_LAYER, TextsRequest, recorded
from tests import nightly

FINGERPRINTS = {  # of all rows, as runs have recorded them since the tasks exist
    "demo/acceptability": "92b5d621c5fb5284",
    "demo/sentiment": "255a785c52f3bf10",
    "demo/sentiment5": "9eacd3dde7a1fc81",
    "demo/paraphrase": "73b855f7296ae9b6",
    "demo/entailment": "7b46dbaa4fa37387",
    "demo/similarity": "0d8e872fd0cb8921",
    "demo/qa": "242e21a22be3b034",
    "demo/translation": "4931f44093d28b39",
    "demo/summarization": "71c41c26b1032a9b",
    "demo/search": "9f18efa2cbad932a",
}
# what counting words may reach at most, in the task's primary metric
BOUNDS = {
    "demo/acceptability": 0.75,
    "demo/sentiment": 0.75,
    "demo/sentiment5": 0.65,
    "demo/paraphrase": 0.75,
    "demo/entailment": 0.7,
    "demo/similarity": 0.75,
    "demo/qa": 0.55,
    "demo/translation": 10.0,
    "demo/summarization": 0.6,
    "demo/search": 0.7,
}


def test_every_demo_task_of_the_catalogue_is_made_here() -> None:
    assert [slug for slug, task in tasks.catalogue().items() if task.generated and not task.rows] == list(SLUGS)
    assert {task.rows for task in tasks.catalogue().values() if task.rows} <= {*SLUGS}
    assert {path.name for path in (FOLDER / "rows").iterdir()} == {rows_dir(slug).name for slug in rows.EVERY}
    assert sum(path.stat().st_size for path in (FOLDER / "rows").rglob("*.parquet")) < 1_500_000


@pytest.mark.parametrize("slug", nightly.cases(SLUGS, always=("demo/paraphrase", "demo/translation")))
def test_the_factory_makes_the_rows_that_ship(slug: str) -> None:
    assert json.dumps(generate(slug)) == json.dumps(rows.shipped(slug))  # values, types, columns and their order


@pytest.mark.parametrize("slug", SLUGS)
def test_the_rows_that_ship_are_those_of_old_runs(slug: str) -> None:
    assert tasks.load(tasks.get(slug)).fingerprint == FINGERPRINTS[slug]


@pytest.mark.parametrize("slug", SLUGS)
def test_the_record_is_of_these_rows_and_this_recipe_and_pretraining_wins(slug: str) -> None:
    record, maker = baselines(slug), generator(slug)
    assert record["rows"] == {"train": maker.train_rows, "validation": maker.validation_rows}
    assert record["recipe"] == {**RECIPE, **SPECIAL.get(slug, {})}
    assert record["model"] == model_for(slug)
    assert record["metric"] == tasks.get(slug).primary
    assert majority(slug) == record.get("majority")
    assert 0 < record["bag_of_words"] <= BOUNDS[slug]
    assert set(record["bag_of_words_by_phenomenon"]) == set(maker.phenomena)
    pretrained, fresh = record["pretrained"], record["random_weights"]
    assert set(pretrained["seeds"]) == set(fresh["seeds"]) == {"0", "1", "2"}
    assert mean(pretrained) == pytest.approx(sum(pretrained["seeds"].values()) / 3, abs=1e-3)
    margin = 10 if record["metric"] == "bleu" else 0.1
    defined = [value for value in fresh["seeds"].values() if value is not None]
    assert min(pretrained["seeds"].values()) > max(*defined, record["bag_of_words"]) + margin
    assert max(pretrained["seconds"], fresh["seconds"]) < 180


DEMO = PRESETS[0]


def test_the_demo_promises_what_was_measured() -> None:
    record = recorded_demo()
    if not record:
        assert DEMO.summary.endswith(": three runs."), "nothing was measured, so no time is promised"
        return
    assert record["plan"] == json.loads(json.dumps(DEMO.plan)), "record anew: python -m factory.record_presets demo"
    assert record["seconds"] in record["repeats"] and record["others"] <= MOST_OTHERS
    assert f"{record['seconds']:.0f} s on {record['cores']} cores" in DEMO.summary
    assert [run["method"] for run in record["runs"]] == [slug for slug, _ in DEMO.plan["methods"]]
    assert record["seconds"] <= 40


@pytest.mark.parametrize(("slug", "recipe"), [(BERT, pretrain_bert.Recipe()), (BART, pretrain_bart.Recipe())])
def test_the_weights_are_of_this_recipe(slug: str, recipe: Any) -> None:
    folder = bundled_model_dir(slug)
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    assert record["recipe"] == json.loads(json.dumps(asdict(recipe)))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert record.get("sha256", digest) == digest
    assert {"config.json", "tokenizer.json", "tokenizer_config.json"} <= {file.name for file in folder.iterdir()}
    assert sum(file.stat().st_size for file in folder.iterdir()) < 4_000_000


@pytest.mark.slow
@pytest.mark.parametrize("slug", bundled_models())
def test_the_card_is_current(slug: str) -> None:
    """Words must match; numbers may differ in their last digits on another machine."""
    number = re.compile(r"(?<![0-9a-f])\d+\.\d+")
    shipped, made = (bundled_model_dir(slug) / "README.md").read_text(encoding="utf-8"), card(slug)
    assert number.sub("#", shipped) == number.sub("#", made)
    for before, now in zip(number.findall(shipped), number.findall(made), strict=True):
        assert float(now) == pytest.approx(float(before), abs=0.011)


@pytest.mark.parametrize("preset", PRESETS, ids=lambda preset: preset.slug)
def test_a_presets_baseline_clearly_beats_simple_approaches_in_every_seed(preset: Preset) -> None:
    """By the record of the preset as it ships: `python -m factory.record_presets` after a change of one."""
    record = json.loads(PRESETS_RECORD.read_text(encoding="utf-8"))["presets"][preset.slug]
    assert record["plan"] == json.loads(json.dumps(preset.plan)), "record the presets again"
    (task,) = preset.plan["tasks"]
    recorded = baselines(task)
    simple = [*record["simple"].values(), recorded["bag_of_words"], *recorded["random_weights"]["seeds"].values()]
    seeds = {run["seed"]: run["score"] for run in record["runs"] if run["method"] == "baseline"}
    assert list(seeds) == preset.plan["seeds"]
    assert min(seeds.values()) > max(simple) + 0.1


def test_the_recorded_examples_have_the_verdicts_of_todays_judges() -> None:
    results = record_examples.judged()
    assert len(results) == 20
    for path, today in results.items():
        shipped = Result.model_validate_json(path.read_text(encoding="utf-8"))
        assert [(v.claim, v.outcome) for v in shipped.verdicts] == [(v.claim, v.outcome) for v in today.verdicts], path


@pytest.mark.parametrize("slug", demo_sets.TITLES)
def test_the_vectors_of_the_demo_sets_match_the_bundled_encoder(slug: str) -> None:
    key = recorded(TextsRequest(slug, layer=FIRST_LAYER))
    assert key is not None, "the encoder has changed: python -m factory.record_examples vectors"
    shipped, known = vectors.load(key), demo_sets.read(slug)
    pd.testing.assert_frame_equal(shipped.columns, known.columns.reset_index(drop=True))
    assert (shipped.relation, shipped.pairs is None) == (known.relation, known.pairs is None)
    places = [0, len(shipped.columns) // 2, -1]
    source = sources.resolve("demo/tiny-bert")
    texts = known.columns["text"].iloc[places].tolist()
    fresh = extract.layer_views(source, [texts], poolings=["mean"], layers=[FIRST_LAYER]).points(FIRST_LAYER, "mean")
    np.testing.assert_allclose(shipped.points[places], fresh, rtol=2e-3, atol=2e-3)
    assert recorded(TextsRequest(slug, layer=1)) is None and recorded(TextsRequest("0" * 32)) is None
