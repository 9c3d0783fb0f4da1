"""Every method on real tasks with a real encoder from a local directory: the table of a release's closing note.

    python benchmarks/real_encoder.py --model DIR --data DIR [--tasks glue/cola glue/mrpc] [--rows 2000] [--epochs 3] [--lr 1e-4]

`DIR` of the data holds one folder per task (`cola`, `mrpc`), each with train and validation files. Needs no network. Runs are
kept in the store (`--store`), so an interrupted table goes on where it stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pandas as pd

from isoviz.runs import planning
from isoviz.runs.execution import execute
from isoviz.runs.store import RunRow, Store

METHODS: list[tuple[str, dict[str, Any]]] = [
    ("baseline", {}),
    ("isobn", {"beta": 0.5}),
    ("istar", {"lam": -1.0, "zeta": 0.2}),
    ("istar", {"lam": 1.0, "zeta": 0.2}),
    ("cosreg", {"lam": 1.0}),
]


def main() -> None:
    """Run what the store does not hold yet, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tasks", nargs="+", default=["glue/cola", "glue/mrpc"])
    parser.add_argument("--rows", type=int, default=2000, help="training rows; validation is whole")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--store")
    options = parser.parse_args()
    if options.model is None or options.data is None:
        print("real_encoder: nothing measured, it needs --model DIR and --data DIR")
        return
    store = Store(options.store)
    rows = []
    for task in options.tasks:
        configs = planning.expand(
            [options.model],
            [task],
            METHODS,
            options.seeds,
            data=str(options.data / task.split("/")[1]),
            max_train=options.rows,
            epochs=options.epochs,
            learning_rate=options.lr,
            threads=options.threads,
        )
        done = {row.config.model_dump_json(): row for row in store.list(status="finished")}
        for config in configs:
            row = done.get(config.model_dump_json()) or execute(store, store.create([config], claim="benchmark")[0])
            print(f"{task} {config.method} {config.params.get('lam', '')} seed {config.seed}: {row.status}", flush=True)
            rows.append(line(row))
    frame = pd.DataFrame(rows)
    print(frame.to_string(index=False, float_format="%.4f"))


def line(row: RunRow) -> dict[str, Any]:
    """One run as one row of the table."""
    config, result = row.config, row.result or {}
    isotropy, metrics = result.get("isotropy", {}), result.get("metrics", {})
    ev = [*isotropy.get("ev", []), None, None, None]
    strength = {"isobn": "β=0.5", "istar": f"λ={config.params.get('lam'):+g}" if "lam" in config.params else ""}
    return {
        "task": config.task,
        "method": f"{config.method} {strength.get(config.method, '')}".strip(),
        "seed": config.seed,
        "status": row.status,
        **{name: value for name, value in metrics.items() if name not in ("loss", "epoch")},
        "IsoScore": isotropy.get("isoscore"),
        "unbiased": isotropy.get("isoscore_unbiased"),
        "IsoScore*": isotropy.get("isoscore_star"),
        "EV_1": ev[0],
        "EV_2": ev[1],
        "EV_3": ev[2],
        "EV_1 of its input": (isotropy.get("pooled", {}).get("ev") or [None])[0],
        "seconds": result.get("timing", {}).get("train_seconds"),
    }


if __name__ == "__main__":
    main()
