"""Runs every bundled preset and records the results: `python -m factory.record_presets`.

Writes `isoviz/demo/presets.json`: each preset's plan; of each run its setting, seed, primary metric, isotropy, and why it collapsed
if it did; and what simple approaches reach. Tests hold that the plan is still the recorded one, that the baseline beats the simple
approaches in every seed, and that Results answers the question in the title.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from datetime import date
from importlib.metadata import version
from typing import Any

from benchmarks._report import processor
from isoviz.demo import PRESETS_RECORD
from isoviz.jobs.processes import share_cores
from isoviz.runs import planning
from isoviz.runs.runner import Runner
from isoviz.runs.store import Store
from isoviz.tasks import get

ISOTROPY = ("isoscore", "isoscore_star")


def record(store: Store, preset: planning.Preset) -> dict[str, Any]:
    """Run a preset to its end; returns its plan, the scores of simple approaches, and each run's report."""
    ids = store.create(planning.expand(**preset.plan), group=preset.title)
    while any(store.get(run_id).ended is None for run_id in ids):
        time.sleep(0.5)
    runs: list[dict[str, Any]] = []
    simple: dict[str, float] = {}
    for run_id in ids:
        row = store.get(run_id)
        if row.result is None:
            raise SystemExit(f"record_presets: run {run_id} of {preset.slug} is {row.status}: {row.error}")
        config = row.config
        run = {"method": config.method, "params": dict(config.params), "seed": config.seed}
        score = row.result.metrics[get(config.task).primary]
        isotropy = {slug: round(row.result.isotropy.number(slug) or 0.0, 4) for slug in ISOTROPY}
        runs.append({**run, "score": round(score or 0.0, 4), **isotropy, "collapsed": row.collapsed})
        baselines = store.summary(run_id).baselines
        simple |= {name: round(value, 4) for name, value in baselines.items() if value is not None}
    return {"plan": preset.plan, "simple": simple, "runs": runs}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m factory.record_presets", description=__doc__)
    parser.add_argument("--store", help="keep the runs in this folder")
    options = parser.parse_args()
    share_cores(os.environ)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as temporary:
        folder = options.store or temporary
        os.environ["ISOVIZ_HOME"] = folder
        store = Store(folder)
        runner = Runner(store)
        runner.start()
        try:
            presets = {preset.slug: record(store, preset) for preset in planning.PRESETS}
        finally:
            runner.close()
            store.close()
    written = {
        "presets": presets,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": processor(),
        "versions": {name: version(name) for name in ("torch", "transformers", "accelerate")},
        "date": date.today().isoformat(),
    }
    PRESETS_RECORD.write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
