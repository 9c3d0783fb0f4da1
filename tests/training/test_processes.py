"""Two processes give the one-process result: every method, three steps, dropout off, batches of 15 rows."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from isoviz import methods
from isoviz.config import RunConfig
from isoviz.events import parse_event
from isoviz.metrics.record import Measurement
from isoviz.training import checkpoints
from tests import nightly, tiny
from tests.methods.test_conformance import PARAMS, SLUGS
from tests.ports import free_port
from tests.training.two_processes import train_all

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]  # all that is trained here is trained before the first test

ROOT = Path(__file__).resolve().parents[2]

SLOWER: dict[str, dict[str, object]] = {"isolayer": {"layer_lr": 2e-5}, "flow": {"learning_rate": 1e-4}}
"""Adam's first steps have the size of the learning rate even where a gradient is nothing but rounding (a bias before a
normalisation): small rates keep that noise below the tolerance."""


KINDS = {
    "istar-regression": "bert",
    "isobn-span": "bert",
    "isobn-seq2seq": "bart",
    "gor-embedding": "bert",
    "vicreg-embedding": "bert",
    "pairs-embedding": "bert",
}
"""A method on each other head kind, and the family: a loss over numbers, over windows, over
the words of a process, whose number varies, and over all rows of a batch. The last batch has 15 rows; of pairs, one row that
joins the batch before."""


LORA = "baseline-lora"
"""A run that trains low-rank matrices beside frozen weights."""


USUAL = ("baseline", "isobn", "istar", "baseline-best", "baseline-lora", "istar-fsdp", "pairs-embedding")
"""Trained by `make test`: no statistics, those of a batch, those of the run; the rest is nightly."""

SPLIT = ("istar", "isobn", "spectrum_pol", LORA)
"""Runs that are also trained with FSDP, stopped after a step and resumed."""


BEST = "baseline-best"
"""A run that reports and keeps its best epoch."""


def chosen(entries: Iterable[Any], ending: str = "") -> list[Any]:
    """Of these names, or pairs of a name and something, the ones that are trained this time."""
    return [e for e in entries if nightly.ALL or f"{e if isinstance(e, str) else e[0]}{ending}" in USUAL]


def run_all(folder: Path, models: tiny.TinyModels, data: Path, processes: int) -> Path:
    """Every method's three steps, dealt out to that many processes on the loopback."""
    model = models("bert", dropout=0.0)
    for name, family in chosen(KINDS.items()):
        slug, kind = name.split("-")
        source: dict[str, Any] = {"task": tiny.TASKS[kind]}
        if slug == "pairs":  # without their scores
            own = {"text": "sentence1", "second": "sentence2", "kind": "embedding"}
            slug, source = "baseline", {"task": "own", "own": own}
        config = RunConfig.checked(
            model=str(models(family, dropout=0.0)), **source, data=str(data / kind), method=slug,
            params=methods.check_params(slug, {"lam": 1.0} if slug == "gor" else {}), epochs=1, learning_rate=3e-4, batch_size=16,
            batching="shuffled", max_train=49 if name.startswith("pairs") else 47, max_eval=15, precision="no", threads=1, max_length=64,
            doc_stride=16,
        )  # fmt: skip
        (folder / name).mkdir(parents=True)
        (folder / name / "config.json").write_text(config.model_dump_json())
    config = RunConfig.checked(
        model=str(model), task=tiny.TASKS["regression"], data=str(data / "regression"), epochs=4, learning_rate=3e-4,
        batch_size=16, batching="shuffled", max_train=47, max_eval=30, precision="no", threads=1, select="best",
        params=methods.check_params("baseline", {}), schedule="constant", seed=1,
    )  # fmt: skip
    (folder / BEST).mkdir(parents=True)
    (folder / BEST / "config.json").write_text(config.model_dump_json())
    for slug in chosen(SLUGS):
        config = RunConfig.checked(
            model=str(model), task="glue/cola", data=str(data / "classification"), method=slug,
            params=methods.check_params(slug, PARAMS.get(slug, {}) | SLOWER.get(slug, {})), epochs=1, learning_rate=3e-4,
            batch_size=15, batching="shuffled", max_train=32, max_eval=30, precision="no", threads=1,
        )  # fmt: skip
        (folder / slug).mkdir(parents=True)
        (folder / slug / "config.json").write_text(config.model_dump_json())
    config = RunConfig.model_validate_json((folder / "baseline" / "config.json").read_text())
    (folder / LORA).mkdir()
    (folder / LORA / "config.json").write_text(config.model_copy(update={"lora_rank": 4}).model_dump_json())
    for slug in chosen(SPLIT, "-fsdp"):
        (folder / f"{slug}-fsdp").mkdir()
        (folder / f"{slug}-fsdp" / "config.json").write_text((folder / slug / "config.json").read_text())
        if processes > 1:
            (folder / f"{slug}-fsdp" / "fsdp").touch()
            (folder / f"{slug}-fsdp" / "stop_at").write_text("1")
    if processes > 1:  # 62 rows in batches of 6: the epoch does not come out even
        config = RunConfig.checked(
            model=str(models("bert")), task="glue/cola", data=str(data / "classification"), method="istar", epochs=2,
            params=methods.check_params("istar", {}), learning_rate=3e-3, batch_size=6, grad_accum=2, max_train=62,
            max_eval=30, precision="no", threads=1,
        )  # fmt: skip
        for name, stop_at in (("straight", None), ("resumed", 4)):
            (folder / name).mkdir()
            (folder / name / "config.json").write_text(config.model_dump_json())
            if stop_at is not None:
                (folder / name / "stop_at").write_text(str(stop_at))
    if processes == 1:
        train_all(folder)
        return folder
    port = free_port()
    started = []
    for rank in range(processes):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes)}
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        with (folder / f"log-{rank}.txt").open("w") as log:
            command = [sys.executable, "-m", "tests.training.two_processes", str(folder)]
            started.append(subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT))
    try:
        codes = [process.wait(timeout=600) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes == [0] * processes, "\n".join(path.read_text()[-3000:] for path in sorted(folder.glob("log-*.txt")))
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, tiny_models: tiny.TinyModels) -> tuple[Path, Path]:
    """Folders with every method's run by one process and by two."""
    folder = tmp_path_factory.mktemp("processes")
    for kind in tiny.TASKS:
        tiny.write(kind, folder / "data" / kind, train=64, validation=32)
    return run_all(folder / "one", tiny_models, folder / "data", 1), run_all(
        folder / "two", tiny_models, folder / "data", 2
    )


