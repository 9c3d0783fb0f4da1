"""Studies that train: runs of a grid, and a picture of those that have finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from isoviz.config import RunConfig
from isoviz.runs.naming import method_title
from isoviz.runs.planning import IN_THIS_PROCESS, DataChecks
from isoviz.statistics import mean_sd
from isoviz.studies.evidence import Evidence, task_title
from isoviz.studies.grids import Grid, distinct, used
from isoviz.studies.inputs import SETTINGS, Inputs
from isoviz.studies.judging import without_effect
from isoviz.studies.protocol import OWN, Claim, Study
from isoviz.studies.records import RunRecord
from isoviz.studies.result import Figure, Published, Result, Series, Table, Verdict, provenance

SEEDS_FOR_A_VERDICT = 3
TAKES = ("model", "tasks", "data", "seeds", *SETTINGS)


@dataclass
class Drawing:
    """The figures and tables of a study."""

    figures: list[Figure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def mean_line(
    curves: Sequence[Sequence[float | None]],
    name: str,
    group: str,
    first: int,
    *,
    spread: bool = True,
    value: float | None = None,
) -> Series | None:
    """The mean of some runs' curves with its standard deviation, at every position that all of them have; None without one.

    Args:
        first: x of the first position.
        spread: show the standard deviation.
        value: see `Series`.
    """
    length = min(map(len, curves), default=0)
    places = [at for at in range(length) if all(one[at] is not None for one in curves)]
    if not places:
        return None
    moments = [mean_sd(one[at] for one in curves) for at in places]
    means, halves = [mean or 0.0 for mean, _ in moments], [sd or 0.0 for _, sd in moments]
    return Series(
        name=name,
        role="measured",
        group=group,
        x=[float(first + at) for at in places],
        y=means,
        low=[mean - half for mean, half in zip(means, halves, strict=True)] if spread else None,
        high=[mean + half for mean, half in zip(means, halves, strict=True)] if spread else None,
        spread="mean ± standard deviation over seeds" if spread else "",
        value=value,
    )


class TrainedStudy(Study):
    """A figure or table of runs. Subclasses set `grids` and the class attributes of `Study`, and implement `show`.

    Class attributes:
        grids: the families of runs it draws from; other studies may draw from the same ones.
        profiles: it needs the layer profile of its runs (`isoviz.studies.layer_profiles`) beside what every run reports.
    """

    grids: ClassVar[tuple[Grid, ...]]
    profiles: ClassVar[bool] = False
    takes: ClassVar[tuple[str, ...]] = TAKES

    @classmethod
    def uses(cls, config: RunConfig) -> bool:
        """Whether the study draws from this run of its grids."""
        return True

    @classmethod
    def declared(cls, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """Its runs as they are written down; models and data need not be on this machine."""
        cls.check_scale(scale)
        return used(cls.grids, cls.uses, scale, cls.check_inputs(inputs))

    @classmethod
    def configs(cls, scale: str, inputs: Inputs = OWN, checks: DataChecks = IN_THIS_PROCESS) -> list[RunConfig]:
        """Its runs as they can be launched here. Raises like `isoviz.runs.planning.expand`."""
        cls.check_scale(scale)
        cls.check_inputs(inputs)
        return distinct(
            config for grid in cls.grids for config in grid.configs(scale, inputs, checks) if cls.uses(config)
        )

    def show(self, evidence: Evidence) -> Drawing:
        """Figures, tables and printed numbers of whatever runs there are; a gap for what is missing."""
        raise NotImplementedError

    def draw(self, runs: Sequence[RunRecord], scale: str, inputs: Inputs = OWN) -> Result:
        """The study as far as its runs have come. Pure: trains nothing, reads nothing; the runs may be none."""
        names = {model.source: model.name for model in inputs.models}  # a record speaks of no folder
        evidence = Evidence(
            tuple(_named(config, names) for config in self.declared(scale, inputs)),
            tuple(replace(run, row=replace(run.row, config=_named(run.config, names))) for run in runs),
        )
        drawing = self.show(evidence)
        return Result(
            title=self.title,
            figures=drawing.figures,
            tables=drawing.tables,
            published=drawing.published,
            notes=[*drawing.notes, *_notes(evidence)],
            verdicts=[_verdict(claim, evidence) for claim in self.claims],
            runs=[run.row.id for run in evidence.finished],
            planned=len(evidence.planned),
            provenance=provenance(
                self.slug,
                scale,
                min((config.seed for config in evidence.planned), default=0),
                _of_runs(evidence, self.grids),
                (),
                sum(_seconds(run) for run in evidence.finished),
                inputs.words(),
                _versions(evidence),
            ),
        )


def _named(config: RunConfig, names: Mapping[str, str]) -> RunConfig:
    name = names.get(config.model, config.model)
    return config if name == config.model else config.model_copy(update={"model": name})


def _verdict(claim: Claim, evidence: Evidence) -> Verdict:
    """The verdict on a claim; a claim about performance has none where nothing was learned."""
    if claim.about_performance and (unlearned := evidence.unlearned()):
        where = ", ".join(map(task_title, unlearned))
        sentence = f"Nothing was learned on {where}; the notes say how that is judged."
        return Verdict(claim=claim.sentence, outcome="cannot tell", sentence=sentence)
    return claim.verdict(evidence)


def _seconds(run: RunRecord) -> float:
    return run.row.ended - run.row.started if run.row.started and run.row.ended else 0.0


def _versions(evidence: Evidence) -> dict[str, str]:
    """Of the newest run."""
    versions = [run.started.versions for run in evidence.finished if run.started]
    return dict(versions[-1]) if versions else {}


def _of_runs(evidence: Evidence, grids: Sequence[Grid]) -> dict[str, Any]:
    first = evidence.planned[0]
    names = ("epochs", "max_train", "max_eval", "learning_rate", "batch_size", "max_length", "schedule", "batching")
    started = [run.started for run in evidence.finished if run.started]
    return {
        "grids": [grid.slug for grid in grids],
        "models": evidence.models,
        "tasks": evidence.tasks,
        "seeds": evidence.distinct("seed"),
        "first_run": {name: getattr(first, name) for name in names},
        "data_fingerprints": sorted({start.data_fingerprint for start in started}),
        "model_fingerprints": sorted({start.model_fingerprint for start in started}),
        "devices": sorted({start.device for start in started}),
    }


def _notes(evidence: Evidence) -> list[str]:
    """Notes on unfinished runs, excluded runs, and tasks where nothing was learned."""
    count, planned = len(evidence.finished), len(evidence.planned)
    notes = [f"{count} of {planned} runs have finished."] if count < planned else []
    ended = [run for run in evidence.runs if not run.finished and run.row.status not in ("queued", "running")]
    if ended:
        runs = ", ".join(f"{run.row.status} {run.row.id}" for run in ended)
        notes.append(f"Left out, because they did not finish: {runs}.")
    if collapsed := [run for run in evidence.finished if run.row.collapsed]:
        where: Mapping[str, None] = dict.fromkeys(
            f"{run.config.method} on {task_title(run.config.task)}" for run in collapsed
        )
        notes.append(f"Collapsed runs, whose scores are left out: {len(collapsed)} ({', '.join(where)}).")
    left_out = {
        f"{method_title(config.method)} on {task_title(config.task)}": reason
        for config in evidence.planned
        if (reason := without_effect(config))
    }
    notes += [f"Not compared: {name}, because {reason}." for name, reason in left_out.items()]
    return notes + [
        f"{task_title(task)}: nothing was learned. Not every baseline run (or, without a baseline, no run) beats the best simple approach. "
        "Do not compare scores there."
        for task in evidence.unlearned()
    ]
