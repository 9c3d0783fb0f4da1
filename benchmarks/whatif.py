"""What-if's sliders: a move on a run's cloud, a move on annotated vectors, and thirty users who move their own at once.

    python benchmarks/whatif.py [--parts run vectors class] [--repeats 5] [--quick] [--out docs]

"Move" is the engine's answer for a new value, once the cloud is loaded and the step has been computed before; "first" is the first
answer with that step, which the page computes in the background. Every move has another value, so nothing is cached.

- `run`: IsoScore, its unbiased form, participation ratio, effective rank, EV_k, average cosine and the frozen head's accuracy, against
  the same numbers recomputed with transforms and metrics.
- `vectors`: isotropy and every quick read-out, against the read-outs by SciPy and scikit-learn without isotropy (and, for search,
  nDCG@10 only). CPU time of all threads is reported besides elapsed time.
- `class`: each user has a separate chain on one cloud, requests the rest of each answer as the page does, and abandons it with the next
  move.

The engine's numbers are those of the other side, which the script checks. Bars, in elapsed time at n = 5,000, d = 768: 200 ms for a
move on a run's cloud, and with pair scores and labels; 1 s with 1,000 queries x 10,000 documents; 95 % of the users' answers within
1.5 s on two cores.
"""

from __future__ import annotations

import statistics
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from _report import Table, finish, machine, options
from numpy.typing import NDArray

from isoviz import metrics
from isoviz.devices import available_cores
from isoviz.posthoc import chain
from isoviz.readouts.division import divide
from isoviz.readouts.heads import FrozenHead, primary
from isoviz.readouts.image import MOST_PAIRED
from isoviz.vectors import VectorSet
from isoviz.whatif import chains, images
from isoviz.whatif.chains import Step
from isoviz.whatif.embeddings import Embeddings
from isoviz.whatif.engine import WhatIf, instant_metrics
from isoviz.whatif.images import NotReadyError
from isoviz.whatif.scheduler import Rank, Scheduler

N, D = 5_000, 768
MOVE_BAR, SEARCH_BAR = 200.0, 1_000.0
"""Milliseconds."""
CLASS_BAR = 1.5
"""Seconds."""
USERS, MOVES, THINK = 30, 8, 1.0
"""Users, moves of each, and mean seconds between an answer and the next move."""
PARTS = ("run", "vectors", "class")
Values = dict[str, float]
Times = tuple[float, float]


def cloud(n: int, d: int, seed: int = 0) -> NDArray[np.float32]:
    """Correlated points with a falling spectrum, away from the origin."""
    random = np.random.default_rng(0)
    mixing = np.linalg.qr(random.normal(size=(d, d)))[0] * np.exp(-np.arange(d) / (d / 4))
    return np.asarray(np.random.default_rng(seed).normal(size=(n, d)) @ mixing.T + 0.4, dtype=np.float32)


def timed(run: Callable[[], Values]) -> tuple[float, float, Values]:
    """Milliseconds by the clock and of CPU, and what came out."""
    clock, cpu = time.perf_counter(), time.process_time()
    values = run()
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3, values


# ------------------------------------------------------------------------------------------ a run's cloud

CHAINS: dict[str, Callable[[int, float], str]] = {
    "ZCA": lambda user, t: f"zca:strength={t}",
    "all-but-the-top": lambda user, t: f"all_but_the_top:remove={1 + int(40 * t)}",
    "PCA whitening": lambda user, t: f"pca_whitening:strength={t}",
    "IsoBN": lambda user, t: f"isobn:beta={t}",
    "batch norm": lambda user, t: f"batch_norm:eps={t}",
    "IsoBN, then ZCA (last moved)": lambda user, t: f"isobn:beta={0.3 + user / 100}~zca:strength={t}",
    "shift, then ZCA": lambda user, t: f"shift:by={1 + user}~zca:strength={t}",
    "ZCA, then all-but-the-top": lambda user, t: f"zca:strength={t}~all_but_the_top:remove={1 + user % 5}",
    "rotation": lambda user, t: f"rotation:seed={int(1e6 * t) + user}",
    "IsoBN, then ZCA (first moved)": lambda user, t: f"isobn:beta={t}~zca:strength=0.5",
}
"""By name: the chain of a user with the slider at t. The last one needs new coordinates for every move."""


