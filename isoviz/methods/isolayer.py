"""IsoLayer: one layer between a frozen encoder and its frozen classifier, trained with a joint loss (paper 000)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from isoviz.errors import InputError
from isoviz.methods.protocol import Frozen, Method, Paper, Params, Representations, parameter

if TYPE_CHECKING:
    from torch import Tensor, nn

    from isoviz.models.hooks import HookedModel

BIBTEX = """\
@inproceedings{attieh2023optimizing,
  title={Optimizing the Performance of Text Classification Models by Improving the Isotropy of the Embeddings using a Joint Loss Function},
  author={Attieh, Joseph and Zewoudie, Abraham Woubie and Vlassov, Vladimir and Flanagan, Adrian and B{\\"a}ckstr{\\"o}m, Tom},
  booktitle={Document Analysis and Recognition -- ICDAR 2023},
  pages={121--136},
  year={2023}
}
"""
FLOOR = 1e-8
"""Smallest mean loss that is divided by, and smallest IsoScore whose logarithm is taken."""


class IsoLayerParams(Params):
    """Parameters of IsoLayer."""

    alpha: float = parameter(
        0.5,
        label="Weight of the task",
        symbol="α",
        help="Share of the balanced task loss in the joint loss; the rest is the isotropy loss −log IsoScore.",
        source="IsoLayer, equation 2 (0.5 is called the ideal)",
        sweep=(0.25, 0.5, 0.75),
        ge=0,
        le=1,
        slider=(0, 1, 0.05),
    )
    isotropy: Literal["batch", "full"] = parameter(
        "batch",
        label="Isotropy of",
        symbol="",
        help="batch: the mini-batch, as in the paper. full: all cached training vectors, exactly, through the layer.",
        source="batch: IsoLayer, section 3.3; full: our addition",
    )
    variant: Literal["layer", "layer_then_classifier", "joint"] = parameter(
        "layer",
        label="What is trained",
        symbol="",
        help="layer: the layer alone, the classifier frozen. layer_then_classifier: then the classifier on the new vectors. "
        "joint: both at once.",
        source="layer: IsoLayer, section 3.2; the others: left for later in its section 4.4",
    )
    depth: int = parameter(
        1,
        label="Layers",
        symbol="",
        help="1: one affine map. More: residual tanh layers before it. All start as the identity.",
        source="1: IsoLayer, section 4.2; deeper: left for later there",
        ge=1,
        le=8,
    )
    smoothing: float = parameter(
        0.15,
        label="Step of the loss means",
        symbol="s",
        help="The running mean of a loss moves by s/(1 + k) at step k. 1 is the plain mean of all steps.",
        source="IsoLayer, section 3.3; the code of the author it cites has 1",
        sweep=(0.15, 1.0),
        gt=0,
        le=1,
    )
    start: Literal["zero", "first", "one"] = parameter(
        "zero",
        label="Start of the loss means",
        symbol="",
        help="The paper does not say. zero, with the update first: the missing mass cancels.",
        source="our choice, as in the code of the author that the paper cites",
    )
    order: Literal["update_first", "normalise_first"] = parameter(
        "update_first",
        label="Order of balancing",
        symbol="",
        help="Whether a loss enters its mean before or after it is divided by it. The paper does not say.",
        source="our choice, as in the code of the author that the paper cites",
    )
    layer_epochs: int = parameter(
        50,
        label="Layer epochs",
        symbol="",
        help="At most this many passes over the cached vectors.",
        source="not given in the paper",
        ge=1,
        le=10_000,
    )
    layer_batch: int = parameter(
        256,
        label="Layer batch",
        symbol="n",
        help="Rows per step of the layer. A batch caps IsoScore at (n − 2)/(d − 1), so take many.",
        source="not given in the paper",
        ge=4,
        le=100_000,
    )
    layer_lr: float = parameter(
        1e-3,
        label="Layer learning rate",
        symbol="",
        help="Of AdamW on the layer.",
        source="not given in the paper",
        gt=0,
        le=1,
    )
    holdout: float = parameter(
        0.3,
        label="Held out",
        symbol="",
        help="Share of the training rows kept for early stopping by the task's metric; 0 trains on all, to the last epoch.",
        source="IsoLayer, section 4.2 (70/30)",
        ge=0,
        le=0.9,
    )
    patience: int = parameter(
        5,
        label="Patience",
        symbol="",
        help="Layer epochs without a higher metric on the held-out rows before it stops.",
        source="not given in the paper",
        ge=1,
        le=10_000,
    )


class Balance:
    """Joint loss with moving-average balancing (paper 000, section 3.3).

    L̂_i = L_i · L̄/L̄_i with L̄ the mean of the L̄_i; the total is α L̂_1 + (1 − α) L̂_2. L̄_i moves by s/(1 + k) of its distance
    to L_i at step k = 0, 1, ... The means are constants to the gradient, and floored: 1/L̄_i explodes where a loss vanishes.
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
        """The joint loss of one step; moves the means."""
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
    """Fine-tunes as the baseline does, then freezes everything and learns y = A h + b on the cached vectors."""

    slug = "isolayer"
    title = "IsoLayer"
    summary = (
        "After plain fine-tuning, learns one layer that makes the classifier's input more isotropic and keeps the task."
    )
    equation = (
        r"y = A h + b,\quad L = \alpha \hat L_{\mathrm{task}} + (1 - \alpha)\,\hat L_{\mathrm{iso}},\quad "
        r"L_{\mathrm{iso}} = -\log \mathrm{IsoScore}(y)"
    )
    paper = Paper(
        short="Attieh et al. 2023",
        title="Optimizing the Performance of Text Classification Models by Improving the Isotropy of the Embeddings using a "
        "Joint Loss Function",
        year=2023,
        bibtex=BIBTEX,
    )
    Params = IsoLayerParams
    params: IsoLayerParams
    effects = {"isoscore": "up"}
    of_rows_together = False  # fine-tuning is plain, and the layer draws separate batches
    traps = (
        "Early stopping watches training rows that the encoder has already fitted, so their metric says little.",
        "With the classifier frozen, A can only use what the classifier can already read.",
        "IsoScore ignores scale and mean: the isotropy loss gives b no gradient, and A none along its own scale.",
        "It learns from one cached vector per row. Spans and texts have one per token: too many to keep, and no independent "
        "points.",
    )
    kinds = ("classification", "regression")
    frozen_stage = "isotropy layer"

    def __init__(self, params: IsoLayerParams) -> None:
        super().__init__(params)
        Balance(params.alpha, params.smoothing, params.start, params.order)  # refuses a pair that cannot work

    def attach(self, model: HookedModel) -> None:
        """Make the layer, the identity; frozen, so that fine-tuning leaves it alone."""
        self.state = _identity_layers(model.head_width, self.params.depth)
        self.state.requires_grad_(False)

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """A h + b; the identity until `fit_frozen`."""
        assert self.state is not None
        return self.state(reps.pooled)

    def frozen_steps(self, rows: int) -> int:
        """Steps of `fit_frozen` at most."""
        per_epoch = -(-self._fitted_rows(rows) // self.params.layer_batch)
        return per_epoch * self.params.layer_epochs * (2 if self.params.variant == "layer_then_classifier" else 1)

    def fit_frozen(self, frozen: Frozen) -> None:
        """Train A and b (and, by variant, the classifier) on cached vectors; keep the best epoch on the held-out rows.

        "Best" is by the task's metric; of equals the one with the higher IsoScore counts.
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
        for other in (*layer.parameters(), *frozen.output.parameters()):
            other.requires_grad_(any(other is weight for weight in weights))
        order = torch.randperm(len(frozen.pooled), generator=frozen.generator)
        fitted = order[: self._fitted_rows(len(order))]
        held_out = order[len(fitted) :]
        covariance = torch.cov(frozen.pooled.double().T).to(frozen.pooled) if p.isotropy == "full" else None
        optimizer = torch.optim.AdamW(weights, lr=p.layer_lr, fused=True)  # few small weights: the calls are what costs
        balance = Balance(p.alpha, p.smoothing, p.start, p.order)
        best: tuple[tuple[float, float], list[Tensor]] | None = None
        waited = 0
        for _ in range(p.layer_epochs):
            shuffled = fitted[torch.randperm(len(fitted), generator=frozen.generator)]
            # batches of equal size: the IsoScore of a short last one is far lower, of two rows it is 0
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
                if best is None or metric >= best[0][0]:  # of all others the score decides nothing
                    score = self._score(layer(frozen.pooled), None, frozen)
                    rank = (metric, -math.inf if score is None else float(score))
            if best is None or rank > best[0]:
                waited = 0 if best is None or rank[0] > best[0][0] else waited + 1
                best = (rank, [weight.detach().clone() for weight in weights])
            else:
                waited += 1
            if waited >= p.patience:
                break
        if best is not None:
            with torch.no_grad():
                for weight, value in zip(weights, best[1], strict=True):
                    weight.copy_(value)

    def _score(self, y: Tensor, covariance: Tensor | None, frozen: Frozen) -> Tensor | None:
        """IsoScore of the batch, or of all vectors through the layer; None where it is undefined (all points equal)."""
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
    """`depth` layers of `width` that together start as the identity."""
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
    """IsoScore of A x + b for points x with that covariance, exactly: the covariance becomes A Σ Aᵀ."""
    mapped = a @ covariance @ a.T
    trace, frobenius = mapped.diagonal().double().sum(), mapped.double().square().sum()
    return ((trace * trace / frobenius - 1) / (a.shape[0] - 1)).to(a.dtype)
