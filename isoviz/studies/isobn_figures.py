"""Figures 1, 2 and 4 of IsoBN: spread, correlation and explained variance of a pre-trained encoder's first-token vectors.

Each cloud is a complete training set through the unchanged encoder, one point per row.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from isoviz.errors import DataError, InputError
from isoviz.methods.isobn import IsoBN
from isoviz.methods.protocol import Paper
from isoviz.studies import isobn_published as paper
from isoviz.studies.inputs import Inputs, NamedModel
from isoviz.studies.isobn_clouds import BETA, MAX_LENGTH, POOLER, Cloud, encode
from isoviz.studies.protocol import Claim, ComputedStudy, Judgement, Progress
from isoviz.studies.result import Axis, Figure, Matrix, Panel, Published, Result, Series, Table, provenance

if TYPE_CHECKING:
    from isoviz.tasks.protocol import Task

PAPER = IsoBN.paper
assert PAPER is not None

FLOOR: Final = 1e-10
PER_DECADE: Final = 5
"""Bins of Figure 1 for each power of ten."""
STRONG: Final = 0.5
"""Two dimensions with at least this |ρ| count as strongly correlated."""
OF_ALL: Final = (
    "A point is a training row (a pair of texts is read together), through the encoder as it was downloaded, in evaluation "
    "mode and float32.",
    "σ has the divisor n; the first bin of its histogram also holds what is smaller but not zero. Both transforms are fitted "
    "on the cloud that they are applied to.",
)
"""Notes on every cloud."""


@dataclass(frozen=True)
class Plan:
    """The encoders and tasks of a scale; `rows`: number of training rows, None for all."""

    models: tuple[str, ...]
    tasks: tuple[str, ...]
    rows: int | None


PLANS: Mapping[str, Plan] = MappingProxyType(
    {
        "quick": Plan(
            ("demo/tiny-bert",),
            ("demo/paraphrase", "demo/entailment", "demo/acceptability", "demo/similarity"),
            2_000,
        ),
        "full": Plan(("google-bert/bert-base-cased", "FacebookAI/roberta-large"), tuple(paper.TASKS), None),
    }
)


def spreads(clouds: Sequence[Cloud], columns: int) -> Figure:
    """Figure 1: percent of the dimensions against their σ, on bins that all panels share."""
    import numpy as np

    from isoviz import metrics

    widest = max(float(cloud.sigma.max()) for cloud in clouds)
    decades = max(0, math.ceil(math.log10(widest))) if widest > 0 else 0
    top = 10.0**decades
    bins = PER_DECADE * round(decades - math.log10(FLOOR))
    panels = []
    for cloud in clouds:
        # two points at ±σ have exactly these standard deviations, so the cloud is not needed
        histogram = metrics.std_histogram(np.stack([cloud.sigma, -cloud.sigma]), bins=bins, floor=FLOOR, top=top)
        edges = np.asarray(histogram.edges)
        bars = Series(
            name="dimensions",
            role="measured",
            group=cloud.tensor,
            x=np.sqrt(edges[1:] * edges[:-1]).tolist(),
            y=np.asarray(histogram.percent).tolist(),
            at_zero=float(histogram.zero),
        )
        panels.append(
            Panel(
                title=cloud.title,
                kind="bars",
                x_axis=Axis(label="σ of a dimension", log=True, low=FLOOR, high=top),
                y_axis=Axis(label="% of the dimensions", low=0.0),
                series=[bars],
            )
        )
    title = "Standard deviations of the dimensions over the training set"
    return Figure(name="sigma", title=title, place="Figure 1", columns=columns, panels=panels)


def correlations(clouds: Sequence[Cloud], columns: int) -> Figure:
    """Figure 2: |ρ| of all pairs of dimensions, clustered."""
    axis = Axis(label="dimensions, clustered")
    panels = [
        Panel(title=cloud.title, kind="matrix", x_axis=axis, y_axis=axis, matrix=Matrix.of(cloud.correlation))
        for cloud in clouds
    ]
    title = "|ρ| of every two dimensions, clustered: 0 is white, 1 is dark"
    return Figure(name="correlation", title=title, place="Figure 2", columns=columns, panels=panels)


def explained(clouds: Sequence[Cloud], columns: int) -> Figure:
    """Figure 4: EV_k as it is, batch-normalised, and after IsoBN."""
    panels = [
        Panel(
            title=cloud.title,
            x_axis=Axis(label="k"),
            y_axis=Axis(label="EV_k", low=0.0, high=1.02),
            series=[
                Series(
                    name={"none": "no normalisation", "BN": "batch normalisation"}.get(spectrum.form, "IsoBN, β = 1"),
                    role="measured",
                    group=spectrum.form,
                    x=[float(k + 1) for k in range(len(spectrum.ev))],
                    y=spectrum.ev,
                )
                for spectrum in cloud.spectra
            ],
        )
        for cloud in clouds
    ]
    title = "Share of the variance in the first k principal directions"
    return Figure(name="ev", title=title, place="Figure 4", columns=columns, panels=panels)


def dimensions_table(clouds: Sequence[Cloud]) -> Table:
    """Spread and correlation of each cloud in numbers."""
    import numpy as np

    rows: list[list[str | int | float | None]] = []
    for cloud in clouds:
        positive = cloud.sigma[cloud.sigma > 0]
        lowest, median = (float(positive.min()), float(np.median(cloud.sigma))) if len(positive) else (None, 0.0)
        pairs = cloud.correlation[np.triu_indices(cloud.d, 1)]
        mean, strong = (float(pairs.mean()), 100 * float((pairs >= STRONG).mean())) if len(pairs) else (None, None)
        zero = cloud.d - len(positive)
        widest = float(cloud.sigma.max())
        named = [cloud.task.title, cloud.model, cloud.tensor]
        rows.append([*named, cloud.n, cloud.d, lowest, median, widest, zero, cloud.tiny, mean, strong])
    return Table(
        title="The dimensions of each cloud",
        header=["task", "encoder", "vector", "n", "d", "smallest σ > 0", "median σ", "largest σ", "σ = 0", "tiny σ",
                "mean |ρ|", f"|ρ| ≥ {STRONG:g}, % of pairs"],
        rows=rows,
        notes=[
            "σ = 0 and tiny σ count dimensions; tiny is at most a millionth of the median σ. |ρ| is of distinct dimensions; "
            "one without variance counts as uncorrelated."
        ],
    )  # fmt: skip


def ev_table(clouds: Sequence[Cloud]) -> Table:
    """EV_1 to EV_3 of each cloud and form, with the published values."""
    rows: list[list[str | int | float | None]] = []
    notes: list[str] = []
    for cloud in clouds:
        model = paper.compared(cloud.model)
        for spectrum in cloud.spectra:
            published = paper.printed(model, cloud.task.slug, spectrum.form)
            if published:
                encoder_note = "" if paper.is_from_paper(cloud.model) else f", another encoder than {cloud.model}"
                notes.append(f"Printed: {paper.WHERE}, {model}{encoder_note}.")
            measured: list[float | None] = [*spectrum.ev[:3], *[None] * (3 - len(spectrum.ev[:3]))]
            rows.append(
                [cloud.task.title, cloud.model, cloud.tensor, spectrum.form, *measured, *(published or [None] * 3)]
            )
    if not any(row[-1] for row in rows):
        notes.append("The paper gives no numbers for these tasks.")
    header = ["task", "encoder", "vector", "normalisation"]
    columns = [f"{prefix}EV_{k}" for prefix in ("", "printed ") for k in (1, 2, 3)]
    return Table(title="EV_1 to EV_3", header=[*header, *columns], rows=rows, notes=list(dict.fromkeys(notes)))


def published_with_measured(clouds: Sequence[Cloud]) -> list[Published]:
    """Each published number with ours, for the pooler's output if available, as in the authors' code."""
    numbers = []
    pooled = {(cloud.model, cloud.task.slug) for cloud in clouds if cloud.tensor == POOLER}
    for cloud in clouds:
        if cloud.tensor != POOLER and (cloud.model, cloud.task.slug) in pooled:
            continue
        model = paper.compared(cloud.model)
        differs = "" if paper.is_from_paper(cloud.model) else f"the encoder: here {cloud.model}, there {model}"
        for spectrum in cloud.spectra:
            published = paper.printed(model, cloud.task.slug, spectrum.form) or ()
            for k, (number, measured) in enumerate(zip(published, spectrum.ev, strict=False), start=1):
                label = f"EV_{k}, {cloud.task.title}, {spectrum.form}, {cloud.tensor}"
                numbers.append(
                    Published(what=label, published=number, reproduced=measured, where=paper.WHERE, differs=differs)
                )
    return numbers


def loaded(slugs: Sequence[str], data: Mapping[str, str], rows: int | None) -> Iterator[tuple[Task, list[Any], str]]:
    """Task, its text columns and the data's fingerprint, each checked before anything is computed."""
    from isoviz import tasks

    if strangers := [slug for slug in data if slug not in slugs]:
        raise InputError(
            f"data: '{strangers[0]}' is not among the tasks of this run ({', '.join(slugs)})", field="data"
        )
    for slug in slugs:
        task = tasks.get(slug)
        if task.kind not in ("classification", "regression"):
            raise InputError(f"tasks: '{slug}' is not about a text or a pair of texts as a whole", field="tasks")
        data_of_task = tasks.load(task, data.get(slug), max_train=rows)
        if len(data_of_task.train) < 2:
            raise DataError(f"data: '{slug}' has fewer than 2 training rows", field="data")
        yield task, [data_of_task.train[column].tolist() for column in task.inputs], data_of_task.fingerprint


