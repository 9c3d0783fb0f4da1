"""What IsoViz computes on an accelerator, computed there and on the CPU: `python -m tests.devices.comparing --out FILE`.

The process makes the simulated device its accelerator (with `--real` it keeps the machine's own) and writes the largest relative
difference of every case, for the tests and for `benchmarks/gpu.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz import methods, metrics, posthoc
from isoviz.config import RunConfig
from isoviz.events import Event
from tests import tiny

Quantities = dict[str, NDArray[np.float64]]
TOLERANCE: Final = 1e-5
_FLOW: Final = 1e-4
_HALF: Final = 2e-2  # the devices round different operators to bf16, as GPUs and CPUs do
_SHORT: Final[dict[str, dict[str, object]]] = {"isolayer": {"layer_epochs": 2, "layer_batch": 16}}
_SENSITIVE: Final = {"rankme", "alpha_req", "twonn", "local_dimension", "hubness", "reciprocity", "massive_activation"}
"""Metrics that depend on tiny singular values, on almost equal distances or on single entries. They are compared on equal clouds only."""
_INPUTS: Final = "ISOVIZ_COMPARING_INPUTS"
"""Names the folder of models and data that all cases share."""
_TIMES: Final = {"samples_per_second", "eta_seconds", "step_seconds", "timing", "learning_rate", "step", "epoch"}


@dataclass(frozen=True)
class Case:
    """Two computations that should agree.

    Attributes:
        group: heading of its rows in the table.
        compute: returns both results, given an empty folder.
        tolerance: largest relative difference; 0: they must be equal.
        on: `simulated` if it sets the memory of the simulated device, `real` if that device lacks what it needs.
    """

    group: str
    compute: Callable[[Path], tuple[Quantities, Quantities]]
    tolerance: float = TOLERANCE
    on: Literal["any", "simulated", "real"] = "any"


@dataclass(frozen=True)
class Outcome:
    """A case's result: its difference, or the error that ended it."""

    group: str
    difference: float | None
    tolerance: float
    seconds: float
    error: str = ""


# -------------------------------------------------------------------------------------------------------------- two devices


@contextlib.contextmanager
def on_cpu() -> Iterator[None]:
    """Compute on the CPU, although there is an accelerator."""
    os.environ["ACCELERATE_USE_CPU"] = "true"
    try:
        yield
    finally:
        del os.environ["ACCELERATE_USE_CPU"]


def both(compute: Callable[[Path], Quantities]) -> Callable[[Path], tuple[Quantities, Quantities]]:
    """The same computation on the CPU and on the accelerator."""

    def twice(folder: Path) -> tuple[Quantities, Quantities]:
        (folder / "cpu").mkdir()
        (folder / "device").mkdir()
        with on_cpu():
            expected = compute(folder / "cpu")
        return expected, compute(folder / "device")

    return twice


def largest_difference(expected: Quantities, found: Quantities) -> float:
    """The largest difference of any entry, relative to the largest entry of its quantity. A missing quantity is infinitely off."""
    if expected.keys() != found.keys():
        return float("inf")
    worst = 0.0
    for name, a in expected.items():
        b = found[name]
        if a.shape != b.shape or not np.array_equal(np.isnan(a), np.isnan(b)):
            return float("inf")
        scale = max(float(np.nanmax(np.abs(a), initial=0.0)), 1e-9)
        worst = max(worst, float(np.nanmax(np.abs(a - b), initial=0.0)) / scale)
    return worst


