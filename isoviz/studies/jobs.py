"""Background jobs of studies: computing studies without runs, and measuring the layers of runs.

Equal requests share one job.
"""

from __future__ import annotations

from typing import Any, Final

import isoviz
from isoviz import studies
from isoviz.errors import InputError
from isoviz.jobs import queue
from isoviz.jobs.kinds import ENCODERS, Job, JobKind
from isoviz.jobs.results import ResultStore
from isoviz.studies.result import Result
from isoviz.studies.study import ComputedStudy

STEPS: Final = 1000
"""Steps of the progress."""


def _compute(job: Job) -> None:
    study = studies.get(job.request["study"])
    if not isinstance(study, ComputedStudy):
        raise InputError.at("study", f"'{study.slug}' uses training runs; launch those instead")

    def report(share: float, activity: str) -> None:
        job.report(round(STEPS * share), STEPS, activity)

    result = study.run(job.request["scale"], report)
    job.publish({"result": result.model_dump(mode="json")}, {})


STUDY: Final = JobKind(
    name="study",
    room=__name__,
    work=_compute,
    results=ResultStore("studies"),
    pool=ENCODERS,
    memory_advice="Choose the quick scale, or close other programs that use memory.",
)
"""Jobs for `request_of`; the result is `{"result": a Result as JSON}`."""


def request_of(study: str, scale: str) -> dict[str, Any]:
    """The request; it includes the version, because another version may compute something else."""
    return {"study": study, "scale": scale, "version": isoviz.__version__}


def key_of(study: str, scale: str) -> str:
    """Under which the result is kept."""
    return queue.content_key(STUDY, request_of(study, scale))


def find(study: str, scale: str) -> Result | None:
    """The result that was computed here; None if there is none."""
    cached = STUDY.results.find(key_of(study, scale))
    return None if cached is None else Result.model_validate(cached.facts["result"])


def _profile(job: Job) -> None:
    from isoviz.runs.store import Store
    from isoviz.studies import layer_profiles, records

    store = Store()
    try:
        runs = [records.record(store, run_id) for run_id in job.request["runs"]]
        profiled = layer_profiles.complete(
            store, runs, lambda share, activity: job.report(round(STEPS * share), STEPS, activity)
        )
    finally:
        store.close()
    job.publish({"measured": [run.row.id for run in profiled if run.layers is not None]}, {})


PROFILES: Final = JobKind(
    name="layer_profiles", room=__name__, work=_profile, results=ResultStore("studies"), pool=ENCODERS
)
"""Jobs for `{"runs": [id, …]}`: write a layer profile into the folder of each run with weights; the result is `{"measured": run ids}`."""
