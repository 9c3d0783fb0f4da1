"""The vectors before the head of a finished run, from one pass of its weights over its rows in evaluation mode, with labels, predictions
and the frozen head."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from isoviz import devices, tasks
from isoviz.config import RunConfig
from isoviz.demo import EXAMPLE
from isoviz.errors import InputError
from isoviz.exploring.jobs import PREPARE
from isoviz.jobs.kinds import ENCODERS, Job, JobKind
from isoviz.jobs.results import ARRAYS, FACTS
from isoviz.readouts.heads import FrozenHead, HeadRows, primary
from isoviz.readouts.reading import Annotations
from isoviz.tasks import metrics as task_metrics
from isoviz.training.weights import epoch_of, fingerprint
from isoviz.whatif.layer import IsoLayerTransform
from isoviz.whatif.request import STORE, EncodingRequest, refuse_kind, request_for

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from isoviz.models.adapter import HeadedModel
    from isoviz.runs.store import Store
    from isoviz.training.heads import Head

Cloud = Literal["head", "pooled"]
CLOUDS: tuple[Cloud, ...] = ("head", "pooled")


@dataclass(frozen=True)
class Embeddings:
    """One cloud of a run: the input of its output layer (`head`), or the same vectors before the method (`pooled`).

    Attributes:
        key: key of the pass.
        cloud: `head` or `pooled`.
        facts: facts of the pass: `run`, `task`, `kind`, `primary`, `rows`, `metrics`, `notes`, ...
        train, validation: (n, h) float32.
        train_labels, labels: (n,) class codes, or numbers for regression; `labels` of the validation rows.
        predicted: (n,) the run's own predictions on the validation rows.
        head: the frozen output layer.
        folder: folder of the pass.
        rows: (m,) indices of the validation rows in the run's data.
    """

    key: str
    cloud: Cloud
    facts: Mapping[str, Any] = field(repr=False)
    train: NDArray[np.float32] = field(repr=False)
    validation: NDArray[np.float32] = field(repr=False)
    train_labels: NDArray[Any] = field(repr=False)
    labels: NDArray[Any] = field(repr=False)
    predicted: NDArray[Any] = field(repr=False)
    head: FrozenHead = field(repr=False)
    folder: Path = field(repr=False, default=Path())
    rows: NDArray[np.int64] = field(repr=False, default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def differs(self) -> bool:
        """Whether the method changes the vectors, so that `head` and `pooled` differ."""
        return bool(self.facts["differs"])

    @property
    def texts(self) -> list[str]:
        """Texts of the validation rows."""
        return _texts(self.folder)

    def frozen_metric(self, points: Any) -> float | None:
        """The task's primary metric if the frozen head reads (n, h) `points` instead of `validation`."""
        return primary(self.facts["primary"], self.labels, self.head.predict(np.asarray(points, dtype=np.float64)))

    def refitted_metric(self, train_points: Any, points: Any) -> float | None:
        """The same for a head refitted on (n, k) `train_points` instead of `train`."""
        return self._head_rows.refitted(train_points, points).value

    def isolayer(self, **params: Any) -> IsoLayerTransform:
        """An untrained IsoLayer for these rows' labels, as a step of a chain."""
        return IsoLayerTransform(self._head_rows, **params)

    @property
    def annotations(self) -> Annotations:
        """What read-outs know about the validation rows."""
        return Annotations(head=self._head_rows)

    @property
    def _head_rows(self) -> HeadRows:
        facts = self.facts
        metric, seed = str(facts["primary"]), int(facts["seed"])
        return HeadRows(self.train_labels, self.labels, self.head, facts["kind"], metric, seed)


