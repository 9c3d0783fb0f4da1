"""The five tables of isotropy calibration: four methods and none on understanding, translation and summarization."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from isoviz.runs.naming import method_title
from isoviz.runs.planning import MethodChoice
from isoviz.studies import judging
from isoviz.studies.grids import NONE, THREE, Grid, Plan, quick_plans, recipe
from isoviz.studies.published import SMALL, Compared, Printed
from isoviz.studies.records import Evidence
from isoviz.studies.result import Row
from isoviz.studies.study import Claim, TrainedStudy
from isoviz.studies.tables import SPREAD, rows_table, tasks_table

MODELS: Final = MappingProxyType(
    {
        "google-bert/bert-base-uncased": "BERT",
        "FacebookAI/roberta-base": "RoBERTa",
        "distilbert/distilbert-base-uncased": "DistilBERT",
    }
)
"""Encoders on the hub → their names in the paper, which does not state the checkpoints."""
WRITERS: Final = MappingProxyType({"facebook/mbart-large-cc25": "mBART", "facebook/bart-base": "BART"})
ORDER: Final = ("baseline", "cosreg", "spectrum_pol", "spectrum_exp", "flow")
NAMES: Final = MappingProxyType(
    {"bleu": "BLEU", "rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "i1": "I1", "i2": "I2",
     "minutes_per_epoch": "minutes per epoch"}
)  # fmt: skip
Metric: TypeAlias = str | Callable[[str], str]
"""Its name, or its name for a task."""
Judge: TypeAlias = Callable[[Evidence], judging.Judgement]
MANY_TIMES: Final = 2.0
"""The paper prints 5.5 to 10.5 times the time per epoch; a ratio that may be below 2 is not many times."""
FLOW_DIFFERS: Final = (
    "Flow here trains its map along with the task and passes the mapped vectors to the output layer, which has to learn them anew. "
    "The paper does not say how its Flow is trained or what its output layer reads."
)

# ---------------------------------------------------------------------------------------------------- runs

_FLOW: Final[MethodChoice] = ("flow", {})
_ON_ALL: Final[tuple[MethodChoice, ...]] = (
    NONE,
    ("cosreg", {"lam": 1.0, "on": "output"}),
    ("spectrum_pol", {}),
    ("spectrum_exp", {}),
)
_GLUE: Final = {3: ("sst2", "cola", "rte", "stsb", "qnli", "mnli", "qqp"), 5: ("mrpc", "wnli")}
"""Epochs → tasks."""


def _on_glue(model: str) -> Iterator[Plan]:
    """Flow on BERT alone, as in the paper."""
    methods = (*_ON_ALL, _FLOW) if MODELS[model] == "BERT" else _ON_ALL
    for epochs, names in _GLUE.items():
        settings = recipe("calibration", epochs=epochs)
        tasks = tuple(f"glue/{name}" for name in names)
        yield Plan((model,), tasks, methods, THREE, 1e-5 if MODELS[model] == "RoBERTa" else 2e-5, settings)


UNDERSTAND: Final = Grid(
    "calibration-understanding",
    quick_plans((*_ON_ALL, _FLOW), "demo/acceptability", "demo/paraphrase", "demo/similarity"),
    tuple(plan for model in MODELS for plan in _on_glue(model)),
)
"""Tables 1 and 4: single texts, pairs, and a regression."""


def _writing(model: str, task: str, rate: float, rows: int | None, small: int, **settings: Any) -> tuple[Plan, ...]:
    """Every method but Flow on the whole training set, and Flow beside none on a small one."""
    whole = settings if rows is None else {**settings, "max_train": rows}
    return (
        Plan((model,), (task,), _ON_ALL, THREE, rate, whole),
        Plan((model,), (task,), (NONE, _FLOW), THREE, rate, {**settings, "max_train": small}),
    )


def _quick_writing(task: str, rows: int, small: int, max_length: int) -> tuple[Plan, ...]:
    settings = {"epochs": 3, "max_length": max_length, "batching": "shuffled", "max_eval": 200}
    return _writing("demo/tiny-bart", task, 1e-3, rows, small, **settings)


_MBART, _BART = WRITERS
TRANSLATE: Final = Grid(
    "calibration-translation",
    _quick_writing("demo/translation", 1500, 500, 64),
    tuple(
        plan
        for task, direction in (("wmt16/ro-en", "en-ro"), ("wmt16/de-en", "de-en"))
        for plan in _writing(_MBART, task, 3e-5, None, 50_000, **recipe("calibration-bart", direction=direction))
    ),
)
"""Table 2."""
SUMMARIZE: Final = Grid(
    "calibration-summarization",
    _quick_writing("demo/summarization", 1000, 600, 128),
    _writing(_BART, "cnn_dailymail", 3e-5, None, 20_000, **recipe("calibration-bart")),
)
"""Tables 3 and 5."""


def _by_method(runs: Evidence) -> Iterator[tuple[str, Evidence]]:
    """The planned methods, in the paper's order."""
    parts = ((method, runs.where(method=method)) for method in ORDER)
    return ((method, part) for method, part in parts if part.planned)