def compute(
    models: Sequence[NamedModel], tasks: Sequence[str], rows: int | None, scale: str, inputs: Inputs, progress: Progress
) -> Result:
    """The figures for any encoders and tasks in `inputs`.

    Args:
        rows: most rows of a training set, a random sample that is the same for every run; None for all.
        scale: name of the scale in the provenance.
    """
    from isoviz.models import sources

    started = time.perf_counter()
    resolved = [(model, sources.resolve(model.source)) for model in models]
    read = list(loaded(tasks, inputs.data, rows))
    clouds: list[Cloud] = []
    notes: list[str] = []
    prints: dict[str, str] = {}
    for index, (model, source) in enumerate(resolved):
        by_tensor: dict[str, list[Cloud]] = {}
        for number, (task, texts, _) in enumerate(read):
            at, total = index * len(read) + number, len(resolved) * len(read)

            def report(share: float, activity: str, at: int = at, total: int = total, title: str = task.title) -> None:
                progress((at + share) / total, f"{title}: {activity}")

            encoded = encode(model, source, task, texts, report)
            prints[model.name] = encoded.fingerprint
            notes += encoded.notes
            for cloud in encoded.clouds:
                by_tensor.setdefault(cloud.tensor, []).append(cloud)
        clouds += [cloud for row in by_tensor.values() for cloud in row]  # a row of panels for each vector
        if POOLER not in by_tensor:
            notes.append(f"{model.name}: its checkpoint holds no pooler, so there is its [CLS] state only.")
    if absent := paper.missing_tasks(tasks):
        notes.append(f"Of the paper's tasks not in this run: {', '.join(absent)}.")
    if rows:
        notes.append(f"At most {rows:,} training rows of each task, a random choice that is the same for every run.")
    progress(1.0, "done")
    config = {
        "models": [{"name": name, "fingerprint": mark} for name, mark in prints.items()],
        "tasks": [{"slug": task.slug, "rows": len(texts[0]), "fingerprint": mark} for task, texts, mark in read],
        "max_length": MAX_LENGTH,
        "max_rows": rows,
        "beta": BETA,
    }
    return Result(
        title="How isotropic are the [CLS] embeddings of a pre-trained encoder?",
        figures=[draw(clouds, len(read)) for draw in (spreads, correlations, explained)],
        tables=[dimensions_table(clouds), ev_table(clouds)],
        published=published_with_measured(clouds),
        notes=[*OF_ALL, *dict.fromkeys(notes)],
        provenance=provenance(
            IsoBNFigures.slug,
            scale,
            0,
            config,
            ["numpy", "scipy", "torch", "transformers"],
            time.perf_counter() - started,
            inputs.words(),
        ),
    )