def array(value: Any) -> NDArray[np.float64]:
    """A number, array or tensor of any device in float64."""
    value = value.detach().cpu().double().numpy() if hasattr(value, "detach") else value
    return np.asarray(value, dtype=np.float64)


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, NDArray[np.float64]]]:
    """All numbers in nested JSON except times and positions, by their path."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if key not in _TIMES | _SENSITIVE:
                yield from numbers(entry, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        if value and all(isinstance(entry, (int, float)) for entry in value):
            yield name, array(value)
        else:
            for index, entry in enumerate(value):
                yield from numbers(entry, f"{name}.{index}")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, array(value)


# ----------------------------------------------------------------------------------------------------------------- training


def config(method: str = "baseline", kind: str = "classification", **changes: Any) -> RunConfig:
    """A run of a few rows, without dropout unless the model has some."""
    params: dict[str, object] = {**_SHORT.get(method, {}), **changes.pop("params", {})}
    family, dropout = changes.pop("family", "bart" if kind == "seq2seq" else "bert"), changes.pop("dropout", 0.0)
    shared = Path(os.environ[_INPUTS])
    data = shared / kind
    if not data.exists():
        tiny.write(kind, data, train=24, validation=12)
    values: dict[str, Any] = {
        "model": str(_model(shared, family, dropout)),
        "task": tiny.TASKS[kind],
        "data": str(data),
        "direction": "ro-en" if kind == "seq2seq" else None,
        "method": method,
        "params": methods.check_params(method, params),
        "epochs": 1,
        "batch_size": 8,
        "learning_rate": 5e-4,
        "precision": "no",
        "threads": 1,
    }
    return RunConfig.checked(**{**values, **changes})


def _model(folder: Path, family: str, dropout: float) -> Path:
    """A tiny model whose vectors differ clearly between texts: those of new weights are almost equal, and scores magnify rounding."""
    import torch
    from safetensors.torch import load_file, save_file

    model = tiny.TinyModels(folder)(family, dropout)
    marker = model / "spread"
    if not marker.exists():
        torch.manual_seed(2)
        weights = load_file(model / "model.safetensors")
        spread = {name: torch.randn(value.shape) * 0.3 if value.ndim > 1 else value for name, value in weights.items()}
        save_file(spread, model / "model.safetensors", metadata={"format": "pt"})
        marker.touch()
    return model


def events_of(
    cfg: RunConfig,
    folder: Path,
    resume: bool = False,
    stop_after: int | None = None,
    expected_device: str | None = None,
) -> list[Event]:
    """The events of a run, which must have trained on this process's device."""
    from isoviz import devices
    from isoviz.training.loop import train

    events: list[Event] = []

    def should_stop() -> bool:
        return stop_after is not None and any(event.kind == "stepped" and event.step >= stop_after for event in events)

    train(cfg, events.append, should_stop, folder, resume)
    used = {event.device for event in events if event.kind == "started"}
    wanted = expected_device or devices.current().type
    assert used == {wanted}, f"trained on {used}, not on {wanted}"
    return events


def results_of(events: list[Event]) -> Quantities:
    """Losses of all steps and everything measured, by name."""
    results: Quantities = {}
    steps = [event for event in events if event.kind == "stepped"]
    for term in steps[0].losses if steps else ():
        results[f"loss.{term}"] = array([event.losses[term] for event in steps if term in event.losses])
    for index, event in enumerate(events):
        if event.kind in ("evaluated", "measured"):
            content = event.model_dump(mode="json", exclude={"arrays"})
            results |= {f"{event.kind}.{index}{name}": value for name, value in numbers(content)}
    return results


def training(**changes: Any) -> Callable[[Path], tuple[Quantities, Quantities]]:
    """A run on both devices."""
    return both(lambda folder: results_of(events_of(config(**changes), folder)))


def resumed(folder: Path) -> tuple[Quantities, Quantities]:
    """Two runs with dropout on the accelerator: one uninterrupted, one stopped within its second epoch and resumed.

    With deterministic kernels, if the environment allows them: a GPU's usual ones add in any order.
    """
    import torch

    torch.use_deterministic_algorithms("CUBLAS_WORKSPACE_CONFIG" in os.environ, warn_only=True)
    cfg = config(dropout=0.1, epochs=2, learning_rate=5e-3)
    whole = results_of(events_of(cfg, folder / "whole"))
    first = events_of(cfg, folder / "parts", stop_after=4)
    assert first[-1].kind == "stopped"
    torch.manual_seed(1234)  # a new process has drawn other numbers
    second = events_of(cfg, folder / "parts", resume=True)
    steps = {event.step: event for event in (*first, *second) if event.kind == "stepped"}
    rest = [event for event in (*first, *second) if event.kind in ("evaluated", "measured")]
    joined = [*(steps[step] for step in sorted(steps)), *rest]
    torch.use_deterministic_algorithms(False)
    renamed = {name: value for name, value in zip(whole, results_of(joined).values(), strict=True)}  # noqa: C416 (by position)
    return whole, renamed


def fp16(folder: Path) -> tuple[Quantities, Quantities]:
    """Losses in float32 on the CPU, and on the accelerator with fp16 autocast and scaled gradients."""
    with on_cpu():
        expected = results_of(events_of(config("istar"), folder / "cpu"))
    found = results_of(events_of(config("istar", precision="fp16"), folder / "device"))
    first, second = ({k: v for k, v in each.items() if k.startswith("loss")} for each in (expected, found))
    return first, second


def split_when_memory_runs_out(folder: Path) -> tuple[Quantities, Quantities]:
    """A run on the accelerator that has memory for half a batch only, against one that has enough. All of it is freed again."""
    import gc

    from tests.devices import simulated

    library = simulated.load()
    cfg = config(batch_size=16)
    whole = results_of(events_of(cfg, folder / "whole"))
    gc.collect()
    before = library.held()
    library.set_limit(before + _room(cfg, folder))
    try:
        events = events_of(cfg, folder / "short")
    finally:
        library.set_limit(2**62)
    gc.collect()
    assert any("split" in event.detail for event in events if event.kind == "entered"), "the memory was not short"
    assert library.held() <= before, f"{library.held() - before} bytes are still in use"
    last = max(index for index, event in enumerate(events) if event.kind == "started")
    found = results_of(events[last:])
    return whole, dict(zip(whole, found.values(), strict=True))


