"""Where the numbers of runs come from, as texts to copy into an exported page."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from dashboard.shared import resources
from isoviz.events import Started
from isoviz.metrics.protocol import Metric
from isoviz.runs import citing, planning
from isoviz.runs.rows import RunRow


def of_frame(frame: pd.DataFrame, measures: Sequence[Metric]) -> dict[str, str]:
    """`of_runs` of the runs in a frame of `run_lists`."""
    run_ids = set(frame["run"])
    # a selection has either only examples or no examples
    where = resources.library().with_run(next(iter(run_ids), ""))
    return of_runs([row for row in where.list(order="oldest") if row.id in run_ids], measures)


def of_runs(rows: Sequence[RunRow], measures: Sequence[Metric]) -> dict[str, str]:
    """By title: the runs' commands, ids, versions and devices, and BibTeX."""
    surroundings: dict[str, None] = {}
    for row in rows:
        for started in resources.library().events_of_kind(row.id, Started, limit=1):
            versions = ", ".join(f"{name} {version}" for name, version in started.versions.items())
            precision = "float32" if started.precision == "no" else started.precision
            threads = f"{started.threads} thread{'s' if started.threads != 1 else ''}"
            surroundings["; ".join(filter(None, (f"{started.device}, {precision}, {threads}", versions)))] = None
    configs = [row.config for row in rows]
    cited = [(config.model, config.task, config.method) for config in configs]
    return {
        "Commands to repeat these runs": planning.command(configs),
        "Runs": ", ".join(row.id for row in rows),
        "Computed on": "\n".join(surroundings),
        "BibTeX": "\n\n".join(citing.bibtex_of(cited, [measure.slug for measure in measures]).values()),
    }
