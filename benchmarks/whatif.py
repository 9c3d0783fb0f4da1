"""Milliseconds per move of a What-if slider, against the same numbers recomputed with transforms and metrics.

Both give IsoScore, its unbiased form, participation ratio, effective rank, EV_k, average cosine and the frozen head's accuracy of
the validation rows, and the same values (the script checks). "Move" is the engine once the cloud is loaded and the step has been
computed before; "first" is the first answer with that step, which the page computes in the background. Every move has another value,
so nothing is cached. Bar: at most 200 ms at n = 5,000, d = 768.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

from isoviz import metrics
from isoviz.posthoc import chain
from isoviz.readouts.heads import FrozenHead, primary
from isoviz.whatif import chains
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import WhatIf, instant_metrics

BAR = 200.0

MOVES: dict[str, Callable[[float], str]] = {
    "whitening strength (ZCA)": lambda t: f"zca:strength={t}",
    "whitening strength (PCA)": lambda t: f"pca_whitening:strength={t}",
    "all-but-the-top": lambda t: f"all_but_the_top:remove={1 + int(40 * t)}",
    "IsoBN β": lambda t: f"isobn:beta={t}",
    "batch norm ε": lambda t: f"batch_norm:eps={t}",
    "rotation (a new seed)": lambda t: f"rotation:seed={int(1e6 * t)}",
    "mean shift": lambda t: f"shift:by={t}",
    "scale": lambda t: f"scale:factor={1 + t}",
    "ZCA, then all-but-the-top": lambda t: f"zca:strength={t}~all_but_the_top:remove=3",
    "IsoBN, then ZCA (last moved)": lambda t: f"isobn~zca:strength={t}",
    "ZCA, then IsoBN (last moved)": lambda t: f"zca:strength=0.5~isobn:beta={t}",
}


def made(n: int, d: int) -> Embeddings:
    """Two splits of a correlated cloud with a falling spectrum, away from the origin."""
    random = np.random.default_rng(0)
    mixing = np.linalg.qr(random.normal(size=(d, d)))[0] * np.exp(-np.arange(d) / (d / 4))
    train, validation = (random.normal(size=(n, d)) @ mixing.T + 0.5 for _ in range(2))
    head = FrozenHead(random.normal(size=(2, d)), np.zeros(2))
    labels = [head.predict(part + 0.3 * random.normal(size=part.shape)) for part in (train, validation)]
    facts = {"primary": "accuracy", "kind": "classification", "seed": 0, "differs": False}
    return Embeddings(
        key="benchmark",
        cloud="head",
        facts=facts,
        train=train.astype(np.float32),
        validation=validation.astype(np.float32),
        train_labels=labels[0],
        labels=labels[1],
        predicted=head.predict(validation),
        head=head,
    )


def naive(stored: Embeddings, steps: tuple[Step, ...]) -> dict[str, float]:
    """The same numbers, from the points."""
    after = np.asarray(chain([step.make() for step in steps]).fit(stored.train).transform(stored.validation))
    values = {metric.slug: float(metric.evaluate(after)) for metric in instant_metrics()}
    values["ev_1"] = float(np.asarray(metrics.explained_variance(after, k=200))[0])
    values["frozen"] = primary("accuracy", stored.labels, stored.head.predict(after)) or 0.0
    return values


def engine_values(engine: WhatIf, steps: tuple[Step, ...], *, build: bool) -> dict[str, float]:
    """The engine's."""
    answer = engine.answer(steps, build=build)
    assert answer.ev is not None and answer.readouts["frozen"].value is not None
    return {**answer.measures, "ev_1": float(answer.ev[0]), "frozen": answer.readouts["frozen"].value}  # type: ignore[dict-item]


def timed(run: Callable[[], dict[str, float]]) -> tuple[float, dict[str, float]]:
    """Milliseconds, and what came out."""
    began = time.perf_counter()
    values = run()
    return (time.perf_counter() - began) * 1e3, values


def main() -> None:
    """Print one line per transform; exit 1 if a move is above the bar or a number differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="moves per transform")
    parser.add_argument("-n", type=int, default=5_000, help="rows of each split")
    parser.add_argument("-d", type=int, default=768, help="dimensions")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    stored = made(chosen.n, chosen.d)
    engine = WhatIf(stored)
    loading, _ = timed(lambda: engine_values(engine, (), build=True))
    print(
        f"n = {chosen.n} rows of each split, d = {chosen.d}, median of {chosen.repeats} moves; the cloud is loaded in {loading:.0f} ms"
    )
    print(f"{'moved':32}{'first':>9}{'move':>9}{'slowest':>9}{'anew':>9}{'ratio':>8}   largest difference")
    failed = False
    for name, text in MOVES.items():
        first, _ = timed(lambda text=text: engine_values(engine, chains.read(text(0.9)), build=True))
        moves, recomputed, apart = [], [], 0.0
        for number in range(chosen.repeats):
            steps = chains.read(text(round(0.1 + 0.7 * number / chosen.repeats, 3)))
            ours, values = timed(lambda steps=steps: engine_values(engine, steps, build=False))
            naive_seconds, expected = timed(lambda steps=steps: naive(stored, steps))
            moves.append(ours)
            recomputed.append(naive_seconds)
            apart = max(apart, *(abs(values[key] - expected[key]) / max(1.0, abs(expected[key])) for key in expected))
        move, other = statistics.median(moves), statistics.median(recomputed)
        failed = failed or move > BAR or apart > 1e-9
        print(f"{name:32}{first:8.0f} {move:8.0f} {max(moves):8.0f} {other:8.0f} {other / move:7.1f}   {apart:.1e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
