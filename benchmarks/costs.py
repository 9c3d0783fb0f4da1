"""What every method, measure and transform of the catalogues costs, as ratios that the Methods page and docs/methods.md show.

    python benchmarks/costs.py [--steps 15] [--repeats 7] [--parts measures …] [--quick] [--out FILE]

All in CPU time of one thread, contenders taking turns in one process:

1. Methods: a training step of 32 rows over the plain step, on the same batch, the median over the batches; on the bundled
   encoder and on one of MiniLM's size (random weights). What a method reads before an epoch (I-STAR's Σ_S) is the time per
   batch that it reads, over the plain step.
2. Measures: the value of one cloud of 1,000 points in 256 dimensions, over IsoScore of the same cloud.
3. Transforms: fitting on that cloud and applying to it, over IsoScore of it.

Without `--out` nothing is written; the record that the project carries is `isoviz/costs.json`. With `--parts` the other parts of the
file stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
from _report import machine, medians
from _steps import BATCH, BUNDLED, COLA, WARM_UP, Encoder, Stepper, in_turns, minilm_size, padded
from accelerate import Accelerator
from transformers.utils import logging

from isoviz import methods, metrics, posthoc
from isoviz.metrics.protocol import Metric
from isoviz.parameters import start_values
from isoviz.training import processes

N, D = 1000, 256
PLAIN = "baseline"
PARTS = ("methods", "measures", "transforms")


def main() -> int:
    """Measure, print, and write the record if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=15, help="timed steps per method")
    parser.add_argument("--repeats", type=int, default=7, help="timed calls per measure and transform")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, help="what to measure (default: all)")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try the script")
    parser.add_argument("--out", type=Path, metavar="FILE", help="where to write the record")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    parts: dict[str, Callable[[], object]] = {
        "methods": lambda: _methods(2 if chosen.quick else chosen.steps, chosen.quick),
        "measures": lambda: _measures(1 if chosen.quick else chosen.repeats),
        "transforms": lambda: _transforms(1 if chosen.quick else chosen.repeats),
    }
    kept = json.loads(chosen.out.read_text(encoding="utf-8")) if chosen.out and chosen.out.is_file() else {}
    record = {
        **kept,
        "machine": machine(["torch", "transformers", "numpy", "scipy"], "1 thread"),
        "rows": BATCH,
        "n": N,
        "d": D,
        **{name: measured() for name, measured in parts.items() if name in chosen.parts},
    }
    text = json.dumps(record, indent=1, ensure_ascii=False)
    print(text)
    if chosen.out:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    return 0


def _methods(steps: int, quick: bool) -> dict[str, dict[str, dict[str, float]]]:
    """Slug → encoder → `step`, and `before_epoch` where a method reads rows then."""
    with tempfile.TemporaryDirectory() as scratch:
        sizes = {"layers": 2, "width": 96, "heads": 4} if quick else {}
        encoders = [Encoder("bundled", BUNDLED, 0), minilm_size(Path(scratch) / "encoder", 0, **sizes)]
        measured = {encoder.name: _steps(encoder, steps) for encoder in encoders}
    return {slug: {name: ratios[slug] for name, ratios in measured.items()} for slug in methods.catalogue()}


def _steps(encoder: Encoder, steps: int) -> dict[str, dict[str, float]]:
    processes.begin()
    accelerator = Accelerator(mixed_precision="no", step_scheduler_with_optimizer=False)
    batches = list(islice(padded(encoder, COLA, (steps + WARM_UP) * BATCH), steps + WARM_UP))
    steppers = {slug: Stepper(kind, encoder, accelerator, len(batches)) for slug, kind in methods.catalogue().items()}
    refreshed, took = in_turns(steppers, batches, time.process_time)
    plain = took[PLAIN]
    ratios: dict[str, dict[str, float]] = {}
    for slug in steppers:
        paired = [one / other for one, other in zip(took[slug], plain, strict=True)]
        ratios[slug] = {"step": round(statistics.median(paired), 3)}
        reads = refreshed[slug] / len(batches) / statistics.median(plain)
        if reads > 0.02:
            ratios[slug]["before_epoch"] = round(reads, 2)
    return ratios


def _cloud() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) * np.arange(1, D + 1) ** -0.5 + 0.2


def _measures(repeats: int) -> dict[str, float]:
    cloud = _cloud()
    weights = cloud / np.sqrt((cloud**2).sum(1).mean())

    def call(metric: Metric) -> Callable[[], object]:
        rows = np.arange(N)
        inputs = {
            "shrinkage_cov": np.eye(D),
            "zeta": 0.2,
            "partners": cloud[::-1],
            "groups": rows // 10,
            "texts": rows // 20,
        }
        points = weights if metric.kinds == {"weights"} else cloud
        return lambda: metric.evaluate(points, **{name: inputs[name] for name in metric.inputs})

    return _over_isoscore({slug: call(metric) for slug, metric in metrics.catalogue().items()}, repeats)


def _transforms(repeats: int) -> dict[str, float]:
    cloud = _cloud()

    def call(slug: str) -> Callable[[], object]:
        kind = posthoc.catalogue()[slug]
        return lambda: kind(**start_values(kind.Params)).fit_transform(cloud, np.arange(N) % 3)

    of_model = [slug for slug, kind in posthoc.catalogue().items() if kind.needs == "model"]
    costs = _over_isoscore({slug: call(slug) for slug in posthoc.catalogue() if slug not in of_model}, repeats)
    narrow = cloud[:, :128]  # the width of the bundled models
    calls = {
        slug: lambda slug=slug: posthoc.get(slug)(model="demo/tiny-bart").fit_transform(narrow) for slug in of_model
    }
    return dict(sorted({**costs, **_over_isoscore(calls, repeats, narrow)}.items()))


def _over_isoscore(
    calls: Mapping[str, Callable[[], object]], repeats: int, cloud: np.ndarray | None = None
) -> dict[str, float]:
    cloud = _cloud() if cloud is None else cloud
    times = medians({"": lambda: metrics.isoscore(cloud), **calls}, repeats, time.process_time)
    floor = times.pop("")
    return {slug: float(f"{taken / floor:.2g}") for slug, taken in times.items()}


if __name__ == "__main__":
    raise SystemExit(main())