def weights(folder: Path) -> dict[str, torch.Tensor]:
    newest = checkpoints.newest(folder / "run")
    assert newest is not None
    return load_file(newest / "model.safetensors")


def isotropy(measurement: Measurement) -> dict[str, float]:
    """Every number that was measured, by cloud, measure and place in a curve."""
    return {
        f"{name} {slug} {index}": math.nan if value is None else value
        for name, cloud in measurement.clouds.items()
        for slug, reading in cloud.readings.items()
        for index, value in enumerate(reading.value if isinstance(reading.value, tuple) else (reading.value,))
    }


def events(folder: Path, kind: str) -> list[dict]:
    return [event for event in json.loads((folder / "events.json").read_text()) if event["kind"] == kind]


@pytest.mark.parametrize(
    "slug", nightly.cases([*SLUGS, *KINDS, BEST, LORA, *(f"{slug}-fsdp" for slug in SPLIT)], always=USUAL)
)
def test_two_processes_give_the_one_process_result(results, slug):
    alone, shared = (folder / slug for folder in results)
    expected, actual = weights(alone), weights(shared)
    assert expected.keys() == actual.keys()
    for name, value in expected.items():
        # softmax does not see these: their gradients are rounding, their Adam steps are noise
        if name.endswith(("k_proj.bias", "qa_outputs.bias")):
            continue
        torch.testing.assert_close(
            actual[name], value, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}"
        )
    assert len(events(alone, "evaluated")) == len(events(shared, "evaluated")) >= 2
    for one, other in zip(events(alone, "stepped"), events(shared, "stepped"), strict=True):
        assert other["losses"] == pytest.approx(one["losses"], rel=2e-3, abs=1e-4)
    assert events(alone, "stepped")[-1]["eta_seconds"] == events(shared, "stepped")[-1]["eta_seconds"] == 0
    for one, other in zip(events(alone, "measured"), events(shared, "measured"), strict=True):
        of_one, of_other = parse_event(one).isotropy, parse_event(other).isotropy
        sizes = [{name: (cloud.n, cloud.d) for name, cloud in actual.clouds.items()} for actual in (of_one, of_other)]
        assert sizes[0] == sizes[1]
        for name, value in isotropy(of_one).items():
            bound = 3e-2 if "hubness" in name else 5e-3  # rounding may swap neighbours, of which hubness is a count
            assert isotropy(of_other)[name] == pytest.approx(value, rel=bound, abs=1e-4, nan_ok=True), name
    for one, other in zip(events(alone, "evaluated"), events(shared, "evaluated"), strict=True):
        assert other["metrics"] == pytest.approx(one["metrics"], rel=1e-3, abs=1e-4)


def test_the_best_epoch_is_kept_once(results):
    """The second process writes nothing (see `two_processes.py`); the first keeps the model that both report."""
    for folder in results:
        (finished,) = events(folder / BEST, "finished")
        values = [event["metrics"]["pearson"] for event in events(folder / BEST, "evaluated")][1:]
        assert finished["weights"]["epoch"] == finished["metrics"]["epoch"] == 1 + values.index(max(values)), values
        (checkpoint,) = (folder / BEST / "run" / "checkpoints").iterdir()
        assert checkpoint.name == f"step-{finished['weights']['step']:07d}"
        assert sorted(path.name for path in checkpoint.iterdir()) == ["ended.json", "model.safetensors", "trainer.json"]


def test_stopped_in_mid_epoch_two_processes_continue_to_the_same_numbers(results):
    straight, resumed = results[1] / "straight", results[1] / "resumed"
    assert [event["step"] for event in events(resumed, "resumed")] == [4]
    losses = [
        [(event["step"], event["losses"]) for event in events(folder, "stepped")] for folder in (straight, resumed)
    ]
    assert len(losses[0]) == 12 and losses[0] == losses[1]
    for kind in ("evaluated", "measured"):
        reported = [[{**event, "timing": None} for event in events(folder, kind)] for folder in (straight, resumed)]
        assert reported[0] == reported[1]
    one, other = weights(straight), weights(resumed)
    assert all(torch.equal(one[name], other[name]) for name in one)