def made(n: int, d: int) -> Embeddings:
    """Two splits of a cloud with a head."""
    random = np.random.default_rng(0)
    train, validation = cloud(n, d, 1), cloud(n, d, 2)
    head = FrozenHead(random.normal(size=(2, d)), np.zeros(2))
    labels = [head.predict(part + 0.3 * random.normal(size=part.shape)) for part in (train, validation)]
    return Embeddings(
        key="benchmark",
        cloud="head",
        facts={"primary": "accuracy", "kind": "classification", "seed": 0, "differs": False},
        train=train,
        validation=validation,
        train_labels=labels[0],
        labels=labels[1],
        predicted=head.predict(validation),
        head=head,
    )


def recomputed(stored: Embeddings, steps: tuple[Step, ...]) -> Values:
    """The same numbers, from the points."""
    after = np.asarray(chain([step.make() for step in steps]).fit(stored.train).transform(stored.validation))
    values = {metric.slug: float(metric.evaluate(after)) for metric in instant_metrics()}
    values["ev_1"] = float(np.asarray(metrics.explained_variance(after, k=200))[0])
    values["frozen"] = primary("accuracy", stored.labels, stored.head.predict(after)) or 0.0
    return values


def engine_values(engine: WhatIf, steps: tuple[Step, ...], *, build: bool) -> Values:
    answer = engine.answer(steps, build=build)
    assert answer.ev is not None and answer.readouts["frozen"].value is not None
    return {**answer.measures, "ev_1": float(answer.ev[0]), "frozen": answer.readouts["frozen"].value}  # type: ignore[dict-item]


def run_table(n: int, d: int, repeats: int) -> tuple[Table, list[str]]:
    """A row for each chain of a single user, and what missed the bar or differs."""
    stored = made(n, d)
    engine = WhatIf(stored)
    loading = timed(lambda: engine_values(engine, (), build=True))[0]
    header = ["moved", "first", "move", "slowest", "recomputed", "recomputed / move", "largest difference"]
    table = Table(f"A run's cloud, n = {n} rows of each split, d = {d}, medians of {repeats} moves, ms", header)
    missed = []
    for name, text in list(CHAINS.items())[:-1]:
        first = timed(lambda text=text: engine_values(engine, chains.read(text(0, 0.9)), build=True))[0]
        moves, others, apart = [], [], 0.0
        for number in range(repeats):
            steps = chains.read(text(0, round(0.1 + 0.7 * number / repeats, 3)))
            ours, _, values = timed(lambda steps=steps: engine_values(engine, steps, build=False))
            other, _, expected = timed(lambda steps=steps: recomputed(stored, steps))
            moves.append(ours)
            others.append(other)
            apart = max(apart, *(abs(values[key] - expected[key]) / max(1.0, abs(expected[key])) for key in expected))
        move, other = statistics.median(moves), statistics.median(others)
        cells = [f"{value:.0f}" for value in (first, move, max(moves), other)]
        table.rows.append([name, *cells, f"{other / move:.1f}", f"{apart:.1e}"])
        missed += [f"{name}: {move:.0f} ms"] if move > MOVE_BAR else []
        missed += [f"{name}: {apart:.1e} apart"] if apart > 1e-9 else []
    table.notes.append(f"The cloud is loaded in {loading:.0f} ms.")
    return table, missed


# ------------------------------------------------------------------------------------------ annotated vectors


