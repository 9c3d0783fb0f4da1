"""Every real data set in a local folder, through its task with the bundled model, as on the command line.

    python benchmarks/real_data.py DATA_DIR [--max-train N] [--max-eval N] [--epochs N] [--only NAME ...]

DATA_DIR holds a folder per set with train and validation as the task reads them, under the names in `SETS`; missing ones
are skipped with a message. Prints a table: rows, the task's metrics beside its simple guess, IsoScore of the head cloud with
n and d, seconds. Exit status 1 if a run did not finish.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from isoviz import tasks
from isoviz.events import Event, Finished, Started
from isoviz.runs import planning
from isoviz.training import train

SETS = {
    "cola": ("glue/cola", None),
    "sst2": ("glue/sst2", None),
    "mrpc": ("glue/mrpc", None),
    "stsb": ("glue/stsb", None),
    "squad": ("squad", None),
    "wmt16-de-en": ("wmt16/de-en", "de-en"),
    "xquad-ro-en": ("wmt16/ro-en", "en-ro"),
    "cnn_dailymail": ("cnn_dailymail", None),
}
"""Folder → task and direction."""


def measured(slug: str, direction: str | None, folder: Path, options: argparse.Namespace) -> str:
    """One run; a line of the table."""
    task = tasks.get(slug)
    model = "demo/tiny-bart" if task.kind == "seq2seq" else "demo/tiny-bert"
    (config,) = planning.expand(
        [model], [slug], [("baseline", {})], [0], data=str(folder), direction=direction, epochs=options.epochs,
        max_train=options.max_train, max_eval=options.max_eval,
    )  # fmt: skip
    events: list[Event] = []
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as place:
        train(config, events.append, lambda: False, Path(place))
    seconds = time.perf_counter() - began
    last = events[-1]
    start = next(event for event in events if isinstance(event, Started))
    if not isinstance(last, Finished):
        return f"| {folder.name} | {slug} | ended as {last.kind} |"
    values = ", ".join(f"{name} {_number(last.metrics[name])}" for name in task.metrics)
    guess = ", ".join(f"{name} {_number(value)}" for name, value in start.baselines.items())
    isotropy = f"{_number(last.isotropy.number('isoscore'))} (n = {last.isotropy.clouds['head'].n}, d = {last.isotropy.clouds['head'].d})"
    rows = f"{start.train_rows} + {start.eval_rows}"
    return f"| {folder.name} | {slug} {direction or ''} | {rows} | {values} | {guess} | {isotropy} | {seconds:.0f} |"


def _number(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, (int, float)) else "undefined"


def main() -> int:
    """Run the available sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--max-train", type=int, metavar="N")
    parser.add_argument("--max-eval", type=int, metavar="N")
    parser.add_argument("--epochs", type=int, default=1, metavar="N")
    parser.add_argument("--only", nargs="+", choices=SETS, default=list(SETS), metavar="NAME")
    options = parser.parse_args()
    print("| set | task | rows | metrics | simple guess | IsoScore of `head` | s |\n|---|---|---|---|---|---|---|")
    failed = False
    for name in options.only:
        folder = options.data / name
        if not folder.is_dir():
            print(f"| {name} | not there |", flush=True)
            continue
        line = measured(*SETS[name], folder, options)
        failed = failed or "ended as" in line
        print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
