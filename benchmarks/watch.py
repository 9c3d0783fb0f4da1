"""How often `isoviz.Watch` calls a healthy training collapsed, how soon it finds a collapse, and what it costs.

    python benchmarks/watch.py [--trainings 1000] [--out docs] [--record benchmarks/watch.json]

Simulated trainings: batches of independent rows, whose population drifts from step to step. Beside it the naive rule "effective
rank of this batch below 4". The table of docs/watch.md is drawn from the record. About ten minutes on one core.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from _report import Table, machine, options, publish

from isoviz.metrics.spectrum import effective_rank_of
from isoviz.watch import CollapseTest, Watch

RATE, STEPS, HEALTHY, NAIVE = 0.01, 300, 150, 4.0
Maker = Callable[[np.random.Generator, int, int, int], np.ndarray]


def gaussian(rng: np.random.Generator, n: int, d: int, step: int) -> np.ndarray:
    """A spectrum that decays like 1/k and narrows during training; the mean grows from 0 to cosine 0.8."""
    scale = np.arange(1, d + 1) ** -(0.3 + 0.3 * step / STEPS)
    mean = np.sqrt(4 * (scale @ scale) / d) * step / STEPS  # four times the trace is a cosine of 0.8
    return rng.standard_normal((n, d)) * scale + mean


def at_the_limit(rng: np.random.Generator, n: int, d: int, step: int) -> np.ndarray:
    """Nine in ten pairs are alike: a share s of one direction, 1 − s of others, with s² = 0.9; the most that counts as healthy."""
    others = rng.random(n) > np.sqrt(0.9)
    return np.where(others[:, None], rng.standard_normal((n, d)), np.eye(1, d))


def four_directions(rng: np.random.Generator, n: int, d: int, step: int) -> np.ndarray:
    """Equal spread in four directions, the fewest that count as healthy, turned a little at every step."""
    turned = np.roll(np.arange(d), step)[:4]
    points = np.zeros((n, d))
    points[:, turned] = rng.standard_normal((n, 4))
    return points


def heavy(rng: np.random.Generator, n: int, d: int, step: int) -> np.ndarray:
    """Student's t with 3 degrees of freedom for each row's length, and one dimension 20 times as wide as the others."""
    scale = np.ones(d)
    scale[0] = 20.0 / np.sqrt(d)
    return rng.standard_normal((n, d)) * scale / np.sqrt(rng.chisquare(3, (n, 1)) / 3)


def clusters(rng: np.random.Generator, n: int, d: int, step: int) -> np.ndarray:
    """Ten topics that grow tighter."""
    centres = np.sin(np.outer(np.arange(1, 11), np.arange(1, d + 1) ** 2))  # nearly orthogonal
    return centres[rng.integers(0, 10, n)] + (1 - 0.8 * step / STEPS) * rng.standard_normal((n, d))


POPULATIONS: dict[str, Maker] = {
    "drifting spectrum and mean": gaussian,
    "heavy tails, one wide dimension": heavy,
    "ten tightening clusters": clusters,
    "limit: 90 % of pairs alike": at_the_limit,
    "limit: four equal directions": four_directions,
}


def all_alike(rng: np.random.Generator, n: int, d: int, since: int) -> np.ndarray:
    spread = 0.7**since
    return 1 + spread * rng.standard_normal((n, d))


def two_directions(rng: np.random.Generator, n: int, d: int, since: int) -> np.ndarray:
    scale = np.full(d, 0.7**since)
    scale[:2] = 1.0
    return rng.standard_normal((n, d)) * scale


def one_direction(rng: np.random.Generator, n: int, d: int, since: int) -> np.ndarray:
    scale = np.full(d, 0.7**since)
    scale[0] = 1.0
    return rng.standard_normal((n, d)) * scale


COLLAPSES: dict[str, Maker] = {
    "all vectors alike": all_alike,
    "two directions": two_directions,
    "one direction": one_direction,
}


def batch_rank(batch: np.ndarray) -> float:
    """The naive rule's number: exp of the entropy of the shares of the batch's covariance spectrum."""
    centred = batch - batch.mean(0)
    values = np.linalg.eigvalsh(centred @ centred.T)
    positive = values[values > 1e-12 * max(float(values[-1]), 1e-300)]
    return float(effective_rank_of(positive).value) if positive.size else 1.0


def healthy(make: Maker, n: int, d: int, trainings: int, naive_trainings: int) -> dict[str, Any]:
    """Trainings with a false alarm, by the watch and by the naive rule."""
    alarms = naive = 0
    for seed in range(trainings):
        rng, test = np.random.default_rng(seed), CollapseTest(RATE, seed=seed)
        called = naively = False
        for step in range(STEPS):
            batch = make(rng, n, d, step)
            called = called or test.look(batch, step) is not None
            if seed < naive_trainings:
                naively = naively or batch_rank(batch) < NAIVE
        alarms += called
        naive += naively
    return {
        "n": n,
        "d": d,
        "trainings": trainings,
        "alarms": alarms,
        "naive": naive,
        "naive_trainings": naive_trainings,
    }


def collapsing(make: Maker, n: int, d: int, trainings: int) -> dict[str, Any]:
    """Steps from the start of a collapse to the decision; the spread shrinks by 30 % each step."""
    delays: dict[str, list[int]] = {"watch": [], "naive": []}
    for seed in range(trainings):
        rng, test = np.random.default_rng(seed), CollapseTest(RATE, seed=seed)
        early = any(test.look(gaussian(rng, n, d, step), step) for step in range(HEALTHY))
        open_rules = set() if early else {"watch", "naive"}
        for since in range(1, 201):
            batch = make(rng, n, d, since)
            if "watch" in open_rules and test.look(batch, HEALTHY + since):
                delays["watch"].append(since)
                open_rules.discard("watch")
            if "naive" in open_rules and batch_rank(batch) < NAIVE:
                delays["naive"].append(since)
                open_rules.discard("naive")
            if not open_rules:
                break
            if "watch" not in open_rules and since > 60:
                break
    found = {name: len(values) for name, values in delays.items()}
    quantiles = {name: np.quantile(values, [0.5, 0.95]).tolist() if values else None for name, values in delays.items()}
    return {"n": n, "d": d, "trainings": trainings, "found": found, "delays": quantiles}


def cost(n: int = 32, d: int = 768, layers: int = 6, tokens: int = 64, steps: int = 6) -> dict[str, float]:
    """Seconds of a training step of a transformer encoder on this machine's CPU, of a look and of the measures."""
    import torch

    layer = torch.nn.TransformerEncoderLayer(d, 12, 4 * d, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
    watch = Watch(warmup=0, measure_every=10**9, on_collapse="log")
    inputs = torch.randn(n, tokens, d)
    times: dict[str, list[float]] = {"step": [], "look": [], "measures": []}
    for _ in range(steps):
        start = time.perf_counter()
        hidden = model(inputs)
        hidden.mean(1).pow(2).mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        times["step"].append(time.perf_counter() - start)
        for _ in range(20):
            start = time.perf_counter()
            watch.step(hidden)
            times["look"].append(time.perf_counter() - start)
    rng = np.random.default_rng(0)
    for _ in range(40):
        watch.step(rng.standard_normal((n, d)))
    for _ in range(5):
        watch.step(rng.standard_normal((n, d)))  # nothing is measured twice
        start = time.perf_counter()
        watch._measure()
        times["measures"].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()} | {"measure_every": 100.0}


