"""A slider's move in What-if on vectors: isotropy and read-outs of a new image, against the same read-outs by common libraries.

"Move" is the engine's answer for a new value, once the vectors are loaded and the step has been computed before;
"libraries" are the same read-outs from the transformed points by SciPy and scikit-learn, without isotropy (and, for search, nDCG@10
by cosine and by dot product only). Both give the same values, and the script checks it. CPU time of all threads is
reported besides elapsed time, which other work on the machine increases.

Bars, in elapsed time: 200 ms with pair scores and labels (n = 5,000 rows shown, d = 768); 1 s with 1,000 queries x 10,000 documents.
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from _report import Table, machine, options, publish
from numpy.typing import NDArray

from isoviz.readouts.division import divide
from isoviz.readouts.image import MOST_PAIRED
from isoviz.vectors import VectorSet
from isoviz.whatif import chains
from isoviz.whatif.engine import WhatIf

D = 768
Values = dict[str, float]
Times = tuple[float, float]


def cloud(n: int) -> NDArray[np.float32]:
    """Correlated points with a falling spectrum, away from the origin."""
    random = np.random.default_rng(0)
    mixing = np.linalg.qr(random.normal(size=(D, D)))[0] * np.exp(-np.arange(D) / (D / 4))
    return np.asarray(random.normal(size=(n, D)) @ mixing.T + 0.3, dtype=np.float32)


def rated(shown: int) -> VectorSet:
    """Labelled rows, tied in pairs with scores; a third of them is shown."""
    n = 3 * shown
    random = np.random.default_rng(1)
    ids = [f"r{number}" for number in range(n)]
    columns = pd.DataFrame({"id": ids, "label": random.integers(0, 5, n)})
    pairs = pd.DataFrame({"left": ids[::2], "right": ids[1::2], "score": np.round(random.uniform(0, 5, n // 2), 1)})
    return VectorSet(cloud(n), columns, pairs, "similarity", "benchmark")


def search(queries: int, documents: int) -> VectorSet:
    """Two thirds of the queries are shown, each with five relevant documents."""
    random = np.random.default_rng(2)
    count = queries * 3 // 2
    points = cloud(count + documents)
    right = np.concatenate([random.choice(documents, 5, replace=False) for _ in range(count)])
    left = np.repeat(np.arange(count), 5)
    points[:count] += 0.3 * points[count + right[::5]]
    ids = [f"q{number}" for number in range(count)] + [f"d{number}" for number in range(documents)]
    columns = pd.DataFrame({"id": ids, "group": ["query"] * count + ["document"] * documents})
    pairs = pd.DataFrame(
        {
            "left": [ids[q] for q in left],
            "right": [ids[count + d] for d in right],
            "score": 1.0 + np.arange(len(left)) % 3,
        }
    )
    return VectorSet(points, columns, pairs, "relevance", "benchmark")


def by_libraries(engine: WhatIf, points: NDArray[np.float64]) -> Values:
    """The same numbers from transformed points."""
    from scipy import stats
    from sklearn.metrics import ndcg_score, silhouette_score
    from sklearn.neighbors import NearestNeighbors

    row_annotations, values = engine.annotations, {}
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    if row_annotations.pairs is not None:
        for name, rows in (("cosine", unit), ("dot", points)):
            products = np.einsum("ij,ij->i", rows[row_annotations.pairs.left], rows[row_annotations.pairs.right])
            values[f"spearman_{name}"] = float(stats.spearmanr(row_annotations.pairs.score, products)[0])
            values[f"pearson_{name}"] = float(stats.pearsonr(row_annotations.pairs.score, products)[0])
    if row_annotations.labels is not None:
        rows = np.sort(np.random.default_rng(0).choice(len(points), MOST_PAIRED, replace=False))
        some, codes = points[rows], row_annotations.labels.codes[rows]
        values["silhouette"] = float(silhouette_score(some, codes, metric="cosine"))
        NearestNeighbors(n_neighbors=11, metric="cosine", algorithm="brute").fit(some).kneighbors(some)
    if row_annotations.queries is not None:
        relevance = row_annotations.queries
        grades = np.zeros((len(relevance.queries), len(relevance.documents)))
        grades[relevance.query, relevance.document] = relevance.grade
        for name, rows in (("cosine", unit), ("dot", points)):
            scores = rows[relevance.queries] @ rows[relevance.documents].T
            values[f"ndcg_{name}"] = float(ndcg_score(grades, scores, k=10, ignore_ties=True))
    return values


def timed(run: Callable[[], Values]) -> tuple[float, float, Values]:
    """Milliseconds by the clock and of CPU, and what came out."""
    clock, cpu = time.perf_counter(), time.process_time()
    values = run()
    return (time.perf_counter() - clock) * 1e3, (time.process_time() - cpu) * 1e3, values


HEADING = """## What-if on vectors

One move of a slider: isotropy and every quick read-out of the transformed vectors, beside the same read-outs by SciPy and
scikit-learn (nDCG only, for search). Bars: 200 ms and 1 s by the clock."""


def main() -> int:
    """Print one line per case; 1 if a move is above its bar or a number differs."""
    parser = options(__doc__)
    parser.add_argument("--repeats", type=int, default=5, help="moves per case")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size, to try the script; no bar is judged")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    small = 10 if chosen.quick else 1
    cases = (
        ("pairs and labels, 5,000 rows", rated(5_000 // small + (MOST_PAIRED if chosen.quick else 0)), 200.0),
        ("search, 1,000 queries × 10,000 documents", search(1_000 // small, 10_000 // small), 1_000.0),
    )
    table = Table(
        f"d = {D}, medians of {chosen.repeats} moves, ms",
        ["", "move", "CPU", "bar", "libraries", "CPU", "libraries / move", "largest difference"],
    )
    met = True
    for name, vectors, bar in cases:
        moves, libraries, apart = compared(WhatIf(divide(vectors)), chosen.repeats)
        clock, cpu, other_clock, other = (
            statistics.median(column) for times in (moves, libraries) for column in zip(*times, strict=True)
        )
        met &= apart <= 1e-4 and (chosen.quick or clock <= bar)
        cells = [f"{number:.0f}" for number in (clock, cpu, bar, other_clock, other)]
        table.rows.append([name, *cells, f"{other_clock / clock:.1f}", f"{apart:.1e}"])
    table.notes.append(f"Bars: {'held' if met else 'not held'}.")
    about = machine(["numpy", "scipy", "scikit-learn"], "2 threads")
    publish(chosen.out, "readouts", HEADING, table, about)
    return 0 if met else 1


def compared(engine: WhatIf, repeats: int) -> tuple[list[Times], list[Times], float]:
    """Times of our moves and of the libraries, by the clock and of CPU, and the largest difference of a number."""
    engine.answer(chains.read("zca:strength=0.95"))
    moves, libraries, apart = [], [], 0.0
    for number in range(repeats):
        steps = chains.read(f"zca:strength={0.1 + 0.1 * number:.2f}")
        image = engine.image(steps)
        points = image.image(image.validation)

        def move(steps: tuple[chains.Step, ...] = steps) -> Values:
            answer = engine.answer(steps, build=False)
            return {slug: one.value or 0.0 for slug, one in answer.readouts.items()}

        ours = timed(move)
        reference = timed(lambda points=points: by_libraries(engine, points))
        moves.append(ours[:2])
        libraries.append(reference[:2])
        apart = max(apart, *(abs(ours[2][slug] - value) for slug, value in reference[2].items()))
    return moves, libraries, apart


if __name__ == "__main__":
    sys.exit(main())
