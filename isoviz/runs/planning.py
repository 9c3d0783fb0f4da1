"""From choices to runs: expand models × tasks × methods × parameters × seeds, and check everything before creating runs."""

from __future__ import annotations

import functools
import itertools
import math
import shlex
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isoviz import devices, input_validation, methods, tasks
from isoviz.config import NO_TRACKER, RunConfig
from isoviz.demo import recorded_demo
from isoviz.errors import InputError, shortened
from isoviz.hub import cache_folder
from isoviz.models import families, prefixes, sources
from isoviz.models.sources import ModelSource
from isoviz.parameters import ParamValue
from isoviz.runs import launch
from isoviz.tasks import own as own_data
from isoviz.tasks.kinds import Embedding
from isoviz.tasks.metrics import METRICS
from isoviz.tasks.protocol import OwnTask, Task
from isoviz.training import tracking

MAX_RUNS = 2000
"""Most runs per launch; more are probably a typo."""

PRIMARY = "primary"
"""Value for `early_stopping`: the task's primary metric."""
MethodChoice = tuple[str, Mapping[str, Any]]
"""A method's slug and its parameters, each a value or a list of values to sweep."""


@dataclass(frozen=True)
class DataChecks:
    """Functions that read the files of a plan's data: in this process, or for pages in another one.

    Attributes:
        complete: data, columns of own data → the columns with kind and classes filled in.
        read: task, data, direction, most training rows, most validation rows → nothing; raises like `isoviz.tasks.load`.
    """

    complete: Callable[[str | None, OwnTask], OwnTask] = own_data.completed
    read: Callable[[Task, str | None, str | None, int | None, int | None], object] = tasks.load


IN_THIS_PROCESS = DataChecks()


@dataclass(frozen=True)
class Preset:
    """A ready-made plan: keyword arguments of `expand`, with title and summary."""

    slug: str
    title: str
    summary: str
    plan: Mapping[str, Any] = field(repr=False)


_DEMO = recorded_demo()  # by `factory/record_presets.py`
# on 1,000 rows of demo/sentiment nothing is learned
_SMALL = {"models": ["demo/tiny-bert"], "tasks": ["demo/acceptability"], "max_train": 1000, "max_length": 48}
PRESETS: tuple[Preset, ...] = (
    Preset(
        slug="demo",
        title="60-second demo",
        summary="Plain fine-tuning, IsoBN and I-STAR side by side on the bundled model: three runs"
        + (f", measured at {_DEMO['seconds']:.0f} s on {_DEMO['cores']} cores." if _DEMO else "."),
        plan={
            **_SMALL,
            "methods": [("baseline", {}), ("isobn", {"beta": 0.5}), ("istar", {"lam": 1.0})],
            "seeds": [0],
            "epochs": 3,
        },
    ),
    Preset(
        slug="lambda-sweep",
        title="λ sweep: does isotropy help?",
        summary="I-STAR from less isotropic (λ < 0) to more (λ > 0), three seeds each, against plain fine-tuning.",
        plan={
            **_SMALL,
            "methods": [("baseline", {}), ("istar", {"lam": [-3.0, -1.0, -0.5, 0.5, 1.0, 3.0, 5.0]})],
            "seeds": [0, 1, 2],
            "epochs": 4,
        },
    ),
    Preset(
        slug="isobn",
        title="IsoBN against none, 5 seeds",
        summary="Is the difference larger than the spread between seeds? Five pairs that share data order and initial weights.",
        plan={
            **_SMALL,
            "methods": [("baseline", {}), ("isobn", {"beta": 0.5})],
            "seeds": [0, 1, 2, 3, 4],
            "epochs": 4,
        },
    ),
)


def default_learning_rate(model: str) -> float:
    """Default learning rate: higher for small encoders."""
    return 6e-4 if model in sources.bundled() else 5e-5