# ---------------------------------------------------------------------------------------------------- Table 1


def metric_of(task: str) -> str:
    """As in the paper: F1 for MRPC, else the task's primary metric."""
    return "f1" if task == "glue/mrpc" else judging.primary(task)


def sets(evidence: Evidence) -> list[tuple[str, Evidence]]:
    """The complete training set and the small one for Flow; only one if a task has one size."""
    first = evidence.where(task=next(iter(evidence.tasks), ""))
    sizes = dict.fromkeys(config.max_train for config in first.planned)
    if len(sizes) < 2:
        return [("", evidence)]
    small = min(size for size in sizes if size is not None)
    return [
        ("", evidence.where(lambda config: config.max_train != small)),
        ("small set", evidence.where(max_train=small)),
    ]


def _changes(
    evidence: Evidence, metric: Metric, methods: Sequence[str], place: str = "", **options: Any
) -> list[judging.Change]:
    """Each method minus none on each training set; `place` is the table whose printed spread gives the margin."""
    printed_in = ("calibration", place) if place else None
    parts = (
        judging.against_baseline(part, metric, methods, printed_in=printed_in, **options) for _, part in sets(evidence)
    )
    return [change for changes in parts for change in changes]


def _opening(metric: Metric) -> str:
    return f"{NAMES[metric]} changes by" if isinstance(metric, str) else "Scores change by"


def none_is_better(metric: Metric, place: str) -> Judge:
    """No method is better than the baseline on most tasks."""
    return lambda evidence: judging.never_better(
        {method_title(method): _changes(evidence, metric, (method,), place) for method in ORDER[1:]}
    )


def stays(place: str, metrics: Sequence[Metric], *methods: str) -> Judge:
    """Each number with the methods minus the number without is within the margin."""
    return lambda evidence: judging.both(
        *(judging.unchanged(_changes(evidence, metric, methods, place), _opening(metric)) for metric in metrics)
    )


def spectrum_hurts(evidence: Evidence) -> judging.Judgement:
    """Whether spectrum control collapses, or is significantly worse than the baseline.

    With c₁ = 0 the targets keep the norm of the weight, so the collapse of the printed scores cannot occur: then its absence decides
    nothing.
    """
    runs = evidence.where(lambda config: config.method in judging.SPECTRUM)
    collapsed = [run for run in runs.finished if run.row.collapsed]
    differences = _changes(evidence, metric_of, judging.SPECTRUM, "Table 1")
    if not any(change.tested for change in differences) and not collapsed:
        return judging.TOO_FEW
    worse = judging.signs(differences).count(-1)
    lowest = min((change for change in differences if change.values), key=lambda change: change.mean, default=None)
    sentence = (
        f"{len(collapsed)} of {len(runs.finished)} runs collapsed, and {worse} of {len(differences)} comparisons with the baseline are "
        f"lower beyond chance (Holm){f'; lowest {lowest.words()}' if lowest else ''}.{judging.detectable(differences)}"
    )
    if collapsed or worse:
        return "held", sentence
    if not all(runs.distinct("c1")):
        reason = "The scale c₁ = 0 keeps the norm of the weight, so it cannot vanish as in the paper."
        return "cannot tell", f"{sentence} {reason}"
    excluded = all(change.tested and change.ends[0] >= -change.margin for change in differences)
    return ("not held" if excluded and not runs.unfinished else "cannot tell"), sentence


