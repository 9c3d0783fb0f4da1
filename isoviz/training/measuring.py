"""One pass over validation rows in evaluation mode: predictions for the task's metric, point clouds for the isotropy."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from isoviz import metrics
from isoviz.events import Cloud
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.adapter import HeadedModel

if TYPE_CHECKING:
    from accelerate import Accelerator

SHRINKAGE_POINTS = 250_000
"""Points (layers counted in) of the training set for Σ_S in the reported IsoScore*, as in paper 001."""
ZETA = 0.2
"""ζ of the reported IsoScore*, the same for every method so that methods compare (paper 001's figures)."""

Check = Callable[[], None]
"""Called between batches; raises to abandon the pass (a stop was asked for)."""


Gather = Callable[[Any], list[Any]]
"""Every process's item, on all of them (`processes.Processes.gather`)."""


class TokenClouds:
    """Streams the unpadded token vectors of each layer: covariance per layer and over all layers, mean direction."""

    def __init__(self, layers: int, width: int) -> None:
        self.layers = [CovarianceAccumulator(width) for _ in range(layers)]
        self.directions = torch.zeros(layers, width, dtype=torch.float64)
        self.counted = [0] * layers

    def update(self, hidden_states: Iterable[Tensor], keep: Tensor) -> None:
        """Add one batch: (B, L, d) per layer; `keep` (B, L) marks the tokens that count."""
        for index, hidden in enumerate(hidden_states):
            points = hidden[keep].float()
            self.layers[index].update(points)
            norms = points.norm(dim=1, keepdim=True)
            nonzero = norms[:, 0] > 0
            self.directions[index] += (points[nonzero] / norms[nonzero]).sum(dim=0, dtype=torch.float64).cpu()
            self.counted[index] += int(nonzero.sum())

    def reduce(self, gather: Gather) -> None:
        """Add what the other processes have seen; the same on all of them afterwards."""
        self.layers = [layer.reduce(gather) for layer in self.layers]
        others = gather((self.directions, self.counted))
        self.directions = torch.stack([directions for directions, _ in others]).sum(dim=0)
        self.counted = [sum(counts) for counts in zip(*(counted for _, counted in others), strict=True)]

    def union(self) -> CovarianceAccumulator:
        """All layers' points as one cloud."""
        total = CovarianceAccumulator(self.directions.shape[1])
        for layer in self.layers:
            total.merge(layer)
        return total


@dataclass
class Pass:
    """What one pass gave.

    Attributes:
        loss: mean task loss over the rows.
        predicted, labels: (n,) class codes in the order of the pass.
        pooled, head: (p, h) vectors of the probe rows before and after the method, in row order.
        tokens: the probe rows' token clouds.
    """

    loss: float
    predicted: np.ndarray
    labels: np.ndarray
    pooled: np.ndarray
    head: np.ndarray
    tokens: TokenClouds


def run_pass(
    model: HeadedModel,
    batches: Iterable[dict[str, Tensor]],
    accelerator: Accelerator,
    gather: Gather,
    probe_rows: int,
    check: Check,
) -> Pass:
    """Predict all rows; collect clouds for rows numbered below `probe_rows`. Each process brings its part of the batches."""
    model.eval()
    tokens = TokenClouds(model.num_layers, model.width)
    kept: list[tuple[np.ndarray, ...]] = []
    loss = 0.0
    with torch.inference_mode():
        for batch in batches:
            check()
            rows = batch.pop("row")
            batch = {name: value.to(accelerator.device) for name, value in batch.items()}
            with accelerator.autocast():
                outputs = model(**batch)
            loss += float(outputs.terms["task"]) * len(rows)
            probe = (rows < probe_rows).to(accelerator.device)
            found = (outputs.logits.argmax(dim=1), batch["labels"])
            vectors = (outputs.reps.pooled[probe].float(), outputs.head[probe].float())
            kept.append((rows.numpy(), *(value.cpu().numpy() for value in (*found, *vectors))))
            tokens.update(outputs.reps.hidden_states, batch["attention_mask"].bool() & probe[:, None])
    tokens.reduce(gather)
    told = gather((loss, kept))
    parts = [part for _, kept_there in told for part in kept_there]
    numbers, predicted, labels, pooled, head = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(numbers[numbers < probe_rows], kind="stable")
    return Pass(
        loss=sum(part for part, _ in told) / len(labels),
        predicted=predicted,
        labels=labels,
        pooled=pooled[order],
        head=head[order],
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
            batch = {
                name: value.to(accelerator.device) for name, value in batch.items() if name not in ("row", "labels")
            }
            with accelerator.autocast():
                outputs = model(**batch)
            tokens.update(outputs.reps.hidden_states, batch["attention_mask"].bool())
    tokens.reduce(gather)
    return torch.from_numpy(as_float64(tokens.union()))


def as_float64(cloud: CovarianceAccumulator) -> np.ndarray:
    """(d, d) covariance on the CPU."""
    covariance = cloud.covariance
    return (
        covariance.double().cpu().numpy()
        if isinstance(covariance, Tensor)
        else np.asarray(covariance, dtype=np.float64)
    )


def describe_clouds(found: Pass) -> dict[str, Cloud]:
    """`head`, `pooled` and `layers`, each with its n and d; every undefined value is None with its reason."""
    clouds = {name: _vectors(name, points) for name, points in (("head", found.head), ("pooled", found.pooled))}
    clouds["layers"] = _tokens(
        "layers", found.tokens.union(), found.tokens.directions.sum(dim=0), sum(found.tokens.counted)
    )
    return clouds


def layer_scores(found: Pass) -> list[float | None]:
    """IsoScore of each layer's tokens."""
    return [_finite(metrics.isoscore_from_covariance(as_float64(layer))) for layer in found.tokens.layers]


def star_score(found: Pass, shrinkage_cov: Tensor) -> float | None:
    """IsoScore* of all layers' tokens with ζ = 0.2 (design §3)."""
    covariance = torch.from_numpy(as_float64(found.tokens.union()))
    mixed = (1 - ZETA) * covariance + ZETA * shrinkage_cov
    return _finite(metrics.isoscore_from_covariance(mixed.numpy()))


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


def _vectors(name: str, points: np.ndarray) -> Cloud:
    values = metrics.describe(points)
    return Cloud(
        cloud=name,
        split="validation",
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


def _tokens(name: str, cloud: CovarianceAccumulator, direction: Tensor, directed: int) -> Cloud:
    covariance = as_float64(cloud)
    eigenvalues = np.clip(np.linalg.eigvalsh(covariance)[::-1], 0, None)
    total = float(eigenvalues.sum())
    undefined = {
        "isoscore_unbiased": "tokens of one sentence are not independent points",
        "twonn": "taken on the head and pooled clouds only",
    }
    if total <= 0:
        undefined |= dict.fromkeys(("isoscore", "participation_ratio", "effective_rank"), "all points are equal")
    shares = eigenvalues / total if total > 0 else eigenvalues
    positive = shares[shares > 0]
    cosine = (float(direction @ direction) - directed) / (directed * (directed - 1)) if directed > 1 else None
    return Cloud(
        cloud=name,
        split="validation",
        n=cloud.count,
        d=covariance.shape[0],
        isoscore=_finite(metrics.isoscore_from_covariance(covariance)) if total > 0 else None,
        isoscore_unbiased=None,
        mean_cosine=cosine,
        participation_ratio=float(1 / (shares**2).sum()) if total > 0 else None,
        effective_rank=float(np.exp(-(positive * np.log(positive)).sum())) if total > 0 else None,
        twonn=None,
        ev=np.cumsum(shares)[:50].tolist() if total > 0 else [],
        undefined=undefined,
    )


def _finite(value: object) -> float | None:
    number = float(value)  # type: ignore[arg-type]
    return number if np.isfinite(number) else None
