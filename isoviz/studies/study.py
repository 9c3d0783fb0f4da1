"""A study as a declaration: its place in a paper, its claims, and either a computation or runs with the pictures of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from isoviz.config import RunConfig
from isoviz.errors import InputError, unknown_name
from isoviz.methods.protocol import Paper
from isoviz.runs.naming import method_title
from isoviz.studies import papers
from isoviz.studies.grids import Grid
from isoviz.studies.inputs import OWN, SETTINGS, Inputs
from isoviz.studies.judging import Judgement, without_effect
from isoviz.studies.published import Compared
from isoviz.studies.records import RUNNING, Evidence, RunRecord, task_title
from isoviz.studies.result import Figure, Published, Result, Table, Verdict, provenance

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the finished share, 0 to 1, and the current activity."""
TAKES: Final = ("model", "tasks", "data", "seeds", *SETTINGS)


@dataclass(frozen=True)
class Claim:
    """One sentence of the paper, and what decides whether our numbers bear it out.

    Attributes:
        sentence: the claim in our words, in the present tense.
        judge: returns the judgement on the study's evidence: the `Result` of a computed study, or the `Evidence` of a trained one.
        about_performance: the claim compares scores, so runs that learned nothing cannot decide it.
    """

    sentence: str
    judge: Callable[[Any], Judgement]
    about_performance: bool = False

    def verdict(self, evidence: Any) -> Verdict:
        """The claim with what the evidence says of it; on runs that learned nothing, a claim about performance has no verdict."""
        if self.about_performance and isinstance(evidence, Evidence) and (unlearned := evidence.unlearned()):
            where = ", ".join(map(task_title, unlearned))
            sentence = f"Nothing was learned on {where}; the notes say how that is judged."
            return Verdict(claim=self.sentence, outcome="cannot tell", sentence=sentence)
        outcome, sentence = self.judge(evidence)
        return Verdict(claim=self.sentence, outcome=outcome, sentence=sentence)


@dataclass(frozen=True, kw_only=True, eq=False)
class Study:
    """One or several figures and tables of a paper that come from one computation: a `ComputedStudy` or a `TrainedStudy`.

    Attributes:
        slug: name on the command line and in URLs: the paper and the place, as `istar-figure-2`.
        title: name on screen.
        summary: one or two plain sentences on what is shown.
        open_points: sentences on what the paper leaves open or contradicts.
        claims: the paper's claims on this figure or table.
        quick, full: a phrase on the size of each scale.
        places: figures and tables of a study of several, as `Figures 1 and 2, Table 3`.
        takes: options that a user may set (fields of `Inputs`); empty if only the scale can be chosen.
    """

    slug: str
    title: str
    summary: str
    open_points: tuple[str, ...]
    claims: tuple[Claim, ...]
    quick: str
    full: str
    places: str = ""
    takes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        papers.get(self.slug.partition("-")[0])  # a study of no known paper could not be listed

    @property
    def source(self) -> papers.Source:
        """The paper and its places."""
        return papers.get(self.slug.partition("-")[0])

    @property
    def paper(self) -> Paper:
        """The citation."""
        return self.source.paper

    @property
    def place(self) -> str:
        """The figures or tables of the paper: `Figure 2`."""
        return self.places or self.slug.partition("-")[2].replace("-", " ").capitalize()

    @property
    def parts(self) -> dict[str, str]:
        """Slug → place of each figure and table, for a study of several; any of these slugs runs it."""
        return {papers.slug_of(self.source, name): name for name in papers.place_names(self.places)}

    @property
    def scales(self) -> dict[str, str]:
        """Scale → a phrase on its size."""
        return {"quick": self.quick, "full": self.full}

    def check_scale(self, scale: str) -> str:
        """The scale, if the study has it."""
        if scale not in self.scales:
            raise unknown_name(f"scale of '{self.slug}'", scale, self.scales, field="scale")
        return scale

    def check_inputs(self, inputs: Inputs) -> Inputs:
        """The inputs, if the study takes them."""
        for name in inputs.given():
            if name not in self.takes:
                allowed = f"it takes: {', '.join(self.takes)}" if self.takes else "it makes its own points"
                raise InputError.at(name, f"'{self.slug}' does not take this ({allowed})")
        return inputs

    def card(self, part: str = "") -> dict[str, Any]:
        """The entry for it, or for one of its parts, in a list of studies, JSON-ready."""
        place = self.parts[part] if part else self.place
        return {
            "slug": part or self.slug,
            "title": self.title,
            "paper": self.paper.short,
            "place": place,
            "kind": place.partition(" ")[0].lower().removesuffix("s"),
            "computed_with": self.slug,
            "summary": self.summary,
            "claims": [claim.sentence for claim in self.claims],
            "open_points": list(self.open_points),
            "scales": self.scales,
            "takes": list(self.takes),
        }