def _room(cfg: RunConfig, folder: Path) -> int:
    """Bytes that training with batches of half the size needs."""
    from tests.devices import simulated

    library = simulated.load()
    before = library.held()
    library.reset_most_held()
    events_of(cfg.model_copy(update={"batch_size": cfg.batch_size // 2}), folder / "half")
    return int(library.most_held() - before) + 20_000


# ------------------------------------------------------------------------------------------------------- a finished run


def finished_run() -> tuple[Any, str]:
    """A run trained on this process's device, in a store of its own that is this process's home; the store and the run's id."""
    from isoviz import devices
    from isoviz.runs.execution import execute
    from isoviz.runs.store import Store

    os.environ["ISOVIZ_HOME"] = str(Path(os.environ[_INPUTS], f"home-{devices.current().type}"))
    store = Store()
    finished = store.list(status="finished")
    if finished:
        return store, finished[0].id
    (run,) = store.create([config("isobn")])
    assert execute(store, run).status == "finished", store.get(run).error
    return store, run


def what_if(folder: Path) -> Quantities:
    """What-if's pass over a run's rows."""
    from isoviz.whatif.embeddings import compute as encode_run
    from isoviz.whatif.request import request_for

    store, run = finished_run()
    facts, arrays = encode_run(request_for(store.get(run), store.folder_of(run)), lambda done, total, text: None)
    return {name: array(value) for name, value in arrays.items() if value.dtype.kind == "f"} | dict(
        numbers(facts["metrics"])
    )


def explore(folder: Path) -> Quantities:
    """Explore's view of a run: all layers, its head and its sentences."""
    from isoviz import devices
    from isoviz.exploring import measuring
    from isoviz.exploring.request import ViewRequest

    store, run = finished_run()
    request = ViewRequest(model=f"run:{run}", task="glue/cola", data=store.get(run).config.data, split="validation")
    facts, arrays = measuring.compute(request, lambda done, total, text: None)
    assert facts["device"] == devices.current().type, f"computed on {facts['device']}"
    return {name: array(value) for name, value in arrays.items() if value.dtype in (np.float32, np.float64)}


def moves_to_the_cpu(folder: Path) -> tuple[Quantities, Quantities]:
    """Extraction on an accelerator whose memory runs out, against extraction on the CPU."""
    from isoviz.models import sources
    from isoviz.models.extract import layer_views
    from tests.devices import simulated

    library, source = simulated.load(), sources.resolve(config().model)

    def read() -> tuple[str, Quantities]:
        views = layer_views(source, [["w0 w1 w2 w3"] * 40], poolings=["mean", "tokens"])
        clouds = {f"{layer}.{name}": array(cloud) for (layer, name), cloud in views.clouds.items()}
        return views.device, clouds | {
            f"{k}.tokens": v.stream.sample().true_covariance for k, v in views.tokens.items()
        }

    with on_cpu():
        _, expected = read()
    library.set_limit(library.held() + 60_000)
    try:
        used, found = read()
    finally:
        library.set_limit(2**62)
    assert used == "cpu", "the memory was not short"
    return expected, found


# ---------------------------------------------------------------------------------------------------- metrics and transforms


def with_gradient(compute: Callable[[Any], Any], points: NDArray[np.float64]) -> Callable[[Path], Any]:
    """A function of a float32 cloud, in value and, if it has one, gradient, on both devices."""

    def once(folder: Path) -> Quantities:
        import torch

        from isoviz import devices

        cloud = torch.tensor(points, dtype=torch.float32, device=devices.current(), requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = compute(cloud)
        if isinstance(value, tuple) or not hasattr(value, "requires_grad"):
            return dict(numbers(value))
        if value.requires_grad:
            (value * torch.arange(1, value.numel() + 1, device=value.device).reshape(value.shape)).sum().backward()
        return {"value": array(value)} | ({} if cloud.grad is None else {"gradient": array(cloud.grad)})

    return both(once)


def cloud(rows: int = 48, width: int = 6) -> NDArray[np.float64]:
    """A cloud with a mean and unequal variances."""
    random = np.random.default_rng(0)
    return random.normal(size=(rows, width)) * np.linspace(2.0, 0.5, width) + 0.3


def _metric(metric: metrics.Metric) -> Callable[[Any], Any]:
    def compute(points: Any) -> Any:
        import torch

        n, d = points.shape
        every = {
            "shrinkage_cov": torch.eye(d, device=points.device),
            "zeta": 0.2,
            "partners": points.flip(0),
            "groups": torch.arange(n) // 2,
            "texts": torch.arange(n) // 3,
        }
        inputs = {name: every[name] for name in metric.inputs}
        return metric.evaluate(points / 4 if metric.kinds == {"weights"} else points, **inputs)

    return compute


def _penalty(name: str) -> Callable[[Any], Any]:
    def compute(points: Any) -> Any:
        import torch

        if name == "istar_penalty":
            return metrics.istar_penalty(points, torch.eye(points.shape[1], device=points.device), 0.2)
        if name == "isoscore_from_covariance":
            return metrics.isoscore_from_covariance(points.T @ points)
        return getattr(metrics, name)(points)

    return compute


def _transform(kind: type[posthoc.CataloguedTransform]) -> Callable[[Any], Any]:
    from isoviz.parameters import start_values

    return lambda points: kind(**start_values(kind.Params)).fit(points).transform(points)


def _streamed(points: Any) -> Any:
    accumulator = metrics.CovarianceAccumulator(points.shape[1])
    for part in points.detach().split(20):
        accumulator.update(part)
    return accumulator.covariance


# -------------------------------------------------------------------------------------------------------------------- cases


def cases() -> dict[str, Case]:
    """All cases by name."""
    listed: dict[str, Case] = {}
    for slug in methods.catalogue():
        listed[slug] = Case("method", training(method=slug), _FLOW if slug == "flow" else TOLERANCE)
    for name, method, params in (
        ("istar, unbiased estimator", "istar", {"estimator": "unbiased"}),
        ("batchnorm, moving statistics", "batchnorm", {"statistics": "moving"}),
        ("isobn, as in its code", "isobn", {"form": "code"}),
        ("isolayer, isotropy of all rows", "isolayer", {"isotropy": "full"}),
        ("isolayer, then the classifier", "isolayer", {"variant": "layer_then_classifier"}),
    ):
        params = {**_SHORT.get(method, {}), **params}
        listed[name] = Case("method", training(method=method, params=params))
    listed |= {
        "spans": Case("task", training(kind="span", method="istar")),
        # Adam turns round-off of small gradients into steps of full size: 1.2e-5 with one processor's kernels
        "generation": Case("task", training(kind="seq2seq", method="istar"), 5e-5),
        "gradient accumulation": Case("training", training(method="istar", grad_accum=2, batch_size=4)),
        "LoRA": Case("training", training(lora_rank=2)),
        "bf16 autocast": Case("training", training(method="istar", precision="bf16"), _HALF),
        "fp16 autocast": Case("training", fp16, _HALF, on="real"),
        "stop and resume, with dropout": Case("training", resumed, 0.0),
        "batches split when memory runs out": Case("training", split_when_memory_runs_out, on="simulated"),
        "Explore": Case("encoding", both(explore)),
        "What-if": Case("encoding", both(what_if)),
        "extraction when memory runs out": Case("encoding", moves_to_the_cpu, on="simulated"),
        "running sums": Case("metric", with_gradient(_streamed, cloud())),
    }
    for metric in metrics.catalogue().values():
        listed[f"metric {metric.slug}"] = Case("metric", with_gradient(_metric(metric), cloud()))
    for name in ("istar_penalty", "istar_unbiased_penalty", "cosine_penalty", "isoscore_from_covariance"):
        listed[name] = Case("metric", with_gradient(_penalty(name), cloud(96)))
    for kind in posthoc.catalogue().values():
        if kind.needs:  # more than points
            continue
        listed[f"transform {kind.slug}"] = Case("transform", with_gradient(_transform(kind), cloud()))
    return listed


def outcomes(names: list[str] | None = None, real: bool = False) -> dict[str, Outcome]:
    """The results of the named cases, or of all.

    Args:
        real: on the machine's own accelerator; else the simulated device is this process's accelerator from now on.
    """
    from isoviz import devices
    from tests.devices import simulated

    if not real:
        simulated.load()
    if devices.current().type == "cpu":
        raise SystemExit("this machine has no accelerator, or ACCELERATE_USE_CPU hides it")
    results = {}
    with tempfile.TemporaryDirectory() as root:
        os.environ[_INPUTS] = str(Path(root, "inputs"))
        for number, (name, case) in enumerate(cases().items()):
            if (names and name not in names) or case.on == ("simulated" if real else "real"):
                continue
            folder = Path(root, str(number))
            folder.mkdir()
            began, difference, error = time.perf_counter(), None, ""
            try:
                difference = largest_difference(*case.compute(folder))
            except Exception:
                error = traceback.format_exc()
            results[name] = Outcome(case.group, difference, case.tolerance, time.perf_counter() - began, error)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="JSON: a result for each case")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="only these")
    parser.add_argument("--real", action="store_true", help="on the machine's own accelerator")
    options = parser.parse_args()
    content = {name: asdict(outcome) for name, outcome in outcomes(options.cases, options.real).items()}
    options.out.write_text(json.dumps(content, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
