"""`measure` and `transform` on a file larger than their memory limit, against plain numpy on the same file in the same run.

    python benchmarks/large_files.py [--rows 1000000] [--dimensions 384] [--rounds 2] [--folder DIR]

Bars: `measure` takes at most 3 × the processor time of reading the file (.npy with numpy, Parquet with pyarrow) and forming XᵀX with
numpy; `transform` (ZCA) at most 3 × that of reading, multiplying by a d × d matrix and writing; each holds less than 1 GB. One thread,
so that processor time does not depend on other work on the machine; the contenders take turns in separate processes. numpy works
in float32 and float64 both: the file holds float32, and the commands sum in float64, because a covariance that was summed in float32
loses the small eigenvalues. The bars are held to the float32 times, the shorter ones.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from _report import Table, finish, machine, options, python

BAR, MOST_GB = 3.0, 1.0

_READ = "import numpy as np, sys\nx = np.load(sys.argv[1])\n"
NUMPY = {
    "read + XᵀX, float32": _READ + "x.T @ x",
    "read + XᵀX, float64": _READ + "x = x.astype(np.float64); x.T @ x",
    "read + multiply + write, float32": _READ
    + "w = np.eye(x.shape[1], dtype=np.float32) + np.float32(0.1); np.save(sys.argv[2], x @ w)",
}
PARQUET = (
    "import pyarrow.parquet as pq, sys\n"
    "column = pq.read_table(sys.argv[3])['v'].combine_chunks()\n"
    "x = column.flatten().to_numpy().reshape(len(column), -1); x.T @ x"
)
NUMPY["read Parquet + XᵀX, float32"] = PARQUET
COMMANDS = {
    "measure, Parquet": ["measure", "--embeddings", "{table}", "--json"],
    "measure": ["measure", "--embeddings", "{file}", "--json"],
    "transform": ["transform", "--chain", "zca", "--in", "{file}", "--out", "{out}", "--json"],
}
AGAINST = {
    "measure, Parquet": "read Parquet + XᵀX, float32",
    "measure": "read + XᵀX, float32",
    "transform": "read + multiply + write, float32",
}
HEADING = """## Files larger than memory

A 1.5 GB file of float32 under `measure --embeddings` and `transform --chain zca`, which sum in float64; and the same vectors as a
column of lists in Parquet."""
WAIT = """
import json, os, subprocess, sys
done = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, used = os.wait4(done.pid, 0)
print(json.dumps([os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6]))
"""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimensions", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where the files go; they are removed afterwards")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        file, out, table_file = (Path(folder) / name for name in ("in.npy", "out.npy", "in.parquet"))
        write(file, chosen.rows, chosen.dimensions)
        write_table(table_file, file)
        places = [str(file), str(out), str(table_file)]
        commands = {name: [sys.executable, "-c", code, *places] for name, code in NUMPY.items()}
        for name, words in COMMANDS.items():
            filled = [word.format(file=file, out=out, table=table_file) for word in words]
            commands[name] = [sys.executable, "-m", "isoviz", *filled]
        measured: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for _ in range(chosen.rounds):
            for name, command in commands.items():
                measured[name].append(run(command))
    seconds = {name: statistics.median(run[0] for run in runs) for name, runs in measured.items()}
    memory = {name: max(run[1] for run in runs) for name, runs in measured.items()}
    size = f"{chosen.rows:,} × {chosen.dimensions} float32"
    table = Table(f"{size}, processor seconds", ["", "seconds", "most memory, GB", "× numpy"])
    missed = []
    for name, spent in seconds.items():
        ratio = spent / seconds[AGAINST[name]] if name in AGAINST else 0.0
        if ratio > BAR or (name in AGAINST and memory[name] > MOST_GB):
            missed.append(f"{name}: {ratio:.2f} × numpy in float32, {memory[name]:.2f} GB")
        table.rows.append([name, f"{spent:.1f}", f"{memory[name]:.2f}", f"{ratio:.2f}" if ratio else ""])
    return finish(chosen, "large-files", HEADING, machine(["numpy"], "1 thread"), missed, table)


def write(file: Path, rows: int, width: int) -> None:
    """Gaussian vectors of falling spread around a mean."""
    rng = np.random.default_rng(0)
    points = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=(rows, width))
    spread = (1.0 / np.sqrt(1.0 + np.arange(width))).astype(np.float32)
    for start in range(0, rows, 20_000):
        block = rng.standard_normal((min(20_000, rows - start), width), dtype=np.float32)
        points[start : start + len(block)] = block * spread + np.float32(0.1)
    points.flush()


def write_table(path: Path, file: Path) -> None:
    """The same vectors as a column of lists, in one row group, as pyarrow writes a million rows by default."""
    import pyarrow as pa
    import pyarrow.parquet

    points = np.load(file, mmap_mode="r")
    blocks = [points[start : start + 50_000] for start in range(0, len(points), 50_000)]
    parts = [pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1]) for block in blocks]
    pa.parquet.write_table(pa.table({"v": pa.chunked_array(parts)}), path, row_group_size=len(points))


def run(command: list[str]) -> tuple[float, float]:
    """Processor seconds and most GB of a process."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    code, seconds, most = json.loads(python(["-c", WAIT, *command], **threads).splitlines()[-1])
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}")
    return seconds, most


if __name__ == "__main__":
    sys.exit(main())
