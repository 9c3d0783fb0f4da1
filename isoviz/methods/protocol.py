"""The interface between a method and the training loop: parameters, source and hooks.

A method is a plain object, so the catalogue (forms, command line, docs) can be listed without importing torch. Learned
parameters and running statistics are in `self.state`, a torch module that `attach` creates; it is saved, moved and resumed with
the model. Method files import torch inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel

from isoviz.errors import InputError
from isoviz.models.hooks import Hooks, Representations
from isoviz.parameters import Paper, Params, ParamValue, parameter
from isoviz.tasks.protocol import HEAD_KINDS, HeadKind

__all__ = [
    "CloudParams",
    "CloudPenalty",
    "Effect",
    "Frozen",
    "Method",
    "Paper",
    "Params",
    "Representations",
    "TrainingSample",
    "parameter",
]

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from isoviz.models.hooks import HookedModel


@dataclass
class TrainingSample:
    """Input of `Method.refresh` before an epoch: a pass over training rows in evaluation mode.

    Attributes:
        epoch: epochs done.
        representations: `representations(tokens)` iterates over batches of randomly chosen training rows with about that many
            tokens in total (all rows if there are fewer), without gradient. Rows are ordered by length, so a caller must
            consume all batches. Each process gets its share of the rows.
        gather: returns the items of all processes to each process, for `CovarianceAccumulator.reduce`.
    """

    epoch: int
    representations: Callable[[int], Iterable[Representations]]
    gather: Callable[[Any], list[Any]] = lambda item: [item]


@dataclass
class Frozen:
    """Input of `Method.fit_frozen`: the fine-tuned encoder's vectors, computed once in evaluation mode.

    Attributes:
        pooled: (n, h) float32, one row per training row, before the method's transform.
        labels: (n,) the rows' labels, codes or numbers.
        output: the output layer (h → labels); the method may train it in place.
        task_loss: `task_loss(logits, labels)`, the scalar that fine-tuning minimises.
        metric: `metric(logits, labels)`, the task's primary metric; −inf if it is undefined.
        generator: the method's random generator.
        report: call `report(losses, rows, learning_rate)` after each step, with the value of each term and of `total`, and the
            step's number of rows.
        check: call before each step; raises if the user has stopped the run.
    """

    pooled: Tensor
    labels: Tensor
    output: nn.Linear
    task_loss: Callable[[Tensor, Tensor], Tensor]
    metric: Callable[[Tensor, Tensor], float]
    generator: torch.Generator
    report: Callable[[dict[str, float], int, float], None]
    check: Callable[[], None]


Effect = Literal["up", "down", "with λ", "against λ"]
"""How a measure changes. Measures are `isoscore` and `mean_cosine`, `isoscore_star`, and `penalty`. The first two compare the
output layer's input after the method with the input before it; for a method that does not change this input they use all
layers' tokens. `penalty` compares the method's terms at the end of training with their values when trained without their
gradient. "up" and "down" mean by at least 0.02, for a penalty by at least a tenth; "with λ" means at least 0.05 higher at λ = 1
than at λ = −1."""


class Method(Hooks):
    """One isotropy method. Override only the hooks that the method needs; the defaults do nothing.

    Class attributes:
        slug: name in configurations and URLs.
        title: name on screen.
        summary: one plain sentence.
        equation: LaTeX.
        paper: its source (None for the baseline).
        Params: its parameters.
        effects: measure → direction in a short training (see `Effect`). The conformance suite checks these; a method without
            effects must leave every number unchanged. Combinations declare no effects and are not checked.
        acts_on: slug of the isotropy measure that shows the method's effect; "" for the first in `effects`.
        traps: caveats that a user should read before trusting a number.
        kinds: the head kinds that the method supports.
        pulls: the quantity that the penalty pulls to a target, in words; two methods that pull the same quantity cannot be
            combined.
        of_rows_together: whether its terms or statistics depend on which rows share a batch; then its parts do not add up.
            True by default.
        frozen_stage: name of a second stage after fine-tuning, in which `fit_frozen` trains on cached vectors; "" if there is
            none.
    """

    slug: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    equation: ClassVar[str] = ""
    paper: ClassVar[Paper | None] = None
    Params: ClassVar[type[Params]] = Params
    effects: ClassVar[Mapping[str, Effect]] = {}
    acts_on: ClassVar[str] = ""
    traps: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[tuple[HeadKind, ...]] = HEAD_KINDS
    pulls: ClassVar[str] = ""
    of_rows_together: ClassVar[bool] = True
    frozen_stage: ClassVar[str] = ""

    def __init__(self, params: BaseModel) -> None:
        self.params = params

    @classmethod
    def check_kind(cls, kind: HeadKind) -> None:
        """`InputError` if the method cannot be trained on this head kind. Needs no torch."""
        if kind not in cls.kinds:
            raise InputError(
                f"method: '{cls.slug}' does not work on {kind} tasks (allowed: {', '.join(cls.kinds)})", field="method"
            )

    def regularises_output(self) -> bool:
        """Whether a penalty acts on the output layer's weights; such a penalty has no effect if they are not trained."""
        return False

    def buffer(self, name: str) -> Tensor:
        """The buffer of `self.state` with this name."""
        assert self.state is not None, f"{self.slug} is not attached to a model"
        return self.state.get_buffer(name)

    def refresh(self, sample: TrainingSample) -> None:
        """Called before each epoch, for statistics over the training set."""

    def frozen_steps(self, rows: int) -> int:
        """The maximum number of steps that `fit_frozen` reports for this many training rows."""
        return 0

    def fit_frozen(self, frozen: Frozen) -> None:
        """The second stage: called once after the last epoch if `frozen_stage` names one."""


