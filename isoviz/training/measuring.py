"""One pass over validation rows in evaluation mode: predictions for the task's metric, point clouds for the isotropy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from isoviz import metrics
from isoviz.events import Cloud, Measured
from isoviz.metrics.cloud_stream import CloudStream
from isoviz.metrics.scores import REPORTED_ZETA
from isoviz.models.adapter import HeadedModel
from isoviz.training.batches import Encoded
from isoviz.training.heads import Head

if TYPE_CHECKING:
    from accelerate import Accelerator

SHRINKAGE_POINTS = 250_000
"""Points (layers counted in) of the training set for Σ_S in the reported IsoScore*, as in paper 001."""
ONE_TOKEN = "one random token of each row"
"""How the `head` and `pooled` clouds are drawn where the output layer reads every token."""

Check = Callable[[], None]
"""Called between batches; raises to abandon the pass (a stop was asked for)."""


Gather = Callable[[Any], list[Any]]
"""Every process's item, on all of them (`processes.Processes.gather`)."""


class TokenClouds:
    """Streams the unpadded token vectors of each layer."""

    def __init__(self, layers: int, width: int) -> None:
        self.layers = [CloudStream(width) for _ in range(layers)]

    def update(self, hidden_states: Iterable[Tensor], keep: Tensor) -> None:
        """Add one batch: (B, L, d) per layer; `keep` (B, L) marks the tokens that count."""
        for layer, hidden in zip(self.layers, hidden_states, strict=True):
            layer.update(hidden[keep].float())

    def reduce(self, gather: Gather) -> None:
        """Add what the other processes have seen; the same on all of them afterwards."""
        self.layers = [layer.reduce(gather) for layer in self.layers]

    def union(self) -> CloudStream:
        """All layers' points as one cloud."""
        total = CloudStream(self.layers[0].sums.d)
        for layer in self.layers:
            total.merge(layer)
        return total


@dataclass
class Pass:
    """What one pass gave.

    Attributes:
        loss: mean task loss over the rows.
        predictions: what the head predicts of each item, in the order of the items.
        pooled, head: (p, h) one vector of each probe row before and after the method, in row order.
        drawn: how those were chosen, where a row has many; "" where it has one.
        tokens: the probe rows' token clouds.
    """

    loss: float
    predictions: list[Any]
    pooled: np.ndarray
    head: np.ndarray
    drawn: str
    tokens: TokenClouds


def run_pass(
    model: HeadedModel,
    predictor: Head,
    encoded: Encoded,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    probe_rows: int,
    seed: int,
    check: Check,
) -> Pass:
    """Predict all items; collect clouds of the first items of the first `probe_rows` rows. Each process brings its part.

    Where the output layer reads every token, the `pooled` and `head` clouds take one of each row, drawn by the seed and the
    row alone: neighbouring tokens are no independent points.
    """
    model.eval()
    tokens = TokenClouds(model.num_layers, model.width)
    probed = encoded.firsts(probe_rows)
    shares = np.random.default_rng((seed, 2)).random(len(encoded))
    predictions: list[tuple[int, Any]] = []
    vectors: list[tuple[np.ndarray, ...]] = []
    loss, labels = 0.0, 0
    with torch.inference_mode():
        for batch in batches:
            check()
            items = batch.pop("item").numpy()
            batch = {name: value.to(accelerator.device) for name, value in batch.items()}
            with accelerator.autocast():
                outputs = model(**batch)
                predictions += zip(items.tolist(), predictor.predict(model, outputs, batch), strict=True)
            loss += float(outputs.terms["task"]) * outputs.count
            labels += outputs.count
            probe, mask = probed[items], outputs.reps.attention_mask
            places = np.arange(len(items))
            if model.per_token:
                counts = mask.sum(dim=1).cpu().numpy()
                places = np.cumsum(counts) - counts + (shares[items] * counts).astype(np.int64)
            chosen = torch.from_numpy(places[probe]).to(mask.device)
            found = (outputs.reps.pooled[chosen].float(), outputs.head[chosen].float())
            vectors.append((items[probe], *(value.cpu().numpy() for value in found)))
            tokens.update(outputs.reps.hidden_states, mask.bool() & torch.from_numpy(probe).to(mask.device)[:, None])
    tokens.reduce(gather)
    told = gather((loss, labels, predictions, vectors))
    parts = [part for there in told for part in there[3]]
    numbers, pooled, head = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    return Pass(
        loss=sum(there[0] for there in told) / sum(there[1] for there in told),
        predictions=[value for _, value in sorted((pair for there in told for pair in there[2]), key=itemgetter(0))],
        pooled=pooled[order],
        head=head[order],
        drawn=ONE_TOKEN if model.per_token else "",
        tokens=tokens,
    )


