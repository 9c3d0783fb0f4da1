"""The cost of evaluation and measurement relative to training, in processor seconds of one run: three epochs on 800 CoLA-sized rows.

    python benchmarks/measuring.py [--before CHECKOUT] [--model DIR --data DIR] [--rows 800] [--epochs 3] [--rounds 1]

The encoder is of MiniLM's size (6 layers, 384 dimensions) with random weights, the rows are generated, 800 for training and 1,043 for
validation as CoLA has; or give a real encoder and a folder with CoLA's files. A second checkout (`git worktree add /tmp/before COMMIT`)
takes turns with this one. One thread: processor time then does not depend on other work on the machine.

Bar: measuring takes at most 0.3 of the training time. Reading and scoring the validation rows, which any training that watches its
metric does, is reported separately: its share is that of the rows. Then IsoScore* with the sampled Σ_S against that of all training rows.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks._report import Table

ROOT = Path(__file__).resolve().parent.parent
BAR = 0.3
VALIDATION = 1043

# Run in each checkout: nothing here may be younger than the older of the two.
RUN = """
import json, sys, tempfile, time
from pathlib import Path
from isoviz.runs import planning
from isoviz.training import train
model, data, rows, epochs, whole = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
if whole:
    from isoviz.training import shrinkage
    shrinkage.LEAST = 10**9
(config,) = planning.expand([model], ["glue/cola"], [("baseline", {})], [0], data=data, max_train=rows, epochs=epochs, threads=1)
seen = []
with tempfile.TemporaryDirectory() as folder:
    train(config, lambda event: seen.append((time.process_time(), event)), lambda: False, Path(folder))
phases, phase = {}, "loading"
for (now, event), (later, _) in zip(seen, seen[1:]):
    if event.kind == "entered":
        phase = event.phase
    phases[phase] = phases.get(phase, 0.0) + later - now
    if event.kind == "measured":
        phase = "between"
stars = [event.isotropy.reading("isoscore_star") for _, event in seen if event.kind == "measured"]
print(json.dumps({"phases": phases, "timing": seen[-1][1].timing,
                  "stars": [(star.value, getattr(star, "error", None)) for star in stars]}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, help="another checkout")
    parser.add_argument("--model", help="directory of an encoder")
    parser.add_argument("--data", help="folder with CoLA's train and validation files")
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    if (options.model is None) != (options.data is None):
        parser.error("--model and --data go together")
    trees = {"before": options.before.resolve()} if options.before else {}
    trees["now"] = ROOT
    by_tree: dict[str, list[dict[str, Any]]] = {name: [] for name in trees}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        model, data = (options.model, options.data) if options.model else made_up(Path(folder), options.rows)
        chosen = [model, data, str(options.rows), str(options.epochs)]
        for number in range(options.rounds):
            for name in list(trees) if number % 2 == 0 else list(trees)[::-1]:
                by_tree[name].append(run(trees[name], Path(folder) / "home", [*chosen, ""]))
        full = run(ROOT, Path(folder) / "home", [*chosen, "whole"])
    header = ["processor seconds", "training", "evaluating", "measuring", "measuring / training", "both / training"]
    table = Table(f"{options.epochs} epochs on {options.rows:,} rows, {VALIDATION:,} to validate", header)
    ratios = {}
    for name, runs in by_tree.items():
        phases = {
            key: statistics.median(run["phases"][key] for run in runs)
            for key in ("training", "evaluating", "measuring")
        }
        train, evaluate, measure = phases.values()
        ratios[name] = measure / train
        cells = [f"{seconds:.1f}" for seconds in phases.values()]
        table.rows.append([name, *cells, f"{ratios[name]:.2f}", f"{(evaluate + measure) / train:.2f}"])
    print(table.text())
    scores = Table("IsoScore* after each epoch", ["epoch", "sampled Σ_S", "all rows", "difference", "stated (95 %)"])
    for epoch, ((value, error), (exact, _)) in enumerate(zip(by_tree["now"][0]["stars"], full["stars"], strict=True)):
        stated = "none: all rows" if error is None else f"± {error:.5f}"
        scores.rows.append([str(epoch), f"{value:.5f}", f"{exact:.5f}", f"{value - exact:+.5f}", stated])
    print(scores.text())
    return 0 if ratios["now"] <= BAR else 1


def made_up(folder: Path, rows: int) -> tuple[str, str]:
    """An encoder of MiniLM's size and CoLA-sized files."""
    from benchmarks._workload import COLA, minilm_size, sentences, write_rows
    from isoviz.models import sources
    from isoviz.models.adapter import load_tokenizer

    encoder = minilm_size(folder / "encoder", rows)
    tokenizer = load_tokenizer(sources.resolve(encoder.model))
    parts = [sentences(tokenizer, COLA, count, seed) for seed, count in enumerate((rows, VALIDATION))]
    return encoder.model, str(write_rows(folder / "rows", *parts))


def run(tree: Path, home: Path, arguments: list[str]) -> dict[str, Any]:
    """One run in a fresh process of a checkout."""
    env = {
        **os.environ,
        "PYTHONPATH": str(tree),
        "ISOVIZ_HOME": str(home),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run([sys.executable, "-c", RUN, *arguments], cwd=tree, env=env, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{tree}:\n{done.stderr[-3000:]}")
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


if __name__ == "__main__":
    sys.exit(main())