class CloudParams(Params):
    lam: float
    on: Literal["pooled", "cls", "tokens"] = parameter(
        "pooled",
        label="Applied to",
        help=(
            "pooled: the vectors that the classifier reads, on span and text tasks those of all tokens. cls: the first token's "
            "vectors in the last layer, of decoders the last token's. tokens: all token vectors of the last layer."
        ),
        source="pooled: one embedding per input, as in the paper; cls and tokens: ours",
    )


class CloudPenalty(Method):
    """A method that adds λ times a statistic of one cloud of the batch to the loss. Subclasses write `statistic`.

    Class attributes:
        for_embeddings: parameters whose default is another where vectors are compared by cosine.
    """

    params: CloudParams
    for_embeddings: ClassVar[Mapping[str, ParamValue]] = {}

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """{slug: `term`} of the chosen points; no term if λ = 0."""
        return {self.slug: self.term(self._points(reps))} if self.params.lam else {}

    def reads_tokens(self) -> bool:
        """Unless it acts on the pooled vectors."""
        return self.params.on != "pooled"

    def term(self, points: Tensor) -> Tensor:
        """λ × `statistic` of the points (n, d) of all processes, outside autocast: a scalar."""
        import torch

        from isoviz.metrics.cloud import working_dtype
        from isoviz.metrics.collectives import gathered

        with torch.autocast(points.device.type, enabled=False):
            return self.params.lam * self.statistic(gathered(points.to(working_dtype(points))))

    def statistic(self, points: Tensor) -> Tensor:
        """The term without its strength, a differentiable scalar, from the cloud (n, d) in float32 or float64."""
        raise NotImplementedError

    def _points(self, reps: Representations) -> Tensor:
        match self.params.on:
            case "pooled":
                return reps.pooled
            case "cls":
                return reps.cls
            case "tokens":
                return reps.tokens([len(reps.hidden_states)])


class SketchedPenalty(CloudPenalty):
    """A penalty on random projections of the cloud, drawn anew for each batch."""

    def attach(self, model: HookedModel) -> None:
        """`batches` seeds the directions, so that all processes and a resumed run draw the same ones."""
        import torch

        self.state = torch.nn.Module()
        self.state.register_buffer("batches", torch.zeros((), dtype=torch.long))

    def next_directions(self, points: Tensor, count: int) -> Tensor:
        """(d, count) columns of length 1, for a cloud (n, d) and of its type."""
        import torch

        generator = torch.Generator().manual_seed(int(self.buffer("batches")))
        self.buffer("batches").add_(1)
        directions = torch.randn(points.shape[1], count, generator=generator)
        return (directions / directions.norm(dim=0)).to(points)
