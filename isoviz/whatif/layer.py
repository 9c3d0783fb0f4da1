"""IsoLayer as a step of a chain: the training method itself, on cached vectors with the frozen head."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from isoviz import methods
from isoviz.errors import InputError
from isoviz.methods.isolayer import IsoLayer, IsoLayerParams
from isoviz.metrics.cloud import is_tensor
from isoviz.parameters import declared_in
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.protocol import InTraining, Paper, Params, State, Transform
from isoviz.tasks.protocol import HeadKind
from isoviz.whatif.heads import FrozenHead
from isoviz.whatif.request import STORE, LayerRequest

Report = Callable[[int, int, str], None]


class LabelledRows(NamedTuple):
    """The training rows of a run, without their vectors.

    Attributes:
        labels: (n,) class codes, or numbers for regression.
        head: the run's output layer.
        kind, primary: the task's kind, `classification` or `regression`, and its metric.
        seed: the run's seed.
    """

    labels: NDArray[Any]
    head: FrozenHead
    kind: HeadKind
    primary: str
    seed: int


class LayerParams(Params):
    """Parameters of IsoLayer that a step can set; the others keep the method's defaults."""

    alpha: float = declared_in(IsoLayerParams, "alpha")
    isotropy: Literal["batch", "full"] = declared_in(IsoLayerParams, "isotropy")


class IsoLayerTransform(Transform):
    """y = xA + b with the A and b that `isoviz.methods.isolayer` learns on the rows of a run; the head stays frozen.

    Unlike a post-hoc transform it uses labels, so it can be fitted only on the image of that run's training rows.

    Args:
        rows: training rows.
        params: parameters of the method. `depth` and `variant` keep their defaults, so that the map is affine and the head frozen.
        report: called with the finished steps, the number of steps, and a text.
    """

    slug = IsoLayer.slug
    title = IsoLayer.title
    summary = IsoLayer.summary
    equation = IsoLayer.equation
    paper = cast(Paper, IsoLayer.paper)  # only the baseline has no paper
    traps = IsoLayer.traps
    variants: ClassVar[Mapping[str, Paper]] = {}
    Params = LayerParams
    coordinates: ClassVar[None] = None
    needs_labels: ClassVar[bool] = True

    def __init__(self, rows: LabelledRows, *, report: Report | None = None, **params: Any) -> None:
        checked: Any = methods.check_params(self.slug, params)
        settings: Any = IsoLayerParams(**checked)
        self.params = settings
        if settings.depth != 1 or settings.variant != "layer":
            raise InputError("isolayer: What-if trains one affine layer before the frozen head", field="chain")
        self._rows = rows
        self._report = report
        self._affine: Affine | None = None

    def affine(self) -> Affine:
        """A and b, once fitted."""
        if self._affine is None:
            raise InputError("isolayer is not fitted yet: call fit(points) first")
        return self._affine

    def state(self) -> State:
        """A and b with the parameters."""
        linear, offset = self.affine()
        return {
            "spec": {"slug": self.slug, "params": self.params.model_dump()},
            "arrays": {"linear": linear, "offset": offset},
        }

    def with_map(self, linear: NDArray[np.float64], offset: NDArray[np.float64]) -> IsoLayerTransform:
        """Set a map that was learnt before; returns the transform."""
        self._affine = Affine(linear, offset)
        return self

    @classmethod
    def name(cls, params: Any) -> str:
        """Title on screen."""
        return cls.title

    @classmethod
    def in_training(cls, params: Any) -> InTraining:
        """The method itself."""
        note = "The run fine-tunes first, then trains the layer on all its training rows."
        return InTraining("isolayer", params.model_dump(), note)

    def _fit(self, x: NDArray[np.float64], eps: float) -> None:
        rows = self._rows
        if len(x) != len(rows.labels):
            raise InputError(f"isolayer learns from labels: it needs all {len(rows.labels)} training rows")
        if x.shape[1] != rows.head.width:
            raise InputError(f"isolayer feeds the frozen head, which reads {rows.head.width} numbers, not {x.shape[1]}")
        self._affine = _train(self.params, x, rows, self._report)

    def _map(self, x: Any) -> Any:
        linear, offset = self.affine()
        if is_tensor(x):
            import torch

            return x @ torch.from_numpy(linear).to(x) + torch.from_numpy(offset).to(x)
        return x @ linear + offset

    def _width(self) -> int:
        return len(self.affine().linear)


def trained(request: LayerRequest, rows: LabelledRows) -> IsoLayerTransform | None:
    """The layer trained by a job; None if it is not trained yet."""
    stored = STORE.find(request.key)
    if stored is None:
        return None
    linear, offset = stored.arrays["linear"], stored.arrays["offset"]
    return IsoLayerTransform(rows, **request.params).with_map(linear, offset)


def _train(params: Any, x: NDArray[np.float64], rows: LabelledRows, report: Report | None) -> Affine:
    """Like `isoviz.training.second_stage.fit`, but without a model: the same hook on the same kind of vectors."""
    import torch
    from torch import nn

    from isoviz.methods.protocol import Frozen
    from isoviz.tasks import metrics as task_metrics

    method = methods.get("isolayer")(params)
    output = nn.Linear(rows.head.width, len(rows.head.bias))
    with torch.no_grad():
        output.weight.copy_(torch.from_numpy(rows.head.weight))
        output.bias.copy_(torch.from_numpy(rows.head.bias))
    method.attach(_Width(rows.head.width))  # type: ignore[arg-type]
    classes = rows.kind == "classification"

    def task_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if classes:
            return nn.functional.cross_entropy(logits.float(), labels)
        return nn.functional.mse_loss(logits.float().squeeze(1), labels)

    def metric(logits: torch.Tensor, labels: torch.Tensor) -> float:
        predicted = (logits.argmax(dim=1) if classes else logits[:, 0]).numpy()
        value = task_metrics.compute([rows.primary], labels.numpy(), predicted, rows.kind)[rows.primary]
        return -math.inf if value is None else value

    steps, total = 0, max(1, method.frozen_steps(len(x)))

    def count(losses: dict[str, float], rows: int, learning_rate: float) -> None:
        nonlocal steps
        steps += 1
        if report is not None:
            report(steps, total, f"training the layer, step {steps} of at most {total}")

    seed = rows.seed
    frozen = Frozen(
        pooled=torch.from_numpy(x).float(),
        labels=torch.from_numpy(np.asarray(rows.labels)).to(torch.int64 if classes else torch.float32),
        output=output,
        task_loss=task_loss,
        metric=metric,
        generator=torch.Generator().manual_seed(seed),
        report=count,
        check=lambda: None,
    )
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        method.fit_frozen(frozen)
    learnt: Any = method.state
    weight, bias = learnt[0].weight.detach().double().numpy(), learnt[0].bias.detach().double().numpy()
    return Affine(np.ascontiguousarray(weight.T), bias.copy())


class _Width:
    """The part of a model that `IsoLayer.attach` reads."""

    def __init__(self, head_width: int) -> None:
        self.head_width = head_width