TABLE_1: Final = TrainedStudy(
    slug="calibration-table-1",
    title="Does isotropy calibration help language understanding?",
    summary="Each task's metric without calibration and with CosReg, spectrum control (polynomial and exponential) and Flow; mean and "
    "standard deviation over three seeds.",
    open_points=(
        "The strengths of all methods, the decays of spectrum control and everything about Flow are not given. Ours keep the norm of "
        "the output layer, so it cannot be emptied as the printed scores suggest.",
        "A score of 0 or none is a model that predicts one class; such runs are left out here and counted.",
        "The stars are two-sided t-tests with equal variances, three seeds each, and none of 100 comparisons is corrected for. The "
        "table stars Spectrum-Pol on WNLI, the text names Spectrum-Exp.",
        "STS-B's low correlations and its printed isotropy fit scores rounded to six classes.",
        "According to the paper, RoBERTa's learning rate on SST-2 and STS-B differs from the others, but both are printed as 1e-5.",
        "The paper does not name its checkpoints (cased or uncased, base).",
        FLOW_DIFFERS,
    ),
    claims=(
        Claim(
            "No calibration method is consistently better than the uncalibrated model.",
            none_is_better(metric_of, "Table 1"),
            about_performance=True,
        ),
        Claim(
            "Spectrum control degrades performance severely in some cases, or prevents learning.", spectrum_hurts, True
        ),
        Claim(
            "CosReg does “not affect performance much”.",
            stays("Table 1", [metric_of], "cosreg"),
            about_performance=True,
        ),
        Claim(
            "Flow does “not affect performance much”.", stays("Table 1", [metric_of], "flow"), about_performance=True
        ),
    ),
    quick="demo/tiny-bert on 3 demo tasks, 1,000 to 2,000 training rows, 3 epochs, 5 methods, 3 seeds",
    full="BERT, RoBERTa and DistilBERT on 9 GLUE tasks, 4 methods and Flow on BERT, 3 seeds",
    grid=UNDERSTAND,
    tables=(
        tasks_table(
            "Performance by method",
            {method: (method_title(method), "") for method in ORDER},
            f"{SPREAD}, collapsed runs left out.",
            metric=metric_of,
        ),
    ),
    compared=Compared(MODELS),
)

# ---------------------------------------------------------------------------------------------------- Table 4


def _i1_and_performance(runs: Evidence, metric: str) -> Iterator[judging.Numbers]:
    for _, part in _by_method(runs):
        if not any(map(judging.without_effect, part.planned)):
            yield part.cell("i1").mean, part.cell(metric_of(part.planned[0].task)).mean


TABLE_4: Final = TrainedStudy(
    slug="calibration-table-4",
    title="Does calibration make the output layer isotropic?",
    summary="I1 (1 is most isotropic) and I2 (0 is) of the output layer's rows after fine-tuning with each method; the runs are those of "
    "Table 1.",
    open_points=(
        "The printed pairs are impossible under the printed formulas: I1 = 0.92 allows an I2 of at most 0.042. They fit rows in place "
        "of columns of the eigenvector matrix and no division by the number of vectors. Ours follow the formulas.",
        "I1 and I2 depend on the scale of the weight: shrinking it drives I1 to 1 and I2 to 0. The length of the weight is shown with "
        "them, because the printed gain of spectrum control is that of a weight that vanishes.",
        "On tasks with two or three labels the output layer has two or three rows; its isotropy says little.",
        "Several printed cells are swapped or lack a digit (RoBERTa on MNLI and QQP); two columns of DistilBERT agree on five tasks.",
    ),
    claims=(
        Claim(
            "Spectrum control makes the output embeddings more isotropic.",
            lambda evidence: judging.moved(_changes(evidence, "i1", judging.SPECTRUM), _opening("i1"), of="most"),
        ),
        Claim(
            "CosReg and Flow hardly change the isotropy of the output embeddings.",
            stays("Table 4", ["i1"], "cosreg", "flow"),
        ),
        Claim(
            "Where isotropy rises, performance falls.",
            judging.trend("of I1 with performance", -1, _i1_and_performance),
            about_performance=True,
        ),
    ),
    quick=f"the runs of Table 1: {TABLE_1.quick}",
    full=f"the runs of Table 1: {TABLE_1.full}",
    grid=UNDERSTAND,
    tables=(
        rows_table(
            "Isotropy of the output layer",
            ["method", "I1", "I2", "norm of the weight"],
            lambda runs, metric: (
                [method_title(method), *part.texts("i1", "i2", "weight_norm")] for method, part in _by_method(runs)
            ),
            f"{SPREAD}, collapsed runs included; Frobenius norm.",
            by=("model", "task"),
        ),
    ),
    compared=Compared(MODELS),
)

