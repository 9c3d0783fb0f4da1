"""IsoLayer as a step of a chain: the training method itself, on cached vectors with the frozen head."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from isoviz import methods
from isoviz.errors import InputError
from isoviz.methods.isolayer import IsoLayer, IsoLayerParams
from isoviz.parameters import declared_in
from isoviz.posthoc.protocol import CataloguedTransform, InTraining, Learnt, Paper, Params
from isoviz.readouts.heads import HeadRows, primary
from isoviz.tasks.kinds import KINDS
from isoviz.whatif.request import STORE, LayerRequest

Report = Callable[[int, int, str], None]


class LayerParams(Params):
    """Parameters of IsoLayer that a step can set; the others keep the method's defaults."""

    alpha: float = declared_in(IsoLayerParams, "alpha")
    isotropy: Literal["batch", "full"] = declared_in(IsoLayerParams, "isotropy")


class IsoLayerTransform(CataloguedTransform):
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
    Params = LayerParams
    ARRAYS = {"matrix": "dk", "offset": "k"}
    needs = "labels"

    def __init__(self, rows: HeadRows, *, report: Report | None = None, **params: Any) -> None:
        checked: Any = methods.check_params(self.slug, params)
        settings: Any = IsoLayerParams(**checked)
        self.params = settings
        if settings.depth != 1 or settings.variant != "layer":
            raise InputError("isolayer: What-if trains one affine layer before the frozen head", field="chain")
        self._rows = rows
        self._report = report
        self._learnt: Learnt | None = None

    @classmethod
    def in_training(cls, params: Any) -> InTraining:
        note = "The run fine-tunes first, then trains the layer on all its training rows."
        return InTraining("isolayer", params.model_dump(), note)

    def learn(self, x: NDArray[np.float64], eps: float) -> Learnt:
        rows = self._rows
        if len(x) != len(rows.train_labels):
            raise InputError(f"isolayer learns from labels: it needs all {len(rows.train_labels)} training rows")
        if x.shape[1] != rows.head.width:
            raise InputError(f"isolayer feeds the frozen head, which reads {rows.head.width} numbers, not {x.shape[1]}")
        return Learnt(_train(self.params, x, rows, self._report))


def trained(request: LayerRequest, rows: HeadRows) -> IsoLayerTransform | None:
    """The layer trained by a job; None if it is not trained yet."""
    stored = STORE.find(request.key)
    if stored is None:
        return None
    transform = IsoLayerTransform(rows, **request.params)
    transform._learnt = Learnt(stored.arrays)
    return transform


def _train(
    params: Any, x: NDArray[np.float64], rows: HeadRows, report: Report | None
) -> dict[str, NDArray[np.float64]]:
    """Like `isoviz.training.evaluation.fit_frozen`, but without a model: the same hook on the same kind of vectors."""
    import torch
    from torch import nn

    from isoviz.methods.protocol import Frozen

    method = methods.get("isolayer")(params)
    output = nn.Linear(rows.head.width, len(rows.head.bias))
    with torch.no_grad():
        output.weight.copy_(torch.from_numpy(rows.head.weight))
        output.bias.copy_(torch.from_numpy(rows.head.bias))
    model: Any = SimpleNamespace(head_width=rows.head.width)  # all that it reads of a model
    method.attach(model)
    classes = rows.kind == "classification"

    def metric(logits: torch.Tensor, labels: torch.Tensor) -> float:
        predicted = (logits.argmax(dim=1) if classes else logits[:, 0]).numpy()
        value = primary(rows.metric, labels.numpy(), predicted)
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
        labels=torch.from_numpy(np.asarray(rows.train_labels)).to(torch.int64 if classes else torch.float32),
        output=output,
        task_loss=lambda logits, labels: KINDS[rows.kind].loss(logits.float(), labels),
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
    return {"matrix": np.ascontiguousarray(weight.T), "offset": bias.copy()}
