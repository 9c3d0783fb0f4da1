"""Studies drawn from training runs: the runs they need, those the store has, and the result so far."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dashboard.shared import resources, timing
from dashboard.shared.run_lists import cached
from isoviz import studies
from isoviz.config import RunConfig
from isoviz.jobs.queue import JobState
from isoviz.studies import Result, jobs, layer_profiles
from isoviz.studies import records as study_records
from isoviz.studies.records import RunRecord
from isoviz.studies.trained import TrainedStudy

QUICK = "quick"


@dataclass(frozen=True)
class StudyRuns:
    """A study's runs and how many of them this store has.

    Attributes:
        planned: all its runs.
        stored: runs in this store.
        missing: runs to launch: neither finished nor queued or running.
        unprofiled: finished runs whose layers have not been measured, for a study that needs them.
    """

    planned: tuple[RunConfig, ...]
    stored: tuple[RunRecord, ...]
    missing: tuple[RunConfig, ...]
    unprofiled: tuple[str, ...] = ()

    @property
    def finished(self) -> int:
        """Number of finished runs."""
        return sum(run.finished for run in self.stored)

    @property
    def under_way(self) -> int:
        """Number of queued or running runs."""
        return sum(run.row.status in ("queued", "running") for run in self.stored)


@functools.cache
def quick_configs(slug: str) -> tuple[RunConfig, ...]:
    """The runs of a study's quick scale, which uses only bundled models and data; resolved once."""
    study = studies.get(slug)
    assert issubclass(study, TrainedStudy)
    return tuple(study.configs(QUICK))


def progress(study: type[TrainedStudy]) -> StudyRuns:
    """The runs of the quick scale; read again only after a run in the store has changed."""
    configs = quick_configs(study.slug)

    def read() -> StudyRuns:
        existing = study_records.read(resources.store(), configs)
        unmeasured = layer_profiles.unmeasured(existing) if study.profiles else []
        return StudyRuns(configs, tuple(existing), tuple(study_records.missing(configs, existing)), tuple(unmeasured))

    if study.profiles:  # measured profiles are files, so the store's revision does not change
        return read()
    return cached(("study", study.slug), read)


def result(study: type[TrainedStudy], runs: StudyRuns) -> Result:
    """The study's result from the runs so far, with gaps for missing runs."""

    def draw() -> Result:
        return study().draw(runs.stored, QUICK)

    return draw() if study.profiles else cached(("result", study.slug), draw)


def estimated_time(missing: tuple[RunConfig, ...]) -> str:
    """`about 6 min 10 s`."""
    return timing.estimated(missing).words()


def launch(study: type[TrainedStudy], missing: tuple[RunConfig, ...]) -> list[str]:
    """Queue the missing runs as one experiment. Raises `AccessError` if this visitor may not launch runs."""
    return resources.service().launch(list(missing), group=f"{study.slug} {QUICK}", new=True)


def profiling(unprofiled: tuple[str, ...]) -> JobState:
    """Start measuring the layers of these runs in the background, or return the state of that job."""
    return resources.service().ask_job(jobs.PROFILES, jobs.profiles_request(unprofiled))


def full_requirements(study: type[TrainedStudy]) -> str:
    """Models and data of the full scale as text, without contacting the hub."""
    configs = study.declared("full")
    models = ", ".join(dict.fromkeys(config.model for config in configs))
    tasks = ", ".join(dict.fromkeys(config.task for config in configs))
    return (
        f"{len(configs):,} runs of {models} on {tasks}. Models and data come from the Hugging Face hub; offline, name directories with "
        "--model and --data. A GPU is needed for most of them."
    )