def shrinkage(
    model: HeadedModel,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    check: Check,
) -> Tensor:
    """(d, d) Σ_S of the reported IsoScore*: token vectors of training rows, all layers, evaluation mode, in float64."""
    model.eval()
    tokens = TokenClouds(model.num_layers, model.width)
    with torch.inference_mode():
        for batch in batches:
            check()
            batch = {name: value.to(accelerator.device) for name, value in batch.items() if name != "item"}
            with accelerator.autocast():
                reps = model.represent(**batch)
            tokens.update(reps.hidden_states, reps.attention_mask.bool())
    tokens.reduce(gather)
    return torch.from_numpy(tokens.union().covariance())


def measured(found: Pass, shrinkage_cov: Tensor, weight: Tensor, *, step: int, epoch: int, arrays: str) -> Measured:
    """The event of one measurement.

    Args:
        shrinkage_cov: (d, d) Σ_S of the reported IsoScore*.
        weight: (labels, h) of the output layer, for I1, I2 and their norm.
        arrays: where `save_arrays` wrote, relative to the run's folder.
    """
    rows = weight.detach().float().cpu().numpy()  # a vocabulary of a quarter million rows: no float64 copy
    i1, i2 = metrics.partition(rows)
    return Measured(
        step=step,
        epoch=epoch,
        isoscore_star=star_score(found, shrinkage_cov),
        clouds=describe_clouds(found),
        by_layer=layer_scores(found),
        i1=_finite(i1),
        i2=_finite(i2),
        weight_norm=float(np.linalg.norm(np.asarray(metrics.row_norms(rows)))),
        arrays=arrays,
    )


def describe_clouds(found: Pass) -> dict[str, Cloud]:
    """`head`, `pooled` and `layers`, each with its n and d; every undefined value is None with its reason."""
    clouds = {
        name: _vectors(name, points, found.drawn) for name, points in (("head", found.head), ("pooled", found.pooled))
    }
    clouds["layers"] = _tokens("layers", found.tokens.union())
    return clouds


def layer_scores(found: Pass) -> list[float | None]:
    """IsoScore of each layer's tokens."""
    return [_finite(metrics.isoscore_from_covariance(layer.covariance())) for layer in found.tokens.layers]


def star_score(found: Pass, shrinkage_cov: Tensor) -> float | None:
    """IsoScore* of all layers' tokens with ζ = 0.2 (design §3)."""
    mixed = (1 - REPORTED_ZETA) * found.tokens.union().covariance() + REPORTED_ZETA * shrinkage_cov.numpy()
    return _finite(metrics.isoscore_from_covariance(mixed))


def save_arrays(path: Path, head: np.ndarray) -> None:
    """Write the head cloud's |ρ|, its clustered order, σ and EV curve; complete or not at all."""
    from safetensors.numpy import save_file

    with warnings.catch_warnings():  # n and d stand beside every picture
        warnings.simplefilter("ignore", metrics.SmallSampleWarning)
        arrays = _arrays(head)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    save_file({name: np.ascontiguousarray(value) for name, value in arrays.items()}, partial)
    partial.replace(path)


def _arrays(head: np.ndarray) -> dict[str, np.ndarray]:
    correlation = np.asarray(metrics.abs_correlation(head))
    return {
        "abs_correlation": correlation.astype(np.float16),
        "order": np.asarray(metrics.correlation_order(correlation), dtype=np.int32),
        "std": np.asarray(metrics.dimension_std(head), dtype=np.float32),
        "ev": np.atleast_1d(metrics.explained_variance(head)).astype(np.float32),
    }


def _vectors(name: str, points: np.ndarray, drawn: str) -> Cloud:
    values = metrics.describe(points)
    return Cloud(
        cloud=name,
        split="validation",
        drawn=drawn,
        n=values["n"],
        d=values["d"],
        isoscore=values["isoscore"],
        isoscore_unbiased=values["isoscore_unbiased"],
        isoscore_unbiased_interval=values["isoscore_unbiased_interval"],
        mean_cosine=values["mean_cosine"],
        participation_ratio=values["participation_ratio"],
        effective_rank=values["effective_rank"],
        twonn=values["twonn"],
        ev=values["ev"] or [],
        undefined=_reasons(values),
    )


def _reasons(values: Mapping[str, object]) -> dict[str, str]:
    why = "; ".join(str(text) for text in cast(list[str], values["warnings"])) or "undefined for this cloud"
    return {name: why for name, value in values.items() if value is None}


def _tokens(name: str, cloud: CloudStream) -> Cloud:
    values = cloud.describe()
    return Cloud(
        cloud=name,
        split="validation",
        isoscore_unbiased=None,
        twonn=None,
        ev=values["ev"] or [],
        **{key: values[key] for key in ("n", "d", "isoscore", "mean_cosine", "participation_ratio", "effective_rank")},
        undefined={
            **_reasons(values),
            "isoscore_unbiased": "tokens of one sentence are not independent points",
            "twonn": "taken on the head and pooled clouds only",
        },
    )


def _finite(value: object) -> float | None:
    number = float(value)  # type: ignore[arg-type]
    return number if np.isfinite(number) else None