def embeddings(run: str, *, store: Store | str | Path | None = None, cloud: Cloud = "head") -> Embeddings:
    """The embeddings of a finished run: cached, or computed now and cached.

    Args:
        run: run id.
        store: a URL, a folder or an open store. Default: the command line's store.
        cloud: `head`, or `pooled` for the vectors before the method.

    Raises:
        IsoVizError: no such run, the run has not finished, or its head does not read one vector per row.
    """
    from isoviz.runs.store import Store

    if run.startswith(EXAMPLE):
        try:
            return load(run, cloud)
        except KeyError:
            raise InputError(f"run: the example '{run}' ships without embeddings", field="run") from None
    opened = store if isinstance(store, Store) else Store(store)
    request = request_for(opened.get(run), opened.folder_of(run))
    if STORE.find(request.key) is None:
        STORE.publish(request.key, *compute(request, lambda done, total, text: None))
        STORE.shrink(keep=request.key)
    return load(request.key, cloud)


def load(key: str, cloud: Cloud = "head") -> Embeddings:
    """The embeddings of a finished pass. Raises `KeyError` if it is not cached."""
    result = STORE.find(key)  # also marks it as recently used
    if result is None:
        raise KeyError(key)
    return _read(key, cloud, result.folder)


@functools.lru_cache(maxsize=4)
def _read(key: str, cloud: Cloud, folder: Path) -> Embeddings:
    from safetensors.numpy import load_file

    if cloud not in CLOUDS:
        raise InputError(f"cloud: no cloud '{cloud}' (allowed: {', '.join(CLOUDS)})", field="cloud")
    arrays = load_file(folder / ARRAYS)
    facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    facts["differs"] = "train.head" in arrays
    source = cloud if facts["differs"] else "pooled"
    return Embeddings(
        key=key,
        cloud=cloud,
        facts=facts,
        train=arrays[f"train.{source}"].astype(np.float32, copy=False),  # examples are stored in float16
        validation=arrays[f"validation.{source}"].astype(np.float32, copy=False),
        train_labels=arrays["train.labels"],
        labels=arrays["validation.labels"],
        predicted=arrays["validation.predicted"],
        head=FrozenHead(arrays["weight"], arrays["bias"], facts["kind"]),
        folder=folder,
        rows=arrays["validation.rows"],
    )


@functools.lru_cache(maxsize=4)
def _texts(folder: Path) -> list[str]:
    from safetensors import safe_open

    with safe_open(folder / ARRAYS, framework="np") as file:
        texts: list[str] = json.loads(file.get_tensor("texts").tobytes().decode())
    return texts


# ------------------------------------------------------------------------------------------------- the pass

Report = Callable[[int, int, str], None]

SPLITS: Final = ("train", "validation")
_BATCH: Final = 64