# ---------------------------------------------------------------------------------------------------- Tables 2, 3 and 5


def spectrum_trades(metric: str) -> Judge:
    """I1 up, and the score down, beyond chance."""
    return lambda evidence: judging.both(
        judging.moved(_changes(evidence, "i1", judging.SPECTRUM), _opening("i1")),
        judging.moved(_changes(evidence, metric, judging.SPECTRUM), _opening(metric), direction=-1),
    )


def flow_is_slow(evidence: Evidence) -> judging.Judgement:
    """Flow's time per epoch over that of none, on the same set: the 95 % interval of the geometric mean against `MANY_TIMES`."""
    ratios = _changes(evidence, "minutes_per_epoch", ("flow",), values=_log_values)
    if not any(ratio.tested for ratio in ratios):
        return judging.TOO_FEW
    texts = [
        f"{_times(ratio.mean)} times as long ([{', '.join(map(_times, ratio.ends))}], {len(ratio.values)} seeds)"
        for ratio in ratios
    ]
    sentence = (
        f"An epoch with Flow takes {'; '.join(texts)} as one without, on the same rows and machine. The claim needs an interval above "
        f"{MANY_TIMES:g}."
    )
    if all(ratio.ends[0] > math.log(MANY_TIMES) for ratio in ratios):
        return "held", sentence
    return ("not held" if any(ratio.ends[1] < math.log(MANY_TIMES) for ratio in ratios) else "cannot tell"), sentence


def _log_values(part: Evidence, metric: str) -> dict[int, float]:
    return {seed: math.log(value) for seed, value in part.cell(metric).values.items() if value > 0}


def _times(log_ratio: float) -> str:
    return f"{math.exp(log_ratio):.1f}"


def same_pattern(evidence: Evidence) -> judging.Judgement:
    """Spearman's ρ of ROUGE-1 with ROUGE-L over methods, within training sets."""
    settings = (
        (name, part.cell("rouge1").mean, part.cell("rougeL").mean)
        for name, runs in sets(evidence)
        for _, part in _by_method(runs)
    )
    return judging.goes_with(settings, "of ROUGE-1 with ROUGE-L", 1)


FLOW_IS_SLOW: Final = Claim("Flow takes many times as long per epoch.", flow_is_slow)


def _of_set(cell: Printed, evidence: Evidence) -> Evidence:
    parts = dict(sets(evidence))
    return parts.get("small set" if cell.model.endswith(SMALL) else "", evidence).where(method=cell.method)


def _writing_study(number: int, *metrics: str, **declared: Any) -> TrainedStudy:
    """A study whose table has a row for each task, training set and method.

    Args:
        number: of the table.
        metrics: columns.
    """

    def rows(runs: Evidence, metric: str) -> Iterable[Row]:
        for name, part in sets(runs):
            for method, of_method in _by_method(part):
                yield [", ".join(filter(None, (method_title(method), name))), *of_method.texts(*metrics)]

    return TrainedStudy(
        slug=f"calibration-table-{number}",
        tables=(
            rows_table(
                f"Table {number}: scores, isotropy of the vocabulary and time",
                ["method", *(NAMES[metric] for metric in metrics)],
                rows,
                f"{SPREAD}. Minutes per epoch hold measuring and evaluation after each epoch.",
                by=("model", "task"),
            ),
        ),
        compared=Compared(WRITERS, _of_set),
        **declared,
    )