def expand(
    models: Sequence[str],
    tasks: Sequence[str],
    methods: Sequence[MethodChoice],
    seeds: Sequence[int],
    *,
    data: str | None = None,
    learning_rate: float | None = None,
    own: OwnTask | None = None,
    checks: DataChecks = IN_THIS_PROCESS,
    trains_here: bool = True,
    **common: Any,
) -> list[RunConfig]:
    """All runs of a plan, validated and resolved (precision, threads), in an order that pairs methods seed by seed.

    Args:
        models, tasks: names; `data` is the folder for tasks that read files (or one file with the user's data).
        methods: (slug, parameters); a parameter may be a list of values.
        seeds: one run per seed.
        learning_rate: None for the model's default.
        own: the columns of the task `own`; missing kind and classes are inferred from the files.
        checks: functions that read the files of data.
        trains_here: whether this machine must have the devices that the runs need.
        common: other `RunConfig` fields.

    Raises:
        InputError: the first invalid value, with its field.
    """
    for what, values in (("model", models), ("task", tasks), ("method", methods), ("seed", seeds)):
        if not values:
            raise InputError.at(what, "choose at least one")
    if len(set(seeds)) != len(seeds):
        raise InputError.at("seed", f"name each seed once (got {' '.join(map(str, seeds))})")
    combinations = sum(math.prod(len(values) for _, values in _axes(choices)) for _, choices in methods)
    total = len(models) * len(tasks) * combinations * len(seeds)
    if total > MAX_RUNS:  # counted before it is built
        raise InputError.at("method", f"this would start {total} runs (at most {MAX_RUNS} at once)")
    variants = [variant for slug, choices in methods for variant in grid(slug, choices)]
    common = {**common, "precision": common.get("precision", "auto"), "threads": common.get("threads", 0)}
    for model in models:  # cheap checks of every field come before the slow ones that read files
        RunConfig.checked(model=model, learning_rate=_rate(model, learning_rate), **common)
    for seed in seeds:
        RunConfig.checked(seed=seed)
    tracking.check(common.get("report_to", NO_TRACKER))
    if not common.get("lora_rank"):  # without LoRA, its settings have no effect and must not distinguish setups
        common = {name: value for name, value in common.items() if not name.startswith("lora_")}
    folder = str(input_validation.path(data, "data").resolve()) if data else None
    known = {slug: _task(slug, folder, own, checks) for slug in tasks}
    if folder is not None and all(task.generated for task in known.values()):
        slug = next(iter(known))
        raise InputError.at("data", f"'{slug}' has its own rows and takes no data folder; omit it")
    for task in known.values():
        _watched(task, common.get("early_stopping"))
        task.checked_direction(common.get("direction"))
        _check_head(models, variants, task)
        _loss(task, common)
        _check_low_rank(variants, task, common)
    model_sources = {model: sources.resolve(model) for model in models}
    for source in model_sources.values():
        widest, wanted = sources.configuration(source).get("hidden_size"), RunConfig.checked(**common).prefixes
        if wanted and widest and not 0 < wanted[-1] <= wanted[0] < widest:
            raise InputError(
                f"widths: must be below the {widest} dimensions of '{source.name}' (got {common['widths']})",
                field="widths",
            )
    embeds = all(task.kind == "embedding" for task in known.values())
    poolings = {model: _pooling(source, common, embeds) for model, source in model_sources.items()}
    longest = {model: _longest(source, common.get("max_length")) for model, source in model_sources.items()}
    if trains_here and common["precision"] == "fp16" and not devices.describe().on_gpu:
        raise InputError.at("precision", "fp16 needs a GPU, and this machine has none (allowed here: auto, no, bf16)")
    for task in known.values():
        _check_rows(task, folder, common, checks)
    common["precision"] = devices.resolve_precision(common["precision"])
    common |= launch.resolve(common, devices.describe() if trains_here else None)
    common["threads"] = common["threads"] or max(1, devices.describe().cores // common["processes"])
    return [
        RunConfig.checked(
            model=model,
            task=task.slug,
            data=None if task.generated else folder,
            own=task.own,
            method=slug,
            params=params,
            seed=seed,
            learning_rate=_rate(model, learning_rate),
            **{
                **common,
                "max_length": longest[model],
                "pooling": poolings[model],
                "loss": _loss(task, common),
                **({"batching": "shuffled"} if task.kind == "embedding" and "batching" not in common else {}),
                "early_stopping": _watched(task, common.get("early_stopping")),
                "doc_stride": _stride(task, longest[model], common.get("doc_stride")),
                "direction": task.checked_direction(common.get("direction")) or None,
                "prefix": _prefix(model_sources[model], task, common),
            },
        )
        for model, task, seed, (slug, params) in itertools.product(models, known.values(), seeds, variants)
    ]


def more_seeds(configs: Iterable[RunConfig], count: int) -> list[RunConfig]:
    """Every setup of these runs with the same `count` seeds that none of them has, seed by seed, so that they stay paired.

    Seeds go up from the largest one.
    """
    setups: dict[str, RunConfig] = {}
    largest = -1
    for config in configs:
        setups.setdefault(config.setup_key(), config)
        largest = max(largest, config.seed)
    seeds = range(largest + 1, largest + 1 + count)
    return [config.model_copy(update={"seed": seed}) for seed in seeds for config in setups.values()]


def parse_grid(text: str) -> tuple[str, list[str]]:
    """`lam=-1,0,1` → ("lam", ["-1", "0", "1"]). Values must not be empty."""
    name, separator, values = text.partition("=")
    parts = [part.strip() for part in values.split(",")]
    if not separator or not name.strip() or not all(parts):
        raise InputError(f"expected name=value[,value...], no value empty (got '{shortened(text)}')", field="grid")
    return name.strip(), parts


def command(configs: Iterable[RunConfig]) -> str:
    """The command lines that start the same runs."""
    groups: dict[str, list[RunConfig]] = {}
    for config in configs:
        key = config.model_copy(update={"seed": 0, "params": {}}).model_dump_json()
        groups.setdefault(key, []).append(config)
    return "\n".join(line for group in groups.values() for line in _lines(group))


def _rate(model: str, learning_rate: float | None) -> float:
    return default_learning_rate(model) if learning_rate is None else learning_rate


def _pooling(source: ModelSource, common: Mapping[str, Any], embeds: bool) -> str:
    """A decoder's pooling, its default resolved; other models have their own, unless they are trained for embeddings. `InputError` for
    a setting that does not apply."""
    requested: str = common.get("pooling", "auto")
    if embeds:
        return requested
    if requested == "cls":
        raise InputError.at("pooling", "cls is for embedding tasks (allowed: auto, last, mean)")
    if families.architecture(sources.configuration(source)) == "decoder":
        return "last" if requested == "auto" else requested
    if requested != "auto":
        raise InputError.at("pooling", f"for decoders only, and '{source.name}' is none; leave it at its default")
    return requested


def _longest(source: ModelSource, requested: int | None) -> int:
    """The longest input of a run: the requested length if the model can read it, else the default or the model's limit."""
    limit = sources.longest_input(source)
    default: int = RunConfig.model_fields["max_length"].default
    if requested is None:
        return default if limit is None else min(default, limit)
    if limit is not None and requested > limit:
        raise InputError.at("max_length", f"'{source.name}' reads at most {limit} tokens (got {requested})")
    return requested


def _prefix(source: ModelSource, task: Task, common: Mapping[str, Any]) -> str | None:
    direction = task.checked_direction(common.get("direction")) or None
    texts = task.columns if task.kind == "embedding" else task.inputs
    return prefixes.resolve(common.get("prefix"), sources.configuration(source), task.slug, texts, direction)


def _stride(task: Task, longest: int, requested: int | None) -> int:
    """The overlap of a long context's windows: the requested one if windows are longer, else the default, or half of short windows."""
    default: int = RunConfig.model_fields["doc_stride"].default
    if task.kind != "span":
        return default if requested is None else requested
    if requested is None:
        return min(default, longest // 2)
    if requested >= longest:
        raise InputError.at("doc_stride", f"must be less than max_length, {longest} (got {requested})")
    return requested


def _loss(task: Task, common: Mapping[str, Any]) -> str:
    """The loss of an embedding task, its default resolved; `InputError` for one that does not fit the task."""
    requested: str = common.get("loss", "auto")
    allowed, reason = (Embedding.losses, "has scores") if task.label else (("infonce",), "has no scores")
    if task.kind != "embedding":
        allowed, reason = ("auto",), "is no embedding task"
        if common.get("widths"):
            raise InputError(f"widths: '{task.slug}' is no embedding task", field="widths")
    if requested not in ("auto", *allowed):
        raise InputError.at("loss", f"'{task.slug}' {reason} (got {requested}, allowed: {', '.join(allowed)})")
    if allowed == ("infonce",) and common.get("batch_size", 2) < 2:
        raise InputError.at("batch_size", "infonce compares each row with the others of its batch; at least 2")
    return allowed[0] if requested == "auto" else requested


def _check_head(models: Sequence[str], variants: Sequence[MethodChoice], task: Task) -> None:
    for slug, params in variants:
        method = methods.get(slug)
        method.check_kind(task.kind)
        if task.kind == "embedding" and method(method.Params(**params)).regularises_output():
            raise InputError.at("method", f"'{slug}' acts on the output layer, which embeddings do not have")
    for model in models:
        sources.resolve(model, task.kind)


def _check_low_rank(variants: Sequence[MethodChoice], task: Task, common: Mapping[str, Any]) -> None:
    if not common.get("lora_rank"):
        if common.get("dtype", "auto") != "auto":
            raise InputError.at("dtype", "only with LoRA (lora_rank), which freezes weights")
        return
    if task.kind != "seq2seq":
        return  # the output layer trains completely
    for slug, params in variants:
        method = methods.get(slug)
        if method(method.Params(**params)).regularises_output():
            raise InputError.at(
                "method",
                f"'{slug}' acts on the output layer's weights, which LoRA freezes on '{task.slug}'; set lora_rank to 0",
            )


def _task(slug: str, folder: str | None, own: OwnTask | None, checks: DataChecks) -> Task:
    if slug != tasks.OWN or own is None:
        return tasks.get(slug, own if slug == tasks.OWN else None)
    stamps = _stamps([path for paths in own_data.find(folder).values() for path in paths])
    return tasks.get(slug, _complete_once(folder, own, checks, stamps))


def _watched(task: Task, early_stopping: str | None) -> str | None:
    if not early_stopping:
        return None
    metric, patience = early_stopping.rsplit(":", 1)
    if metric == PRIMARY:
        return f"{task.primary}:{patience}"
    rising = [name for name in task.metrics if METRICS[name].higher_is_better]  # training waits for a higher value
    if metric not in rising:
        allowed = ", ".join((PRIMARY, *rising))
        raise InputError.at("early_stopping", f"'{task.slug}' has no metric '{metric}' to watch (allowed: {allowed})")
    return early_stopping


Stamps = tuple[tuple[str, int, int], ...]
_HUB_SECONDS = 900
"""Seconds for which a hub data set counts as unchanged."""


def _stamps(paths: Iterable[Path]) -> Stamps:
    return tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths)


def _check_rows(task: Task, folder: str | None, common: Mapping[str, Any], checks: DataChecks) -> None:
    if task.generated:
        return  # generated data is always valid
    read = (common.get("direction"), common.get("max_train"), common.get("max_eval"))
    if folder is None:
        stamps: Stamps = ((str(cache_folder()), 0, int(time.monotonic() // _HUB_SECONDS)),)
    else:
        stamps = _stamps(tasks.files_of(task, folder))
    _load_once(task, folder, read, checks, stamps)


@functools.lru_cache(maxsize=32)
def _load_once(
    task: Task, folder: str | None, read: tuple[str | None, int | None, int | None], checks: DataChecks, stamps: Stamps
) -> None:
    """Read and check rows; cached while the files are unchanged, because a form calls this at every keystroke."""
    checks.read(task, folder, *read)


@functools.lru_cache(maxsize=32)
def _complete_once(folder: str | None, own: OwnTask, checks: DataChecks, stamps: Stamps) -> OwnTask:
    return checks.complete(folder, own)


def _axes(choices: Mapping[str, Any]) -> list[tuple[str, Sequence[Any]]]:
    return [(name, value if isinstance(value, (list, tuple)) else [value]) for name, value in choices.items()]


def grid(slug: str, choices: Mapping[str, Any]) -> list[tuple[str, dict[str, ParamValue]]]:
    """The method's canonical slug, with a fixed order in combinations, with each distinct choice of parameters."""
    axes = _axes(choices)
    for name, values in axes:
        if not values:
            raise InputError(f"params.{name}: enter at least one value", field=f"params.{name}")
    names = [name for name, _ in axes]
    distinct: list[dict[str, ParamValue]] = []
    for point in itertools.product(*(values for _, values in axes)):
        params = methods.check_params(slug, dict(zip(names, point, strict=True)))
        if params not in distinct:
            distinct.append(params)
    return [(methods.get(slug).slug, params) for params in distinct]


def _lines(group: Sequence[RunConfig]) -> list[str]:
    """One `train` or `sweep` line for runs that differ in parameters and seeds only; several if they do not form a full grid."""
    seeds = sorted({config.seed for config in group})
    default = methods.get(group[0].method).Params().model_dump()
    points = {tuple(sorted(config.params.items())) for config in group}
    varying = {name: list(dict.fromkeys(c.params[name] for c in group)) for name in default}
    size = math.prod(map(len, varying.values()))
    if len(group) == size * len(seeds) == len(points) * len(seeds):
        grids = {name: values for name, values in varying.items() if len(values) > 1}
        fixed = {name: values[0] for name, values in varying.items() if len(values) == 1 and values[0] != default[name]}
        return [_line(group[0], fixed, grids, seeds)]
    return [
        _line(config, {n: v for n, v in config.params.items() if v != default[n]}, {}, [config.seed])
        for config in group
    ]


def _line(
    config: RunConfig, fixed: Mapping[str, ParamValue], grids: Mapping[str, Sequence[ParamValue]], seeds: Sequence[int]
) -> str:
    words = ["python", "-m", "isoviz", "sweep" if grids else "train"]
    words += ["--model", config.model, "--task", config.task]
    if config.data:
        words += ["--data", config.data]
    for name, option in OWN_OPTIONS.items() if config.own else ():
        value = getattr(config.own, name)
        if value and value != OwnTask.model_fields[name].default:
            words += [option, *value] if name == "label_names" else [option, str(value)]
    words += ["--method", config.method]
    for name, value in fixed.items():
        words += ["--set", f"{name}={value}"]
    for name, values in grids.items():
        words += ["--grid", f"{name}=" + ",".join(str(value) for value in values)]
    words += ["--seeds", *(str(seed) for seed in seeds)]
    for name, option in OPTIONS.items():
        value = getattr(config, name)
        default = (
            default_learning_rate(config.model) if name == "learning_rate" else RunConfig.model_fields[name].default
        )
        if value is not None and value != default:
            words += [option] if value is True else [option, str(value)]
    return shlex.join(words)


def _options(names: Iterable[str]) -> dict[str, str]:
    return {name: "--" + name.replace("_", "-") for name in names}


OWN_OPTIONS: Mapping[str, str] = _options(OwnTask.model_fields)
"""Field of `RunConfig.own` → its option on the command line."""
_AXES = frozenset({"version", "model", "task", "data", "own", "method", "params", "seed"})
OPTIONS: Mapping[str, str] = {
    **_options(name for name in RunConfig.model_fields if name not in _AXES),
    "learning_rate": "--lr",
}
"""Configuration field → its option on the command line; those that span a plan have options of their own."""
