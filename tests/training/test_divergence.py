"""Weights that are no numbers end a run as diverged, with their name; a validation split of one row ends none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from isoviz.errors import DivergedError
from isoviz.events import Diverged, Finished
from isoviz.runs.execution import explain
from isoviz.training.loop import check_weights
from tests import tiny
from tests.tiny import TinyModels
from tests.training.running import config, run

WEIGHT = "encoder.layer.1.output.dense.weight"


def changed(folder: Path, target: Path, change: Callable[[torch.Tensor], torch.Tensor]) -> Path:
    shutil.copytree(folder, target)
    weights = load_file(folder / "model.safetensors")
    weights[WEIGHT] = change(weights[WEIGHT])
    save_file(weights, target / "model.safetensors", {"format": "pt"})
    return target


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_checkpoint_with_numbers_that_are_none(
    tiny_models: TinyModels, cola: Path, tmp_path: Path, value: float
) -> None:
    model = changed(
        tiny_models("bert"), tmp_path / "model", lambda weight: weight.index_fill(0, torch.tensor(3), value)
    )
    with pytest.raises(DivergedError) as caught:
        run(config(model, cola, epochs=1), tmp_path / "run")
    assert str(caught.value) == f"the weights of 'bert.{WEIGHT}' became non-finite at step 0"
    assert "checkpoint" in str(caught.value.advice)
    ending = explain(caught.value)
    assert isinstance(ending, Diverged) and ending.term == f"bert.{WEIGHT}" and ending.step == 0


def test_running_statistics_count_and_whole_numbers_do_not() -> None:
    model = torch.nn.BatchNorm1d(3)
    check_weights(model, 1)
    assert model.running_mean is not None
    model.running_mean[1] = float("inf")
    with pytest.raises(DivergedError, match="the weights of 'running_mean' became non-finite at step 7") as caught:
        check_weights(model, 7)
    assert "lower learning rate" in str(caught.value.advice)


@pytest.mark.parametrize(("kind", "family"), [("span", "bert"), ("seq2seq", "bart")])
def test_one_validation_row_leaves_measures_undefined_and_the_run_finished(
    tiny_models: TinyModels, tmp_path: Path, kind: str, family: str
) -> None:
    data = tiny.write(kind, tmp_path / "data", validation=1)
    cfg = config(tiny_models(family), data, kind=kind, epochs=1, max_length=48, doc_stride=16)
    *_, ended = run(cfg, tmp_path / "run")
    assert isinstance(ended, Finished)
    for slug in ("isoscore", "isoscore_unbiased", "mean_cosine"):
        reading = ended.isotropy.reading(slug)
        assert reading is not None and reading.value is None and reading.undefined
    assert ended.isotropy.reading("isoscore_star").value is not None  # of all layers' tokens
    from safetensors.numpy import load_file as arrays_of

    arrays = arrays_of(sorted((tmp_path / "run" / "arrays").glob("*.safetensors"))[-1])
    assert np.isnan(arrays["abs_correlation"]).all() and sorted(arrays["order"]) == list(range(len(arrays["std"])))