@dataclass
class Computed:
    """What a computation gives: figures, tables, the printed numbers beside ours, and how it was set up.

    Attributes:
        title: of the result.
        config: the settings; `packages` are the distributions that the numbers depend on.
    """

    title: str
    config: Mapping[str, Any]
    packages: Sequence[str]
    figures: list[Figure]
    tables: list[Table] = field(default_factory=list)
    published: list[Published] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputedStudy(Study):
    """A study that trains nothing.

    Attributes:
        compute: the computation at a scale with the user's models and tasks; both are checked.
    """

    compute: Callable[[str, Progress, Inputs], Computed]

    def run(self, scale: str, progress: Progress, inputs: Inputs = OWN) -> Result:
        """Compute the study at one of its scales, with the user's models and tasks instead of its own, and judge its claims.

        Raises:
            InputError: a scale that the study does not have, or an input that is not in `takes` or cannot serve.
        """
        started = time.perf_counter()
        computed = self.compute(self.check_scale(scale), progress, self.check_inputs(inputs))
        seconds = time.perf_counter() - started
        result = Result(
            title=computed.title,
            figures=computed.figures,
            tables=computed.tables,
            published=computed.published,
            notes=computed.notes,
            provenance=provenance(
                self.slug, scale, computed.seed, computed.config, computed.packages, seconds, inputs.words()
            ),
        )
        return result.model_copy(update={"verdicts": [claim.verdict(result) for claim in self.claims]})


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainedStudy(Study):
    """A figure or table of runs, drawn from those that have finished.

    Attributes:
        grid: the family of runs it draws from; other studies may draw from the same one.
        uses: whether the study draws from a run of its grid.
        profiles: it needs the layer profile of its runs (`isoviz.studies.layer_profiles`) beside what every run reports.
        figure: draws the figure at its place.
        tables: each draws one table; a gap for what is missing.
        compared: how the printed numbers are compared with ours; None where there are none.
    """

    grid: Grid
    uses: Callable[[RunConfig], bool] = lambda config: True
    profiles: bool = False
    figure: Callable[[Evidence, str], Figure] | None = None
    tables: tuple[Callable[[Evidence], Table], ...] = ()
    compared: Compared | None = None
    takes: tuple[str, ...] = TAKES

    def declared(self, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """Its runs as they are written down; models and data need not be on this machine."""
        plan = self.grid.declared(self.check_scale(scale), self.check_inputs(inputs))
        return [config for config in plan if self.uses(config)]

    def configs(self, scale: str, inputs: Inputs = OWN) -> list[RunConfig]:
        """Its runs as they can be launched here. Raises like `isoviz.runs.planning.expand`."""
        plan = self.grid.configs(self.check_scale(scale), self.check_inputs(inputs))
        return [config for config in plan if self.uses(config)]

    def draw(self, runs: Sequence[RunRecord], scale: str, inputs: Inputs = OWN) -> Result:
        """The study as far as its runs have come. Pure: trains nothing, reads nothing; the runs may be none."""
        names = {model.source: model.name for model in inputs.models}  # a record speaks of no folder
        evidence = Evidence(
            tuple(_named(config, names) for config in self.declared(scale, inputs)),
            tuple(replace(run, row=replace(run.row, config=_named(run.config, names))) for run in runs),
        )
        finished = evidence.finished
        unmeasured = sum(run.layers is None for run in finished) if self.profiles else 0
        notes = [f"{unmeasured} finished runs are not measured layer by layer yet."] if unmeasured else []
        return Result(
            title=self.title,
            figures=[self.figure(evidence, self.place)] if self.figure else [],
            tables=[table(evidence) for table in self.tables],
            published=self.compared.numbers(evidence, self.source, self.place) if self.compared else [],
            notes=[*notes, *_notes(evidence)],
            verdicts=[claim.verdict(evidence) for claim in self.claims],
            runs=[run.row.id for run in finished],
            planned=len(evidence.planned),
            provenance=provenance(
                self.slug,
                scale,
                min((config.seed for config in evidence.planned), default=0),
                _settings(evidence, self.grid),
                (),
                sum(run.row.ended - run.row.started for run in finished if run.row.started and run.row.ended),
                inputs.words(),
                next((run.started.versions for run in reversed(finished) if run.started), {}),
            ),
        )


def _named(config: RunConfig, names: Mapping[str, str]) -> RunConfig:
    name = names.get(config.model, config.model)
    return config if name == config.model else config.model_copy(update={"model": name})


def _settings(evidence: Evidence, grid: Grid) -> dict[str, Any]:
    """What the runs have in common, and what they were run with."""
    names = ("epochs", "max_train", "max_eval", "learning_rate", "batch_size", "max_length", "schedule", "batching")
    started = [run.started for run in evidence.finished if run.started]
    return {
        "grids": [grid.slug],
        "models": evidence.models,
        "tasks": evidence.tasks,
        "seeds": evidence.distinct("seed"),
        "first_run": {name: getattr(evidence.planned[0], name) for name in names},
        "data_fingerprints": sorted({start.data_fingerprint for start in started}),
        "model_fingerprints": sorted({start.model_fingerprint for start in started}),
        "devices": sorted({start.device for start in started}),
    }


def _notes(evidence: Evidence) -> list[str]:
    """Notes on unfinished runs, excluded runs, and tasks where nothing was learned."""
    count, planned = len(evidence.finished), len(evidence.planned)
    notes = [f"{count} of {planned} runs have finished."] if count < planned else []
    if ended := [run for run in evidence.runs if not run.finished and run.row.status not in RUNNING]:
        runs = ", ".join(f"{run.row.status} {run.row.id}" for run in ended)
        notes.append(f"Left out, because they did not finish: {runs}.")
    if collapsed := [run for run in evidence.finished if run.row.collapsed]:
        titles = ((method_title(run.config.method), task_title(run.config.task)) for run in collapsed)
        where = dict.fromkeys(map(" on ".join, titles))
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