def rated(shown: int) -> VectorSet:
    """Labelled rows, tied in pairs with scores; a third of them is shown."""
    n = 3 * shown
    random = np.random.default_rng(1)
    ids = [f"r{number}" for number in range(n)]
    columns = pd.DataFrame({"id": ids, "label": random.integers(0, 5, n)})
    pairs = pd.DataFrame({"left": ids[::2], "right": ids[1::2], "score": np.round(random.uniform(0, 5, n // 2), 1)})
    return VectorSet(cloud(n, D), columns, pairs, "similarity", "benchmark")


def search(queries: int, documents: int) -> VectorSet:
    """Two thirds of the queries are shown, each with five relevant documents."""
    random = np.random.default_rng(2)
    count = queries * 3 // 2
    points = cloud(count + documents, D)
    right = np.concatenate([random.choice(documents, 5, replace=False) for _ in range(count)])
    left = np.repeat(np.arange(count), 5)
    points[:count] += 0.3 * points[count + right[::5]]
    ids = np.array([f"q{number}" for number in range(count)] + [f"d{number}" for number in range(documents)])
    columns = pd.DataFrame({"id": ids, "group": ["query"] * count + ["document"] * documents})
    pairs = pd.DataFrame({"left": ids[left], "right": ids[count + right], "score": 1.0 + np.arange(len(left)) % 3})
    return VectorSet(points, columns, pairs, "relevance", "benchmark")


def by_libraries(engine: WhatIf, points: NDArray[np.float64]) -> Values:
    """The same numbers from transformed points."""
    from scipy import stats
    from sklearn.metrics import ndcg_score
    from sklearn.neighbors import NearestNeighbors

    row_annotations, values = engine.annotations, {}
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    if row_annotations.pairs is not None:
        products = np.einsum("ij,ij->i", unit[row_annotations.pairs.left], unit[row_annotations.pairs.right])
        values["spearman_cosine"] = float(stats.spearmanr(row_annotations.pairs.score, products)[0])
        values["pearson_cosine"] = float(stats.pearsonr(row_annotations.pairs.score, products)[0])
    if row_annotations.labels is not None:
        rows = np.sort(np.random.default_rng(0).choice(len(points), MOST_PAIRED, replace=False))
        some = points[rows]
        NearestNeighbors(n_neighbors=11, metric="cosine", algorithm="brute").fit(some).kneighbors(some)
    if row_annotations.queries is not None:
        relevance = row_annotations.queries
        grades = np.zeros((len(relevance.queries), len(relevance.documents)))
        grades[relevance.query, relevance.document] = relevance.grade
        scores = unit[relevance.queries] @ unit[relevance.documents].T
        values["ndcg_cosine"] = float(ndcg_score(grades, scores, k=10, ignore_ties=True))
    return values


def compared(engine: WhatIf, repeats: int) -> tuple[list[Times], list[Times], float]:
    """Times of our moves and of the libraries, by the clock and of CPU, and the largest difference of a number."""
    engine.answer(chains.read("zca:strength=0.95"))
    moves, libraries, apart = [], [], 0.0
    for number in range(repeats):
        steps = chains.read(f"zca:strength={0.1 + 0.1 * number:.2f}")
        image = engine.image(steps)
        points = image.image(image.validation)

        def move(steps: tuple[Step, ...] = steps) -> Values:
            answer = engine.answer(steps, build=False)
            return {slug: one.value or 0.0 for slug, one in answer.readouts.items()}

        ours = timed(move)
        reference = timed(lambda points=points: by_libraries(engine, points))
        moves.append(ours[:2])
        libraries.append(reference[:2])
        apart = max(apart, *(abs(ours[2][slug] - value) for slug, value in reference[2].items()))
    return moves, libraries, apart


def vectors_table(small: int, repeats: int) -> tuple[Table, list[str]]:
    """A row for each kind of annotation, and what missed its bar or differs. small: by how much there are fewer rows."""
    cases = (
        ("pairs and labels, 5,000 rows", rated(5_000 // small + (MOST_PAIRED if small > 1 else 0)), MOVE_BAR),
        ("search, 1,000 queries × 10,000 documents", search(1_000 // small, 10_000 // small), SEARCH_BAR),
    )
    header = ["", "move", "CPU", "bar", "libraries", "CPU", "libraries / move", "largest difference"]
    table = Table(f"Vectors, d = {D}, medians of {repeats} moves, ms", header)
    missed = []
    for name, vectors, bar in cases:
        moves, libraries, apart = compared(WhatIf(divide(vectors)), repeats)
        clock, cpu, other_clock, other = (
            statistics.median(column) for times in (moves, libraries) for column in zip(*times, strict=True)
        )
        cells = [f"{number:.0f}" for number in (clock, cpu, bar, other_clock, other)]
        table.rows.append([name, *cells, f"{other_clock / clock:.1f}", f"{apart:.1e}"])
        missed += [f"{name}: {clock:.0f} ms"] if clock > bar else []
        missed += [f"{name}: {apart:.1e} apart"] if apart > 1e-4 else []
    return table, missed


# ------------------------------------------------------------------------------------------ a class


def serve(what_if: WhatIf, users: int, moves: int) -> dict[str, list[float]]:
    """Seconds of each answer, by the name of the chain."""
    seconds: dict[str, list[float]] = {name: [] for name in CHAINS}
    names = list(CHAINS)
    scheduler = Scheduler()

    def answer(user: str, steps: tuple[Step, ...]) -> None:
        text = chains.write(steps)
        try:
            scheduler.submit(user, f"move {text}", lambda: what_if.answer(steps, build=False), Rank.MOVE).result()
        except NotReadyError:
            scheduler.submit(user, f"build {text}", lambda: what_if.answer(steps), Rank.BUILD).result()

    def user(number: int) -> None:
        random = np.random.default_rng(number)
        name = names[number % len(names)]
        for _ in range(moves):
            time.sleep(random.uniform(0.5, 1.5) * THINK)
            steps = chains.read(CHAINS[name](number, round(random.uniform(0.05, 0.95), 6)))
            began = time.perf_counter()
            answer(str(number), steps)
            seconds[name].append(time.perf_counter() - began)
            scheduler.submit(str(number), chains.write(steps), lambda steps=steps: what_if.stages(steps))

    threads = [threading.Thread(target=user, args=(number,)) for number in range(users)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    scheduler.close()
    return seconds


def class_table(n: int, d: int, users: int, moves: int) -> tuple[Table, list[str]]:
    """A row for all answers and for those of each chain, and the bar if it was missed."""
    images.IMAGES.clear()
    what_if = WhatIf(made(n, d))
    for text in ("", "zca"):
        what_if.answer(chains.read(text))
    began, used = time.perf_counter(), time.process_time()
    seconds = serve(what_if, users, moves)
    wall, used = time.perf_counter() - began, time.process_time() - used
    title = f"{users} users, {moves} moves each, {THINK:g} s between moves, n = {n}, d = {d}, seconds until an answer"
    table = Table(title, ["", "p50", "p95", "slowest"])
    answers = {"all": [value for values in seconds.values() for value in values], **seconds}
    p95 = {name: float(np.quantile(values, 0.95)) for name, values in answers.items()}
    for name, values in answers.items():
        table.rows.append([name, *(f"{value:.2f}" for value in (statistics.median(values), p95[name], max(values)))])
    table.notes.append(
        f"{used:.0f} s of CPU in {wall:.0f} s, {100 * used / wall / available_cores():.0f} % of the cores."
    )
    return table, [f"95 % of the users' answers within {p95['all']:.2f} s"] if p95["all"] > CLASS_BAR else []


def main() -> int:
    """Measure, print, write the section if asked; 1 if a bar is missed or a number differs."""
    parser = options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="moves per case")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to try the script; no bar is judged")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    n, d, small = (500, 64, 10) if chosen.quick else (N, D, 1)
    made_tables: dict[str, Callable[[], Any]] = {
        "run": lambda: run_table(n, d, chosen.repeats),
        "vectors": lambda: vectors_table(small, chosen.repeats),
        "class": lambda: class_table(n, d, *((len(CHAINS), 2) if chosen.quick else (USERS, MOVES))),
    }
    tables, missed = [], []
    for part in chosen.parts:
        table, late = made_tables[part]()
        tables.append(table)
        missed += late
    about = machine(["numpy", "scipy", "scikit-learn"], "2 threads")
    return finish(chosen, "whatif", "## What-if", about, missed, *tables)


if __name__ == "__main__":
    sys.exit(main())
