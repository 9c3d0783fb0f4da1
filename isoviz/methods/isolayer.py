"""IsoLayer: one layer between a frozen encoder and its frozen classifier, trained with a joint loss (Attieh et al. 2023)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from isoviz.bibliography import entries
from isoviz.errors import InputError
from isoviz.methods.protocol import Frozen, Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isoviz.models.hooks import HookedModel

FLOOR = 1e-8
"""Lower bound for mean losses in a denominator and for the IsoScore in the logarithm."""


class IsoLayerParams(Params):
    alpha: float = parameter(
        0.5,
        label="Weight of the task",
        symbol="α",
        help=(
            "Weight of the balanced task loss in the joint loss; the remaining weight goes to the isotropy loss −log IsoScore."
        ),
        source="IsoLayer, equation 2 (the paper calls 0.5 ideal)",
        sweep=(0.25, 0.5, 0.75),
        suggested=True,
        ge=0,
        le=1,
        slider=(0, 1, 0.05),
    )
    isotropy: Literal["batch", "full"] = parameter(
        "batch",
        label="Isotropy of",
        help="batch: computed on the mini-batch, as in the paper. full: computed exactly on all cached training vectors.",
        source="batch: IsoLayer, section 3.3; full: our addition",
    )
    variant: Literal["layer", "layer_then_classifier", "joint"] = parameter(
        "layer",
        label="Trained part",
        help=(
            "layer: only the layer; the classifier is frozen. layer_then_classifier: the layer first, then the classifier on "
            "the new vectors. joint: both together."
        ),
        source="layer: IsoLayer, section 3.2; the others: named as future work in its section 4.4",
    )
    depth: int = parameter(
        1,
        label="Layers",
        help="1: one affine map. Above 1: residual tanh layers before it. All start as the identity.",
        source="1: IsoLayer, section 4.2; deeper: future work there",
        ge=1,
        le=8,
    )
    smoothing: float = parameter(
        0.15,
        label="Loss mean step size",
        symbol="s",
        help="The running mean of a loss moves by s/(1 + k) at step k. 1 is the plain mean of all steps.",
        source="IsoLayer, section 3.3; the code by the author it cites uses 1",
        sweep=(0.15, 1.0),
        suggested=True,
        gt=0,
        le=1,
    )
    start: Literal["zero", "first", "one"] = parameter(
        "zero",
        label="Initial loss means",
        help="The paper does not specify it. With zero and the update first, the missing weight cancels out.",
        source="our choice, as in the code by the author that the paper cites",
    )
    order: Literal["update_first", "normalise_first"] = parameter(
        "update_first",
        label="Balancing order",
        help="Whether the mean is updated before or after the loss is divided by it. The paper does not specify it.",
        source="our choice, as in the code by the author that the paper cites",
    )
    layer_epochs: int = parameter(
        50,
        label="Layer epochs",
        help="Maximum number of passes over the cached vectors.",
        source="not given in the paper",
        ge=1,
        le=10_000,
    )
    layer_batch: int = parameter(
        256,
        label="Layer batch",
        symbol="n",
        help="Rows per step of the layer. A batch of n rows caps IsoScore at (n − 2)/(d − 1), so use large batches.",
        source="not given in the paper",
        ge=4,
        le=100_000,
    )
    layer_lr: float = parameter(
        1e-3,
        label="Layer learning rate",
        help="AdamW's learning rate for the layer.",
        source="not given in the paper",
        gt=0,
        le=1,
    )
    holdout: float = parameter(
        0.3,
        label="Held out",
        help=(
            "Share of the training rows held out for early stopping on the task's metric. 0 trains on all rows and runs every "
            "epoch."
        ),
        source="IsoLayer, section 4.2 (70/30)",
        ge=0,
        le=0.9,
    )
    patience: int = parameter(
        5,
        label="Patience",
        help="Layer epochs without a higher metric on the held-out rows before training stops.",
        source="not given in the paper",
        ge=1,
        le=10_000,
    )


class Balance:
    """Joint loss with moving-average balancing (Attieh et al. 2023, section 3.3). L̂_i = L_i · L̄/L̄_i, where L̄ is the mean of the
    L̄_i; the total is α L̂_1 + (1 − α) L̂_2. L̄_i moves by s/(1 + k) of its distance to L_i at step k = 0, 1, ... No gradient
    flows through the means, and they have a lower bound because 1/L̄_i grows without limit as a loss vanishes.
    """

    def __init__(self, alpha: float, smoothing: float, start: str = "zero", order: str = "update_first") -> None:
        if start == "zero" and order == "normalise_first":
            raise InputError(
                "start: 'zero' with order 'normalise_first' divides 0 by 0; use start 'first' or 'one'",
                field="params.start",
            )
        self.weights = (alpha, 1 - alpha)
        self.smoothing = smoothing
        self.update_first = order == "update_first"
        self.means: list[float] | None = {"zero": [0.0, 0.0], "one": [1.0, 1.0]}.get(start)
        self.steps = 0

    def __call__(self, task: Tensor, isotropy: Tensor) -> Tensor:
        """The joint loss of one step; updates the means."""
        losses = (task, isotropy)
        values = [float(loss.detach()) for loss in losses]
        if self.means is None:
            self.means = list(values)
        if self.update_first:
            self._update(values)
        means = [max(mean, FLOOR) for mean in self.means]
        common = sum(means) / len(means)
        total = sum(
            weight * loss * (common / mean) for weight, loss, mean in zip(self.weights, losses, means, strict=True)
        )
        if not self.update_first:
            self._update(values)
        self.steps += 1
        return total  # type: ignore[return-value]

    def _update(self, values: list[float]) -> None:
        assert self.means is not None
        step = self.smoothing / (1 + self.steps)
        self.means = [mean + step * (value - mean) for mean, value in zip(self.means, values, strict=True)]


class IsoLayer(Method):
    """Fine-tunes like the baseline, then freezes everything and learns y = A h + b on the cached vectors."""

    slug = "isolayer"
    title = "IsoLayer"
    summary = (
        "After plain fine-tuning, trains one layer that makes the classifier's input more isotropic while keeping the task "
        "loss low."
    )
    equation = (
        r"y = A h + b,\quad L = \alpha \hat L_{\mathrm{task}} + (1 - \alpha)\,\hat L_{\mathrm{iso}},\quad "
        r"L_{\mathrm{iso}} = -\log \mathrm{IsoScore}(y)"
    )
    paper = Paper("Attieh et al. 2023", entries()["attieh2023optimizing"])
    Params = IsoLayerParams
    params: IsoLayerParams
    effects = {"isoscore": "up"}
    of_rows_together = False  # fine-tuning is plain, and the layer has separate batches
    traps = (
        "Early stopping uses training rows that the encoder has already fitted, so their metric says little.",
        "With the classifier frozen, A can only use directions that the classifier already reads.",
        "IsoScore ignores scale and mean: the isotropy loss gives no gradient to b or to the scale of A.",
        "The layer learns from one cached vector per row. Span and text tasks have one per token: too many to cache, and the "
        "points are not independent.",
    )
    kinds = ("classification", "regression")
    frozen_stage = "isotropy layer"

    def __init__(self, params: IsoLayerParams) -> None:
        super().__init__(params)
        Balance(params.alpha, params.smoothing, params.start, params.order)  # refuses settings that cannot be combined

    def attach(self, model: HookedModel) -> None:
        """Create the layer as the identity, frozen so that fine-tuning does not change it."""
        self.state = _identity_layers(model.head_width, self.params.depth)
        self.state.requires_grad_(False)

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """A h + b; the identity before `fit_frozen`."""
        assert self.state is not None
        return self.state(reps.pooled)

    def frozen_steps(self, rows: int) -> int:
        """The maximum number of steps of `fit_frozen`."""
        per_epoch = -(-self._fitted_rows(rows) // self.params.layer_batch)
        return per_epoch * self.params.layer_epochs * (2 if self.params.variant == "layer_then_classifier" else 1)

    def fit_frozen(self, frozen: Frozen) -> None:
        """Train A and b (and the classifier, if selected) on cached vectors; keep the best epoch on the held-out rows.

        The task's metric decides which epoch is best; IsoScore breaks ties.
        """
        assert self.state is not None
        layer: Any = self.state
        layer_weights: list[Tensor]
        head_weights: list[Tensor]
        layer_weights, head_weights = list(layer.parameters()), list(frozen.output.parameters())
        joint = self.params.variant == "joint"
        self._descend(frozen, layer_weights + head_weights if joint else layer_weights, joint_loss=True)
        if self.params.variant == "layer_then_classifier":
            self._descend(frozen, head_weights, joint_loss=False)
        layer.requires_grad_(False)
        frozen.output.requires_grad_(True)

    def _fitted_rows(self, rows: int) -> int:
        return max(2, rows - round(rows * self.params.holdout))

    def _descend(self, frozen: Frozen, weights: list[Tensor], joint_loss: bool) -> None:
        import torch

        p = self.params
        layer: Any = self.state
        for tensor in (*layer.parameters(), *frozen.output.parameters()):
            tensor.requires_grad_(any(tensor is weight for weight in weights))
        order = torch.randperm(len(frozen.pooled), generator=frozen.generator)
        fitted = order[: self._fitted_rows(len(order))]
        held_out = order[len(fitted) :]
        covariance = torch.cov(frozen.pooled.double().T).to(frozen.pooled) if p.isotropy == "full" else None
        # fused: with few small weights, the call overhead dominates
        optimizer = torch.optim.AdamW(weights, lr=p.layer_lr, fused=True)
        balance = Balance(p.alpha, p.smoothing, p.start, p.order)
        best: tuple[tuple[float, float], list[Tensor]] | None = None
        epochs_since_best = 0
        for _ in range(p.layer_epochs):
            shuffled = fitted[torch.randperm(len(fitted), generator=frozen.generator)]
            # batches of equal size: the IsoScore of a short last batch is far lower; for two rows it is 0
            for rows in shuffled.tensor_split(-(-len(shuffled) // p.layer_batch)):
                frozen.check()
                y = layer(frozen.pooled[rows])
                task = frozen.task_loss(frozen.output(y), frozen.labels[rows])
                terms = {"task": task}
                total = task
                score = self._score(y, covariance, frozen) if joint_loss else None
                if score is not None:
                    terms["isotropy"] = -score.clamp_min(FLOOR).log()
                    total = balance(task, terms["isotropy"])
                optimizer.zero_grad()
                total.backward()
                optimizer.step()
                losses = {name: float(term.detach()) for name, term in terms.items()} | {"total": float(total.detach())}
                frozen.report(losses, len(rows), p.layer_lr)
            if len(held_out) == 0:
                continue
            with torch.no_grad():
                y = layer(frozen.pooled[held_out])
                metric = frozen.metric(frozen.output(y), frozen.labels[held_out])
                rank = (metric, -math.inf)
                if best is None or metric >= best[0][0]:  # the score decides only between equal metrics
                    score = self._score(layer(frozen.pooled), None, frozen)
                    rank = (metric, -math.inf if score is None else float(score))
            if best is None or rank > best[0]:
                epochs_since_best = 0 if best is None or rank[0] > best[0][0] else epochs_since_best + 1
                best = (rank, [weight.detach().clone() for weight in weights])
            else:
                epochs_since_best += 1
            if epochs_since_best >= p.patience:
                break
        if best is not None:
            with torch.no_grad():
                for weight, value in zip(weights, best[1], strict=True):
                    weight.copy_(value)

    def _score(self, y: Tensor, covariance: Tensor | None, frozen: Frozen) -> Tensor | None:
        """IsoScore of the batch, or of all vectors after the layer; None if it is undefined (all points equal)."""
        import warnings

        from isoviz import metrics

        layer: Any = self.state
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", metrics.UndefinedWarning)
            warnings.simplefilter("ignore", metrics.SmallSampleWarning)
            if covariance is None:
                score: Any = metrics.isoscore(y)
            elif len(layer) > 1:
                score = metrics.isoscore(layer(frozen.pooled))
            else:
                score = _isoscore_of_map(layer[0].weight, covariance)
        return score if bool(score.detach().isfinite()) else None


def _identity_layers(width: int, depth: int) -> nn.Module:
    """`depth` layers of `width` whose composition starts as the identity."""
    import torch
    from torch import nn

    class Residual(nn.Module):
        """h + B tanh(C h + c), with B = 0 at the start."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(width, width)
            self.outer = nn.Linear(width, width)
            nn.init.eye_(self.inner.weight)
            for still in (self.inner.bias, self.outer.weight, self.outer.bias):
                nn.init.zeros_(still)

        def forward(self, h: torch.Tensor) -> torch.Tensor:
            return h + self.outer(torch.tanh(self.inner(h)))

    last = nn.Linear(width, width)
    nn.init.eye_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(*(Residual() for _ in range(depth - 1)), last)


def _isoscore_of_map(a: Tensor, covariance: Tensor) -> Tensor:
    """The exact IsoScore of A x + b for points x with this covariance, computed from A Σ Aᵀ."""
    mapped = a @ covariance @ a.T
    trace, frobenius = mapped.diagonal().double().sum(), mapped.double().square().sum()
    return ((trace * trace / frobenius - 1) / (a.shape[0] - 1)).to(a.dtype)
