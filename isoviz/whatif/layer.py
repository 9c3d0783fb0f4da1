"""IsoLayer trained on the spot: the training method itself, on cached vectors and beside the frozen head."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isoviz import methods
from isoviz.errors import InputError
from isoviz.metrics.cloud import is_tensor
from isoviz.posthoc.affine_map import Affine
from isoviz.posthoc.protocol import State, Transform
from isoviz.whatif.request import STORE, LayerRequest

if TYPE_CHECKING:
    from isoviz.whatif.embeddings import Embeddings

Tell = Callable[[int, int, str], None]


class IsoLayerTransform(Transform):
    """y = xA + b with the A and b that `isoviz.methods.isolayer` learns on the rows of a run; the head stays frozen.

    Unlike a post-hoc transform it looks at labels: it can only be fitted on the image of that run's training rows.

    Args:
        found: the run's embeddings, for labels, head and seed.
        params: of the method; `depth` and `variant` keep their defaults, so that the map is affine and the head the run's.
        tell: told `done` of `total` steps.
    """

    slug = "isolayer"

    def __init__(self, found: Embeddings, *, tell: Tell | None = None, **params: Any) -> None:
        checked: Any = methods.check_params(self.slug, params)
        settings: Any = methods.get(self.slug).Params(**checked)
        self.params = settings
        if settings.depth != 1 or settings.variant != "layer":
            raise InputError("isolayer: What-if trains one affine layer before the frozen head", field="chain")
        self._found = found
        self._tell = tell
        self._affine: Affine | None = None

    def affine(self) -> Affine:
        """A and b, once fitted."""
        if self._affine is None:
            raise InputError("isolayer is not fitted yet: call fit(points) first")
        return self._affine

    def state(self) -> State:
        """A and b with the parameters."""
        found = self.affine()
        return {
            "spec": {"slug": self.slug, "params": self.params.model_dump()},
            "arrays": {"linear": found.linear, "offset": found.offset},
        }

    def given(self, linear: NDArray[np.float64], offset: NDArray[np.float64]) -> IsoLayerTransform:
        """Itself, with a map that was learnt before."""
        self._affine = Affine(linear, offset)
        return self

    def _fit(self, x: NDArray[np.float64], eps: float) -> None:
        found = self._found
        if len(x) != len(found.train_labels):
            raise InputError(f"isolayer learns from labels: it needs all {len(found.train_labels)} training rows")
        if x.shape[1] != found.head.width:
            raise InputError(
                f"isolayer feeds the frozen head, which reads {found.head.width} numbers, not {x.shape[1]}"
            )
        self._affine = _train(self.params, x, found, self._tell)

    def _map(self, x: Any) -> Any:
        linear, offset = self.affine()
        if is_tensor(x):
            import torch

            return x @ torch.from_numpy(linear).to(x) + torch.from_numpy(offset).to(x)
        return x @ linear + offset

    def _width(self) -> int:
        return len(self.affine().linear)


def compute(request: LayerRequest, tell: Tell) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Facts and arrays (`linear`, `offset`) of a layer after the chain `request.before`."""
    from isoviz.whatif import chains
    from isoviz.whatif.embeddings import load
    from isoviz.whatif.engine import WhatIf

    found = load(request.embeddings, request.cloud)  # type: ignore[arg-type]
    frame = WhatIf(found, trains=True).frame(chains.read(request.before))
    layer = IsoLayerTransform(found, tell=tell, **request.params).fit(frame.image(frame.train))
    linear, offset = layer.affine()
    return {"request": request.as_json()}, {"linear": linear, "offset": offset}


def find(request: LayerRequest) -> IsoLayerTransform | None:
    """The layer that a process has trained; None if none has yet."""
    kept = STORE.find(request.key)
    if kept is None:
        return None
    from isoviz.whatif.embeddings import load

    arrays = kept.arrays
    found = load(request.embeddings, request.cloud)  # type: ignore[arg-type]
    return IsoLayerTransform(found, **request.params).given(arrays["linear"], arrays["offset"])


def _train(params: Any, x: NDArray[np.float64], found: Embeddings, tell: Tell | None) -> Affine:
    """As `isoviz.training.second_stage.fit`, without its model: the same hook on the same kind of vectors."""
    import torch
    from torch import nn

    from isoviz.methods.protocol import Frozen
    from isoviz.tasks import metrics as task_metrics

    facts = found.facts
    method = methods.get("isolayer")(params)
    output = nn.Linear(found.head.width, len(found.head.bias))
    with torch.no_grad():
        output.weight.copy_(torch.from_numpy(found.head.weight))
        output.bias.copy_(torch.from_numpy(found.head.bias))
    method.attach(_Width(found.head.width))  # type: ignore[arg-type]
    classes = facts["kind"] == "classification"

    def task_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        if classes:
            return nn.functional.cross_entropy(logits.float(), labels)
        return nn.functional.mse_loss(logits.float().squeeze(1), labels)

    def metric(logits: torch.Tensor, labels: torch.Tensor) -> float:
        predicted = (logits.argmax(dim=1) if classes else logits[:, 0]).numpy()
        value = task_metrics.compute([facts["primary"]], labels.numpy(), predicted, facts["kind"])[facts["primary"]]
        return -math.inf if value is None else value

    steps, total = 0, max(1, method.frozen_steps(len(x)))

    def report(losses: dict[str, float], rows: int, learning_rate: float) -> None:
        nonlocal steps
        steps += 1
        if tell is not None:
            tell(steps, total, f"training the layer, step {steps} of at most {total}")

    seed = int(facts["seed"])
    frozen = Frozen(
        pooled=torch.from_numpy(x).float(),
        labels=torch.from_numpy(np.asarray(found.train_labels)).to(torch.int64 if classes else torch.float32),
        output=output,
        task_loss=task_loss,
        metric=metric,
        generator=torch.Generator().manual_seed(seed),
        report=report,
        check=lambda: None,
    )
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        method.fit_frozen(frozen)
    learnt: Any = method.state
    weight, bias = learnt[0].weight.detach().double().numpy(), learnt[0].bias.detach().double().numpy()
    return Affine(np.ascontiguousarray(weight.T), bias.copy())


class _Width:
    """What `IsoLayer.attach` asks a model for."""

    def __init__(self, head_width: int) -> None:
        self.head_width = head_width
