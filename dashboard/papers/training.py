"""Studies that are drawn from training runs: which runs they need, which the store has, and the picture so far."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from dashboard import resources, timing
from dashboard.run_lists import kept
from isoviz import studies
from isoviz.config import RunConfig
from isoviz.jobs.queue import JobState
from isoviz.runs import planning
from isoviz.studies import Result, jobs, layer_profiles
from isoviz.studies import records as study_records
from isoviz.studies.records import RunRecord
from isoviz.studies.trained import TrainedStudy

QUICK = "quick"


@dataclass(frozen=True)
class Standing:
    """Progress of a study's runs in this store.

    Attributes:
        planned: all its runs.
        there: those that the store has.
        missing: those that have to be launched: neither finished nor under way.
        unprofiled: finished runs whose layers have not been measured, for a study that needs them.
    """

    planned: tuple[RunConfig, ...]
    there: tuple[RunRecord, ...]
    missing: tuple[RunConfig, ...]
    unprofiled: tuple[str, ...] = ()

    @property
    def finished(self) -> int:
        """Runs."""
        return sum(run.finished for run in self.there)

    @property
    def under_way(self) -> int:
        """Runs that wait or train."""
        return sum(run.row.status in ("queued", "running") for run in self.there)


@functools.cache
def quick_configs(slug: str) -> tuple[RunConfig, ...]:
    """The runs of a study's quick scale, which uses bundled models and data only; resolved once."""
    study = studies.get(slug)
    assert issubclass(study, TrainedStudy)
    return tuple(study.configs(QUICK))


def standing(study: type[TrainedStudy]) -> Standing:
    """Progress at the quick scale; read again only when a run of the store changes."""
    configs = quick_configs(study.slug)

    def read() -> Standing:
        existing = study_records.read(resources.store(), configs)
        unmeasured = layer_profiles.lacking(existing) if study.profiles else []
        return Standing(configs, tuple(existing), tuple(study_records.missing(configs, existing)), tuple(unmeasured))

    if study.profiles:  # a measured profile is a file beside a run, which changes nothing in the store
        return read()
    return kept(("study", study.slug), read)


def result(study: type[TrainedStudy], runs: Standing) -> Result:
    """The study's result from the runs so far, with gaps for missing runs."""
    return study().draw(runs.there, QUICK)


def time_words(missing: tuple[RunConfig, ...]) -> str:
    """`about 6 min 10 s`."""
    return timing.estimated(missing).words()


def launch(study: type[TrainedStudy], missing: tuple[RunConfig, ...]) -> list[str]:
    """Queue what is missing as one experiment. Raises `AccessError` where this visitor may not."""
    return resources.service().launch(list(missing), group=f"{study.slug} {planning.new_group()}")


def profiling(unprofiled: tuple[str, ...]) -> JobState:
    """Start measuring the layers of these runs in the background, or return the state of that job."""
    return resources.service().ask_job(jobs.PROFILES, jobs.profiles_request(unprofiled))


def full_needs(study: type[TrainedStudy]) -> str:
    """Models and data of the full scale as text, without contacting the hub."""
    configs = study.declared("full")
    models = ", ".join(dict.fromkeys(config.model for config in configs))
    tasks = ", ".join(dict.fromkeys(config.task for config in configs))
    return (
        f"{len(configs):,} runs of {models} on {tasks}. Models and data come from the Hugging Face hub; offline, name directories with "
        "--model and --data. A GPU is needed for most of them."
    )