def spread_over_decades(result: Result) -> Judgement:
    """Orders of magnitude between the smallest and the largest standard deviation of each cloud."""
    rows = [row for row in result.tables[0].rows if row[5] and row[7]]
    decades = [math.log10(float(row[7] or 1) / float(row[5] or 1)) for row in rows]
    if not decades:
        return "cannot tell", "No cloud has dimensions that vary."
    median = sorted(decades)[len(decades) // 2]
    sentence = f"From smallest to largest, σ spans {min(decades):.1f} to {max(decades):.1f} orders of magnitude over {len(rows)} clouds."
    return ("held" if median >= 3 else "not held"), sentence


def strongly_correlated(result: Result) -> Judgement:
    """Share of pairs of dimensions with |ρ| of at least `STRONG`."""
    shares = [float(row[-1]) for row in result.tables[0].rows if row[-1] is not None]
    if not shares:
        return "cannot tell", "No cloud has two dimensions."
    sentence = f"{min(shares):.2g} to {max(shares):.2g} % of the pairs of dimensions have |ρ| of {STRONG:g} or more."
    return ("held" if min(shares) >= 5 else "not held" if max(shares) < 5 else "cannot tell"), sentence


def _ev(result: Result, form: str, k: int) -> dict[tuple[object, ...], float]:
    rows = [row for row in result.tables[1].rows if row[3] == form]
    return {tuple(row[:3]): float(row[3 + k]) for row in rows if row[3 + k] is not None}  # type: ignore[arg-type]


def three_directions_hold_most(result: Result) -> Judgement:
    """EV_3 before any normalisation, against one half."""
    ev_3 = list(_ev(result, "none", 3).values())
    if not ev_3:
        return "cannot tell", "No cloud has three components."
    sentence = f"EV_3 is {min(ev_3):.2f} to {max(ev_3):.2f} over {len(ev_3)} clouds before any normalisation; the paper averages 0.86."
    return ("held" if min(ev_3) > 0.5 else "not held" if max(ev_3) <= 0.5 else "cannot tell"), sentence


def isobn_lowers_most(result: Result) -> Judgement:
    """EV_1, EV_2 and EV_3 after IsoBN against those after batch normalisation."""
    pairs = []
    for k in (1, 2, 3):
        after, other_ev = _ev(result, "IsoBN", k), _ev(result, "BN", k)
        pairs += [(after[key], other_ev[key]) for key in after.keys() & other_ev.keys()]
    if not pairs:
        return "cannot tell", "No cloud has three components."
    lower = sum(isobn < batch_norm for isobn, batch_norm in pairs)
    mean = sum(isobn - batch_norm for isobn, batch_norm in pairs) / len(pairs)
    sentence = f"IsoBN's EV_k is below batch normalisation's in {lower} of {len(pairs)} cases (k = 1 to 3), by {-mean:.3f} on average."
    return ("held" if lower == len(pairs) else "not held" if lower < len(pairs) / 2 else "cannot tell"), sentence


class IsoBNFigures(ComputedStudy):
    """Spread, correlation and explained variance of [CLS] embeddings, as they are and normalised."""

    slug: ClassVar[str] = "isobn-figures"
    title: ClassVar[str] = "How isotropic are [CLS] embeddings before fine-tuning?"
    paper: ClassVar[Paper] = PAPER
    place: ClassVar[str] = "Figures 1, 2 and 4, Table 2"
    kind: ClassVar[Literal["figure", "table"]] = "figure"
    summary: ClassVar[str] = (
        "The first-token vectors that a pre-trained encoder gives for whole training sets: how differently their dimensions "
        "spread, which go together, and how much of the variance lies in a few directions with no normalisation, batch "
        "normalisation and IsoBN at β = 1."
    )
    open_points: ClassVar[tuple[str, ...]] = (
        "The text speaks of the [CLS] embedding; the authors' code takes the pooler's output, a dense layer and tanh on top "
        "of it. Both are shown where the checkpoint holds the pooler's weights.",
        "The public checkpoint of roberta-large holds none, so its figures may be of a layer drawn at random. Here it has its "
        "[CLS] state only.",
        "Equation 9 takes the singular values of the embeddings as they are; the text says that the mean does not matter, "
        "which holds after centring. Here they are centred.",
        "The paper does not name the clustering that orders Figure 2. Here: average linkage on 1 − |ρ|, with the shortest leaf order.",
        "Equation 7 lacks the square root that keeps the variance; the code has it, as here.",
        "ε of IsoBN is 0.1 in the text, where γ sums ρ², and 0.001 in the code, where γ averages it. Here as in the text.",
        "ε of batch normalisation is not given. Here 1e-5 under the root, so a dimension with σ far below 0.003 stays below "
        "unit variance.",
    )
    claims: ClassVar[tuple[Claim, ...]] = (
        Claim(
            "Standard deviations of the dimensions differ by many orders of magnitude (Figure 1).", spread_over_decades
        ),
        Claim("Many dimensions are strongly correlated (Figure 2).", strongly_correlated),
        Claim("Three directions hold most of the variance before normalisation (Table 2).", three_directions_hold_most),
        Claim("IsoBN lowers EV_k further than batch normalisation (Table 2, Figure 4).", isobn_lowers_most),
    )
    parts: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "isobn-figure-1": "Figure 1",
            "isobn-figure-2": "Figure 2",
            "isobn-figure-4": "Figure 4",
            "isobn-table-2": "Table 2",
        }
    )
    scales: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            name: f"{', '.join(plan.models)} on {', '.join(plan.tasks)}, "
            + (f"{plan.rows:,} training rows each" if plan.rows else "all training rows")
            for name, plan in PLANS.items()
        }
    )
    takes: ClassVar[tuple[str, ...]] = ("model", "tasks", "data")

    def compute(self, scale: str, progress: Progress, inputs: Inputs) -> Result:
        """The three figures; the full scale needs the hub (or its cache), and some minutes on a GPU."""
        plan = PLANS[scale]
        models = inputs.models or tuple(NamedModel(name, name) for name in plan.models)
        return compute(models, inputs.tasks or plan.tasks, plan.rows, scale, inputs, progress)