def compute(request: EncodingRequest, report: Report) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays for `isoviz.whatif.embeddings.Embeddings`.

    Raises:
        IsoVizError: the model, data or checkpoint is missing or has changed since the run.
    """
    from isoviz.training.reload import reload

    config = RunConfig.model_validate(dict(request.config))
    refuse_kind(config)
    began = time.monotonic()
    report(0, 1000, "reading the data")
    task = tasks.get(config.task, config.own)
    data = tasks.load(task, config.data, config.direction, config.max_train, config.max_eval)
    frames = {"train": _sampled(data.train, request.rows), "validation": data.validation.iloc[: request.rows]}
    notes = []
    if request.data_fingerprint and data.fingerprint != request.data_fingerprint:
        notes.append("The task's rows have changed since this run was trained.")
    epoch = epoch_of(Path(request.checkpoint))
    report(20, 1000, "loading the checkpoint")
    model, head = reload(config, Path(request.checkpoint))
    total = sum(map(len, frames.values()))

    def encode(device: torch.device) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {}
        done = 0
        for split in SPLITS:

            def report_rows(rows: int, before: int = done, split: str = split) -> None:
                share = 100 + 880 * (before + rows) // total
                report(share, 1000, f"encoding {split}, {rows} of {len(frames[split])} rows")

            encoded = _encoded(model.to(device), head, frames[split], report_rows)
            arrays |= {f"{split}.{name}": value for name, value in encoded.items()}
            done += len(frames[split])
        return arrays

    arrays = devices.where_free(encode)
    if all(np.array_equal(arrays[f"{split}.head"], arrays[f"{split}.pooled"]) for split in SPLITS):
        for split in SPLITS:
            del arrays[f"{split}.head"]  # the method does not change the vectors
    output = model.output
    arrays["weight"] = output.weight.detach().cpu().double().numpy()
    bias = output.weight.new_zeros(len(output.weight)) if output.bias is None else output.bias  # a decoder has none
    arrays["bias"] = bias.detach().cpu().double().numpy()
    texts = frames["validation"][list(task.columns)].agg(" ⏐ ".join, axis=1).tolist()
    # as the bytes of a JSON list, because a result's file holds only arrays
    arrays["texts"] = np.frombuffer(json.dumps(texts, ensure_ascii=False).encode(), dtype=np.uint8)
    values = task_metrics.compute(
        task.metrics, arrays["validation.labels"], arrays["validation.predicted"], kind=task.kind
    )
    facts = {
        "run": request.run,
        "task": task.slug,
        "kind": task.kind,
        "method": config.method,
        "primary": task.primary,
        "label_names": list(task.label_names),
        "seed": config.seed,
        "checkpoint": fingerprint(Path(request.checkpoint)),
        "epoch": epoch,
        "rows": {split: len(frames[split]) for split in SPLITS},
        "rows_of_run": {"train": len(data.train), "validation": len(data.validation)},
        "metrics": values,
        "notes": notes,
        "seconds": round(time.monotonic() - began, 3),
    }
    return facts, arrays


def _encoded(
    model: HeadedModel, head: Head, frame: pd.DataFrame, report_rows: Callable[[int], None]
) -> dict[str, NDArray[Any]]:
    """`pooled` and `head` (n, h) float32, `labels` and `predicted` (n,), in the frame's order."""
    import torch

    from isoviz.training.batches import Collator, fixed_batches

    encoded = head.encode(frame)
    batches: list[tuple[NDArray[Any], ...]] = []
    predictions: dict[int, Any] = {}
    rows = 0
    with torch.inference_mode():
        for batch in fixed_batches(encoded, Collator(head.tokenizer.pad_token_id), _BATCH):
            numbers = batch.pop("item")
            batch = {name: value.to(model.output.weight.device) for name, value in batch.items()}
            outputs = model(**batch)
            predictions |= dict(zip(numbers.tolist(), head.predict(model, outputs, batch), strict=True))
            values = (outputs.reps.pooled.float(), outputs.head.float())
            if not all(bool(torch.isfinite(value).all()) for value in (*values, *model.output.parameters())):
                raise InputError(
                    "run: the weights of this run give vectors or scores that are NaN or infinite: its "
                    "training diverged, so there is nothing to transform",
                    field="run",
                    advice="Train it again, with a lower learning rate or a smaller λ.",
                )
            batches.append((numbers.numpy(), *(value.cpu().numpy() for value in values)))
            rows += len(numbers)
            report_rows(rows)
    numbers, pooled, read = (np.concatenate(column) for column in zip(*batches, strict=True))
    order = np.argsort(numbers)
    answers = head.answers(frame, encoded, [predictions[item] for item in sorted(predictions)])
    return {
        "pooled": pooled[order],
        "head": read[order],
        "predicted": np.asarray(answers.values),
        "labels": frame["label"].to_numpy(),
        "rows": frame.index.to_numpy(np.int64),
    }


def _sampled(frame: pd.DataFrame, limit: int) -> pd.DataFrame:
    if limit >= len(frame):
        return frame
    return frame.iloc[np.sort(np.random.default_rng(0).choice(len(frame), size=limit, replace=False))]


def _work(job: Job) -> None:
    job.publish(*compute(EncodingRequest(**job.request), job.report))


ENCODING: Final = JobKind(name="encoding", room=__name__, work=_work, results=STORE, pool=ENCODERS, prepare=PREPARE)
"""Jobs for an `EncodingRequest`."""