OF_ALL: Final = (
    "The printed pairs of I1 and I2 are impossible under the printed formulas; ours follow the formulas.",
    "The strengths and decays of spectrum control and everything about Flow are not given.",
    "Warm-up, decoding and the number of validation rows are not given. Here: greedy decoding.",
    "The time is that of one machine: compare it within a table only.",
    FLOW_DIFFERS,
)

TABLE_2: Final = _writing_study(
    2,
    "bleu",
    "i1",
    "i2",
    "minutes_per_epoch",
    title="Does isotropy calibration help translation?",
    summary="BLEU, I1 and I2 of the vocabulary, and minutes per epoch with each method; Flow on a small training set only, beside plain "
    "fine-tuning on the same set.",
    open_points=OF_ALL,
    claims=(
        Claim("CosReg changes neither BLEU nor isotropy.", stays("Table 2", ["bleu", "i1"], "cosreg"), True),
        Claim(
            "Flow “yields comparable BLEU score to the uncalibrated model”.",
            stays("Table 2", ["bleu"], "flow"),
            about_performance=True,
        ),
        Claim(
            "Spectrum control makes the vocabulary more isotropic and costs BLEU.",
            spectrum_trades("bleu"),
            about_performance=True,
        ),
        FLOW_IS_SLOW,
    ),
    quick="demo/tiny-bart on demo/translation, 1,500 training rows, 500 for Flow, 3 epochs, 3 seeds",
    full="mBART on WMT16 English to Romanian and German to English, 50,000 rows for Flow, 3 seeds",
    grid=TRANSLATE,
)

TABLE_3: Final = _writing_study(
    3,
    "rouge1",
    "i1",
    "i2",
    "minutes_per_epoch",
    title="Does isotropy calibration help summarization?",
    summary="ROUGE-1, I1 and I2 of the vocabulary, and minutes per epoch with each method; Flow on a small set only.",
    open_points=(
        *OF_ALL,
        "The paper does not say which ROUGE-L it prints; its ratio to ROUGE-1 fits the one that ignores line breaks.",
    ),
    claims=(
        Claim(
            "No calibrated model is significantly better in ROUGE-1.",
            none_is_better("rouge1", "Table 3"),
            about_performance=True,
        ),
        Claim("CosReg “does not affect performance nor isotropy”.", stays("Table 3", ["rouge1", "i1"], "cosreg"), True),
        Claim(
            "Flow “performs comparably to uncalibrated BART”.",
            stays("Table 3", ["rouge1"], "flow"),
            about_performance=True,
        ),
        Claim(
            "Spectrum control makes the vocabulary more isotropic at the cost of ROUGE-1.",
            spectrum_trades("rouge1"),
            about_performance=True,
        ),
        FLOW_IS_SLOW,
    ),
    quick="demo/tiny-bart on demo/summarization, 1,000 training rows, 600 for Flow, 3 epochs, 3 seeds",
    full="BART on CNN/DailyMail, 20,000 rows for Flow, 3 seeds",
    grid=SUMMARIZE,
)

TABLE_5: Final = _writing_study(
    5,
    "rouge1",
    "rouge2",
    "rougeL",
    "i1",
    "i2",
    "minutes_per_epoch",
    title="Do ROUGE-2 and ROUGE-L tell the same?",
    summary="Table 3 with ROUGE-2 and ROUGE-L; the runs are the same.",
    open_points=TABLE_3.open_points,
    claims=(
        Claim("ROUGE-2 and ROUGE-L follow the pattern of ROUGE-1.", same_pattern, about_performance=True),
        Claim(
            "No calibrated model is significantly better in ROUGE-L.",
            none_is_better("rougeL", "Table 5"),
            about_performance=True,
        ),
    ),
    quick=f"the runs of Table 3: {TABLE_3.quick}",
    full=f"the runs of Table 3: {TABLE_3.full}",
    grid=SUMMARIZE,
)

STUDIES: Final = (TABLE_1, TABLE_2, TABLE_3, TABLE_4, TABLE_5)
