"""The clouds behind IsoBN's figures: an encoder's first-token vectors over a training set, and their numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from isoviz.errors import DataError, InputError, ModelError
from isoviz.studies.inputs import NamedModel
from isoviz.studies.study import Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isoviz.models.sources import ModelSource
    from isoviz.models.views import Pooling, Views
    from isoviz.tasks.protocol import Task

BETA: Final = 1.0
MAX_LENGTH: Final = 256
"""Most tokens read of a row, as in the authors' code."""
TANH_POOLERS: Final = ("pooler", "dense")
"""Kinds of heads (`isoviz.models.families`) with a dense layer and tanh on the first token."""
STATE, POOLER = "[CLS] state", "pooler output"


@dataclass(frozen=True)
class Cloud:
    """The numbers drawn for one cloud, and its origin.

    Attributes:
        model, task, tensor: the encoder by its public name, the task, and which vector of a row it is.
        n, d: points and dimensions.
        sigma: (d,) population standard deviations.
        correlation: (d, d) |ρ| in its clustered order.
        spectra: none, BN or IsoBN → EV_1 … EV_K of that form; empty for a cloud without variance.
        tiny: dimensions with σ of at most 1e-6 of the median σ.
    """

    model: str
    task: Task
    tensor: str
    n: int
    d: int
    sigma: NDArray[np.float64]
    correlation: NDArray[np.float64]
    spectra: Mapping[str, list[float]]
    tiny: int

    @property
    def title(self) -> str:
        """Title of a panel; without the encoder's owner, because panels are narrow."""
        return f"{self.task.title}, {self.tensor}\n{self.model.rsplit('/', 1)[-1]}, n = {self.n:,}, d = {self.d}"


def measure(points: NDArray[Any], model: str, task: Task, tensor: str) -> Cloud:
    """Numbers of a cloud (n, d) for the three figures; both transforms are fitted on the cloud."""
    import numpy as np

    from isoviz import metrics, posthoc

    n, d = points.shape
    correlation = np.asarray(metrics.abs_correlation(points))
    order = np.asarray(metrics.correlation_order(correlation))
    normalised = posthoc.batch_norm().fit(points)
    forms = {
        "none": points,
        "BN": normalised.transform(points),
        "IsoBN": posthoc.isobn(beta=BETA).fit(points).transform(points),
    }
    # the K of Figure 4: the paper takes 50 for BERT-base (d = 768) and 200 for RoBERTa-large (d = 1024)
    count = min(200 if d >= 1024 else 50, n, d)
    spectra = {form: np.asarray(metrics.explained_variance(x, k=count)).tolist() for form, x in forms.items()}
    return Cloud(
        model=model,
        task=task,
        tensor=tensor,
        n=n,
        d=d,
        sigma=np.asarray(metrics.dimension_std(points)),
        correlation=correlation[np.ix_(order, order)],
        spectra={form: ev for form, ev in spectra.items() if np.isfinite(ev).all()},
        tiny=normalised.tiny_dimensions,
    )


def tensors_of(source: ModelSource) -> dict[str, Pooling]:
    """The vectors shown for a row: the first token's last state, and the pooler's output if it has weights.

    Raises:
        ModelError: the model has no first token that represents the text.
    """
    from isoviz.models import checkpoint, folders
    from isoviz.models.families import CLASSIFIERS
    from isoviz.models.views import poolings_of

    config = folders.config_of(Path(source.location)) or {}
    if "cls" not in poolings_of(config):
        raise ModelError.at("model", "this study reads the first token of an encoder; this model has none")
    pooling_of: dict[str, Pooling] = {STATE: "cls"}
    pools = CLASSIFIERS.get(str(config.get("model_type"))) in TANH_POOLERS
    if pools and checkpoint.untrained_pooling(source) is None:
        pooling_of[POOLER] = "head"
    return pooling_of


@dataclass(frozen=True)
class Encoded:
    """One encoder on one task: its clouds, and the notes for the record."""

    model: NamedModel
    task: Task
    clouds: tuple[Cloud, ...]
    notes: tuple[str, ...]


def encode(
    models: Sequence[NamedModel], tasks: Sequence[str], data: Mapping[str, str], rows: int | None, progress: Progress
) -> tuple[list[Encoded], dict[str, Any]]:
    """Every encoder on the training set of every task, and the settings for the record. Imports torch.

    Args:
        data: task → the folder with its files.
        rows: most rows of a training set, a random sample that is the same for every run; None for all.
    """
    from isoviz.models import sources

    resolved = [(model, sources.resolve(model.source)) for model in models]
    read = list(_loaded(tasks, data, rows))
    encoded: list[Encoded] = []
    prints: dict[str, str] = {}
    for model, source in resolved:
        for task, texts, _ in read:

            def report(share: float, activity: str, at: int = len(encoded), title: str = task.title) -> None:
                progress((at + share) / (len(resolved) * len(read)), f"{title}: {activity}")

            one, prints[model.name] = _encode(model, source, task, texts, report)
            encoded.append(one)
    progress(1.0, "done")
    return encoded, {
        "models": [{"name": name, "fingerprint": mark} for name, mark in prints.items()],
        "tasks": [{"slug": task.slug, "rows": len(texts[0]), "fingerprint": mark} for task, texts, mark in read],
    }


def _loaded(slugs: Sequence[str], data: Mapping[str, str], rows: int | None) -> Iterator[tuple[Task, list[Any], str]]:
    """Task, its text columns and the data's fingerprint, each checked before anything is computed."""
    from isoviz import tasks

    if strangers := [slug for slug in data if slug not in slugs]:
        raise InputError.at("data", f"'{strangers[0]}' is not among the tasks of this run ({', '.join(slugs)})")
    for slug in slugs:
        task = tasks.get(slug)
        if not task.rules.per_row:
            raise InputError.at("tasks", f"'{slug}' is not about a text or a pair of texts as a whole")
        data_of_task = tasks.load(task, data.get(slug), max_train=rows)
        if len(data_of_task.train) < 2:
            raise DataError.at("data", f"'{slug}' has fewer than 2 training rows")
        yield task, [data_of_task.train[column].tolist() for column in task.inputs], data_of_task.fingerprint


def _encode(
    model: NamedModel, source: ModelSource, task: Task, texts: Sequence[Sequence[str]], progress: Progress
) -> tuple[Encoded, str]:
    """Encode a training set, one or two columns of n texts, and measure its clouds; with the model's fingerprint."""
    from isoviz.models import checkpoint, hub, sources
    from isoviz.models.extract import layer_views

    source = sources.fetch(source, lambda done, total, activity: progress(0.0, hub.in_words(done, total, activity)))
    tensors = tensors_of(source)
    views: Views = layer_views(
        source,
        texts,
        poolings=tuple(tensors.values()),
        layers="last",
        max_length=MAX_LENGTH,
        progress=lambda done, total, activity: progress(0.9 * done / total, activity),
    )
    with warnings.catch_warnings(record=True) as caught:  # the record keeps the warnings of metrics
        warnings.simplefilter("always")
        clouds = tuple(
            measure(views.points(views.depth, pooling), model.name, task, tensor) for tensor, pooling in tensors.items()
        )
    notes = [f"{task.title}: {note}." for note in (*views.warnings, *(str(warning.message) for warning in caught))]
    if POOLER in tensors and (doubt := checkpoint.pooling_as_initialised(source)):
        notes.append(f"{model.name}: {doubt}.")
    return Encoded(model, task, clouds, tuple(dict.fromkeys(notes))), source.fingerprint
