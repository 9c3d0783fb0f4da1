"""The contract between a method and the training loop: parameters, provenance and hooks.

A method is a plain object so that the catalogue (forms, command line, docs) can be listed without importing torch; what it
learns or tracks lives in `self.state`, a torch module made in `attach`, which is saved, moved and resumed with the model.
Method files import torch inside functions only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel

from isoviz.errors import InputError
from isoviz.models.hooks import Hooks, Representations
from isoviz.parameters import Paper, Params, parameter
from isoviz.tasks.protocol import HEAD_KINDS, HeadKind

__all__ = ["Effect", "Frozen", "Method", "Paper", "Params", "Representations", "Sample", "parameter"]

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


@dataclass
class Sample:
    """What `Method.refresh` may ask for before an epoch: a pass over training rows in evaluation mode.

    Attributes:
        epoch: epochs done.
        representations: `representations(tokens)` iterates over batches of a random choice of training rows with about
            that many tokens (all rows, where there are fewer), without gradient. The order is by length, so take all. Of
            several processes each gets its part.
        gather: every process's item on all of them, for `CovarianceAccumulator.reduce`.
    """

    epoch: int
    representations: Callable[[int], Iterable[Representations]]
    gather: Callable[[Any], list[Any]] = lambda item: [item]


@dataclass
class Frozen:
    """What `Method.fit_frozen` works on: the fine-tuned encoder's vectors, computed once in evaluation mode.

    Attributes:
        pooled: (n, h) float32, one row per training row, before the method's transform.
        labels: (n,) their labels, codes or numbers.
        output: the output layer, (h → labels), which may be trained in place.
        task_loss: `task_loss(logits, labels)`, the scalar that fine-tuning minimised.
        metric: `metric(logits, labels)`, the task's primary metric; −inf where it is undefined.
        generator: the method's own random numbers.
        report: `report(losses, rows, learning_rate)` after each step: the value of each term and of `total`, rows of the step.
        check: called before each step; raises when the user asked to stop.
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
"""How a measure moves. Measures are `isoscore` and `mean_cosine` (what the output layer reads, after a method that changes it
against before; of all layers' tokens, where a method leaves that as it is), `isoscore_star`, and `penalty`, the method's own
terms at the end against what they are without a gradient. "up" and "down" are by at least 0.02, of a penalty by a tenth; "with λ" is λ = 1
above λ = −1 by at least 0.05."""


class Method(Hooks):
    """One isotropy method. Override only the hooks it needs; every default does nothing.

    Class attributes:
        slug: name in configurations and URLs.
        title: name on screen.
        summary: one plain sentence.
        equation: LaTeX.
        paper: where it comes from (None for the baseline).
        Params: its parameters.
        effects: what a short training shows, measure → direction; the conformance suite holds a method to it, and one that names
            nothing to leaving every number as it is (see `Effect`). Combinations name nothing and are not held to it.
        acts_on: slug of the measure of isotropy that shows what it changes, where that is not the first of its effects.
        traps: sentences a user should read before trusting a number.
        kinds: head kinds that it can be trained on.
        pulls: what its penalty pulls to a target, in words; methods that pull the same do not combine.
        of_rows_together: its terms or statistics depend on which rows are read together in a batch, so that a batch cannot be
            read in parts. True unless a method says otherwise.
        frozen_stage: name of a second stage after fine-tuning, in which `fit_frozen` trains on cached vectors; "" for none.
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
        """Whether a penalty is on the output layer's weights: useless where these do not train."""
        return False

    def buffer(self, name: str) -> Tensor:
        """A tensor of `self.state` by name."""
        assert self.state is not None, f"{self.slug} is not attached to a model"
        return self.state.get_buffer(name)

    def refresh(self, sample: Sample) -> None:
        """Called before each epoch, for statistics over the training set."""

    def frozen_steps(self, rows: int) -> int:
        """At most how many steps `fit_frozen` reports on that many training rows."""
        return 0

    def fit_frozen(self, frozen: Frozen) -> None:
        """The second stage: called once after the last epoch if `frozen_stage` names one."""
