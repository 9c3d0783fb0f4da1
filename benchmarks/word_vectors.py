"""`measure` on word vectors as text, of GloVe's size, against pandas reading the same file in the same run.

    python benchmarks/word_vectors.py [--rows 400000] [--dimensions 300] [--rounds 1] [--folder DIR]

Bars: reading and every measure together take at most 1.5 × the time of pandas.read_csv alone, and at most 1 GB. Separate processes with
their usual threads take turns. The file is written by this script and removed afterwards.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import Table, finish, machine, options, python
from large_files import WAIT

BAR, MOST_GB = 1.5, 1.0
PANDAS = "import pandas as pd, sys; pd.read_csv(sys.argv[1], sep=' ', header=None, quoting=3, keep_default_na=False)"
HEADING = """## Word vectors as text

A text file of GloVe's size (a word and 300 numbers per line) under `measure --embeddings`, and under pandas' reader alone."""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--dimensions", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where the file goes; it is removed afterwards")
    chosen = parser.parse_args()
    measured: dict[str, list[tuple[float, float, float]]] = {"pandas.read_csv": [], "isoviz measure": []}
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        file = Path(folder) / "glove.txt"
        write(file, chosen.rows, chosen.dimensions)
        size = file.stat().st_size / 1e9
        for _ in range(chosen.rounds):
            measured["pandas.read_csv"].append(run(["-c", PANDAS, str(file)]))
            measured["isoviz measure"].append(run(["-m", "isoviz", "measure", "--embeddings", str(file), "--json"]))
    seconds, processor, _ = (
        {name: statistics.median(one[i] for one in runs) for name, runs in measured.items()} for i in range(3)
    )
    memory = {name: max(one[2] for one in runs) for name, runs in measured.items()}
    ratio = seconds["isoviz measure"] / seconds["pandas.read_csv"]
    good = ratio <= BAR and memory["isoviz measure"] <= MOST_GB
    title = f"{chosen.rows:,} × {chosen.dimensions} as text, {size:.2f} GB"
    table = Table(title, ["", "seconds", "processor seconds", "most memory, GB"])
    table.rows += [[name, f"{seconds[name]:.1f}", f"{processor[name]:.1f}", f"{memory[name]:.2f}"] for name in measured]
    table.notes.append(f"{ratio:.2f} × pandas.")
    missed = [] if good else [f"{ratio:.2f} × pandas, {memory['isoviz measure']:.2f} GB"]
    return finish(chosen, "word-vectors", HEADING, machine(["pandas", "pyarrow"], "their usual threads"), missed, table)


def run(command: list[str]) -> tuple[float, float, float]:
    """Seconds, processor seconds and most GB of a process."""
    start = time.perf_counter()
    code, processor, most = json.loads(python(["-c", WAIT, sys.executable, *command]).splitlines()[-1])
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}")
    return time.perf_counter() - start, processor, most


def write(file: Path, rows: int, width: int) -> None:
    """Words with Gaussian vectors of five decimals around a mean, as GloVe writes them."""
    rng = np.random.default_rng(0)
    pattern = " %.5f" * width
    with file.open("w", encoding="utf-8") as lines:
        for row in range(rows):
            lines.write(f"w{row}{pattern % tuple(rng.normal(0.05, 0.4, width))}\n")


if __name__ == "__main__":
    sys.exit(main())