def main() -> None:
    parser = options(__doc__, out="watch.md")
    parser.add_argument("--trainings", type=int, default=1000)
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the measurements as JSON")
    parser.add_argument("--read", type=Path, metavar="FILE", help="draw the tables of a record instead of measuring")
    chosen = parser.parse_args()
    record = json.loads(chosen.read.read_text()) if chosen.read else measured(chosen.trainings)
    if chosen.record:
        chosen.record.write_text(json.dumps(record, indent=1) + "\n")
    publish(chosen.out, "watch", record["stamp"], *drawn(record), page="watch.md")


SIZES = ((32, 64), (8, 64), (32, 384), (32, 768))


def stamp() -> str:
    import torch

    return machine(["numpy", "torch"], f"costs with {torch.get_num_threads()} of them")


def measured(trainings: int) -> dict[str, Any]:
    """The record: costs alone on the machine first, then all settings in two processes."""
    record: dict[str, Any] = {"rate": RATE, "steps": STEPS, "cost": cost(), "healthy": {}, "collapsing": {}}
    record["stamp"] = stamp()
    with ProcessPoolExecutor(2) as pool:
        for name, make in POPULATIONS.items():
            at = SIZES if make is gaussian else SIZES[: 2 if name.startswith("limit") else 1]
            naive = min(100, trainings)
            record["healthy"][name] = [pool.submit(healthy, make, n, d, trainings, naive) for n, d in at]
        for name, make in COLLAPSES.items():
            jobs = [pool.submit(collapsing, make, n, d, min(200, trainings)) for n, d in SIZES[:3]]
            record["collapsing"][name] = jobs
        for part in ("healthy", "collapsing"):
            for name, jobs in record[part].items():
                record[part][name] = [job.result() for job in jobs]
                print(name, record[part][name], flush=True)
    return record


def drawn(record: dict[str, Any]) -> list[Table]:
    """The tables of docs/watch.md."""
    false = Table(
        f"Healthy trainings of {record['steps']} steps with a false alarm (stated rate: at most {record['rate']:.0%})",
        ["population", "batch × d", "trainings", "Watch", "effective rank of the batch below 4"],
    )
    for name, rows in record["healthy"].items():
        for row in rows:
            naive = f"{row['naive'] / row['naive_trainings']:.0%} of {row['naive_trainings']}"
            share = f"{row['alarms'] / row['trainings']:.1%}"
            false.rows.append([name, f"{row['n']} × {row['d']}", f"{row['trainings']:,}", share, naive])
    late = Table(
        "Steps from the start of a collapse to its detection: median (95 % quantile)",
        ["collapse", "batch × d", "Watch", "found", "effective rank of the batch below 4", "found"],
    )
    for name, rows in record["collapsing"].items():
        for row in rows:
            cells = [name, f"{row['n']} × {row['d']}"]
            for rule in ("watch", "naive"):
                quantiles = row["delays"][rule]
                cells += [f"{quantiles[0]:.0f} ({quantiles[1]:.0f})" if quantiles else "–"]
                cells += [f"{row['found'][rule]} of {row['trainings']}"]
            late.rows.append(cells)
    spent = record["cost"]
    share = (spent["look"] + spent["measures"] / spent["measure_every"]) / spent["step"]
    price = Table(
        "Cost beside a training step (6 layers, d = 768, batch 32 × 64 tokens, CPU)",
        ["step", "look, each step", "measures, every 100 steps", "share of the training"],
        [[f"{1000 * spent[name]:.3g} ms" for name in ("step", "look", "measures")] + [f"{share:.2%}"]],
    )
    return [false, late, price]


if __name__ == "__main__":
    main()
