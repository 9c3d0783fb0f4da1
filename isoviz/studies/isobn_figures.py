"""Figures 1, 2 and 4 and Table 2 of IsoBN: spread, correlation and explained variance of a pre-trained encoder's first-token vectors.

Each cloud is a complete training set through the unchanged encoder, one point per row.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from isoviz.studies.figures import axis, line, log_bars, matrix, panel
from isoviz.studies.inputs import Inputs, NamedModel
from isoviz.studies.isobn import BERT, MODELS, ROBERTA
from isoviz.studies.isobn_clouds import BETA, MAX_LENGTH, POOLER, Cloud, encode
from isoviz.studies.judging import Judgement, by_cases
from isoviz.studies.published import of
from isoviz.studies.result import Figure, Published, Result, Row, Table
from isoviz.studies.study import Claim, Computed, ComputedStudy, Progress

if TYPE_CHECKING:
    pass

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
PACKAGES: Final = ("numpy", "scipy", "torch", "transformers")
TAKES: Final = ("model", "tasks", "data")
QUICK_ENCODER, QUICK_ROWS = "demo/tiny-bert", 2_000
QUICK_TASKS: Final = ("demo/paraphrase", "demo/entailment", "demo/acceptability", "demo/similarity")
TASKS: Final = MappingProxyType({"glue/mrpc": "MRPC", "glue/rte": "RTE", "glue/cola": "CoLA", "glue/stsb": "STS-B"})
"""Task of the catalogue → its name in the paper, in the paper's order."""
WHERE: Final = "IsoBN, Table 2"

# ---------------------------------------------------------------------------------------------------- printed numbers


@functools.cache
def printed() -> Mapping[tuple[str, str, str], tuple[float, ...]]:
    """The paper's encoder, our task's slug, and none, BN or IsoBN → EV_1, EV_2, EV_3."""
    cells = {(cell.model, cell.task, cell.label, cell.metric): cell.value or 0.0 for cell in of("isobn", "Table 2")}
    return {key[:3]: tuple(cells[*key[:3], f"ev_{k}"] for k in (1, 2, 3)) for key in cells}


def compared_with(model: str) -> str:
    """The paper's encoder whose numbers are shown next to those of `model`: its own, or BERT-base if it is not in the paper."""
    return _own(model) if _own(model) in MODELS.values() else MODELS[BERT]


def _own(model: str) -> str:
    """The name without owner and revision."""
    return model.partition("@")[0].rsplit("/", 1)[-1]


# ---------------------------------------------------------------------------------------------------- Figures 1, 2 and 4, Table 2


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
        x, y = np.sqrt(edges[1:] * edges[:-1]).tolist(), np.asarray(histogram.percent).tolist()
        y_axis = axis("% of the dimensions", 0.0)
        panels.append(log_bars(cloud.title, "σ of a dimension", x, y, float(histogram.zero), y_axis))
    title = "Standard deviations of the dimensions over the training set"
    return Figure(name="sigma", title=title, place="Figure 1", columns=columns, panels=panels)


def correlations(clouds: Sequence[Cloud], columns: int) -> Figure:
    """Figure 2: |ρ| of all pairs of dimensions, clustered."""
    panels = [matrix(cloud.title, cloud.correlation) for cloud in clouds]
    title = "|ρ| of every two dimensions, clustered: 0 is white, 1 is dark"
    return Figure(name="correlation", title=title, place="Figure 2", columns=columns, panels=panels)


def explained(clouds: Sequence[Cloud], columns: int) -> Figure:
    """Figure 4: EV_k as it is, batch-normalised, and after IsoBN."""
    names = {
        "none": ("no normalisation", "baseline"),
        "BN": ("batch normalisation", "batchnorm"),
        "IsoBN": ("IsoBN, β = 1", "isobn"),
    }
    panels = [
        panel(
            cloud.title,
            axis("k"),
            axis("EV_k", 0.0, 1.02),
            [
                line(*names[form], list(range(1, len(ev) + 1)), [(share, share, share) for share in ev], spread=False)
                for form, ev in cloud.spectra.items()
            ],
        )
        for cloud in clouds
    ]
    title = "Share of the variance in the first k principal directions"
    return Figure(name="ev", title=title, place="Figure 4", columns=columns, panels=panels)


def dimensions_table(clouds: Sequence[Cloud]) -> Table:
    """Spread and correlation of each cloud in numbers."""
    import numpy as np

    rows: list[Row] = []
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
    rows: list[Row] = []
    notes: list[str] = []
    for cloud in clouds:
        model = compared_with(cloud.model)
        for form, ev in cloud.spectra.items():
            published = printed().get((model, cloud.task.slug, form))
            if published:
                encoder_note = "" if model == _own(cloud.model) else f", another encoder than {cloud.model}"
                notes.append(f"Printed: {WHERE}, {model}{encoder_note}.")
            measured = [*ev[:3], *[None] * (3 - len(ev[:3]))]
            rows.append([cloud.task.title, cloud.model, cloud.tensor, form, *measured, *(published or [None] * 3)])
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
        model = compared_with(cloud.model)
        differs = "" if model == _own(cloud.model) else f"the encoder: here {cloud.model}, there {model}"
        for form, ev in cloud.spectra.items():
            published = printed().get((model, cloud.task.slug, form), ())
            for k, (number, measured) in enumerate(zip(published, ev, strict=False), start=1):
                label = f"EV_{k}, {cloud.task.title}, {form}, {cloud.tensor}"
                numbers.append(
                    Published(what=label, published=number, reproduced=measured, where=WHERE, differs=differs)
                )
    return numbers


def figures_and_table(scale: str, progress: Progress, inputs: Inputs) -> Computed:
    """The three figures and the table; the full scale needs the hub (or its cache), and some minutes on a GPU."""
    quick = scale == "quick"
    tasks = inputs.tasks or (QUICK_TASKS if quick else tuple(TASKS))
    rows = QUICK_ROWS if quick else None
    encoded, config = encode(_models(inputs, quick), tasks, inputs.data, rows, progress)
    clouds: list[Cloud] = []
    notes: list[str] = []
    for name, parts in itertools.groupby(encoded, key=lambda one: one.model.name):
        of_model = list(parts)
        notes += [note for one in of_model for note in one.notes]
        # a row of panels for each vector
        clouds += [cloud for row in zip(*(one.clouds for one in of_model), strict=True) for cloud in row]
        if not any(cloud.tensor == POOLER for cloud in clouds if cloud.model == name):
            notes.append(f"{name}: its checkpoint holds no pooler, so there is its [CLS] state only.")
    absent = [name for slug, name in TASKS.items() if slug not in tasks]
    if absent and len(absent) < len(TASKS):
        notes.append(f"Of the paper's tasks not in this run: {', '.join(absent)}.")
    if rows:
        notes.append(f"At most {rows:,} training rows of each task, a random choice that is the same for every run.")
    return Computed(
        title="How isotropic are the [CLS] embeddings of a pre-trained encoder?",
        figures=[draw(clouds, len(tasks)) for draw in (spreads, correlations, explained)],
        tables=[dimensions_table(clouds), ev_table(clouds)],
        published=published_with_measured(clouds),
        notes=[*OF_ALL, *dict.fromkeys(notes)],
        config=config | {"max_length": MAX_LENGTH, "max_rows": rows, "beta": BETA},
        packages=PACKAGES,
    )


def _models(inputs: Inputs, quick: bool) -> tuple[NamedModel, ...]:
    names = (QUICK_ENCODER,) if quick else (BERT, ROBERTA)
    return inputs.models or tuple(NamedModel(name, name) for name in names)


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
    return by_cases([share >= 5 for share in shares], sentence)


def _ev(result: Result, form: str, k: int) -> dict[tuple[object, ...], float]:
    rows = [row for row in result.tables[1].rows if row[3] == form]
    return {tuple(row[:3]): float(row[3 + k]) for row in rows if row[3 + k] is not None}  # type: ignore[arg-type]


def three_directions_hold_most(result: Result) -> Judgement:
    """EV_3 before any normalisation, against one half."""
    ev_3 = list(_ev(result, "none", 3).values())
    if not ev_3:
        return "cannot tell", "No cloud has three components."
    sentence = f"EV_3 is {min(ev_3):.2f} to {max(ev_3):.2f} over {len(ev_3)} clouds before any normalisation; the paper averages 0.86."
    return by_cases([value > 0.5 for value in ev_3], sentence)


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


FIGURES: Final = ComputedStudy(
    slug="isobn-figures",
    places="Figures 1, 2 and 4, Table 2",
    title="How isotropic are [CLS] embeddings before fine-tuning?",
    summary="The first-token vectors that a pre-trained encoder gives for whole training sets: how differently their dimensions "
    "spread, which go together, and how much of the variance lies in a few directions with no normalisation, batch "
    "normalisation and IsoBN at β = 1.",
    open_points=(
        "The text speaks of the [CLS] embedding; the authors' code takes the pooler's output, a dense layer and tanh on top "
        "of it. Both are shown where the checkpoint holds the pooler's weights.",
        "The public checkpoint of roberta-large holds none, so its figures may be of a layer drawn at random. Here it has its "
        "[CLS] state only.",
        "Equation 9 takes the singular values of the embeddings as they are; the text says that the mean does not matter, "
        "which holds after centring. Here they are centred.",
        "The paper does not name the clustering that orders Figure 2. Here: average linkage on 1 − |ρ|, leaves in the order of scipy.",
        "Equation 7 lacks the square root that keeps the variance; the code has it, as here.",
        "ε of IsoBN is 0.1 in the text, where γ sums ρ², and 0.001 in the code, where γ averages it. Here as in the text.",
        "ε of batch normalisation is not given. Here 1e-5 under the root, so a dimension with σ far below 0.003 stays below "
        "unit variance.",
    ),
    claims=(
        Claim(
            "Standard deviations of the dimensions differ by many orders of magnitude (Figure 1).", spread_over_decades
        ),
        Claim("Many dimensions are strongly correlated (Figure 2).", strongly_correlated),
        Claim("Three directions hold most of the variance before normalisation (Table 2).", three_directions_hold_most),
        Claim("IsoBN lowers EV_k further than batch normalisation (Table 2, Figure 4).", isobn_lowers_most),
    ),
    quick=f"{QUICK_ENCODER} on {', '.join(QUICK_TASKS)}, {QUICK_ROWS:,} training rows each",
    full=f"{BERT}, {ROBERTA} on {', '.join(TASKS)}, all training rows",
    takes=TAKES,
    compute=figures_and_table,
)

STUDIES: Final = (FIGURES,)
