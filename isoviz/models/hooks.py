"""The interface between a model and a method at each step. No torch at import.

The adapter knows methods by these hooks only; `isoviz.methods.protocol.Method` adds what catalogue and training loop need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass
class Representations:
    """The encoder's output for one batch (B rows, L tokens, width d), as the hooks see it.

    Attributes:
        cls: (B, d) last-layer vector of the token that stands for its row: the first, of a decoder the last.
        pooled: (B, h) the vector that feeds dropout and the output layer. Where that layer reads every token (spans, texts):
            (P, h), the vectors of the P unpadded tokens, row by row.
        last_hidden: (B, L, d) last layer.
        hidden_states: one (B, L, d) per layer, the embedding output excluded.
        attention_mask: (B, L), 1 for tokens, 0 for padding.
        output_weight: (labels, h) weight of the output layer, a parameter: (2, h) for spans, (vocabulary, h) for texts, there
            often the input embeddings as well; (0, h) for embeddings.
        places: (B,) where in its row the token of `cls` stands; None: it is the first.
        embeddings: (B, L, d) what the first layer reads; None while a network writes.
        again: runs the encoder once more on the same batch, in training with other dropout masks; set where `penalties` are
            computed.

    Of an encoder-decoder, `cls` is the encoder's; L, `last_hidden`, `hidden_states` and `attention_mask` are the decoder's (L
    target positions; of a classifier those of the text itself), because isotropy calibration regularises the side of the output. While it
    writes, there is one position per row, and only `pooled` and `output_weight` are what they are in training.
    """

    cls: Tensor
    pooled: Tensor
    last_hidden: Tensor
    hidden_states: tuple[Tensor, ...]
    attention_mask: Tensor
    output_weight: Tensor
    places: Tensor | None = None
    embeddings: Tensor | None = None
    again: Callable[[], Representations] | None = None

    def column(self, first: int, columns: int) -> Representations:
        """Every `columns`-th row from `first` on: one text of each row of texts."""
        part = slice(first, None, columns)
        of_rows = ("cls", "pooled", "last_hidden", "attention_mask", "places", "embeddings")
        values = {name: value[part] for name in of_rows if (value := getattr(self, name)) is not None}
        return replace(self, hidden_states=tuple(hidden[part] for hidden in self.hidden_states), **values)

    def row_tokens(self, hidden: Tensor) -> Tensor:
        """(B, d) of the vectors (B, L, d) of one layer, that of the token that stands for its row."""
        import torch

        if self.places is None:
            return hidden[:, 0]
        return hidden[torch.arange(len(hidden), device=hidden.device), self.places]

    def tokens(self, layers: Iterable[int] | None = None, include_padding: bool = False) -> Tensor:
        """All layers' (or the named ones', from 1) token vectors, (points, d), padding left out unless requested."""
        import torch

        selected = self.hidden_states if layers is None else [self.hidden_states[i - 1] for i in layers]
        keep = self.attention_mask.bool()
        if include_padding:
            keep = torch.ones_like(keep)
        return torch.cat([hidden[keep] for hidden in selected])


class HookedModel(Protocol):
    """The facts that a method may use about its model (`isoviz.models.adapter.HeadedModel`).

    Attributes:
        width: d, the size of the token vectors.
        head_width: h, the size of the vectors that feed the output layer.
        num_layers: layers whose token vectors are reported.
        output: the output layer.
    """

    width: int
    head_width: int
    num_layers: int

    @property
    def output(self) -> nn.Linear: ...

    def modules(self) -> Iterator[nn.Module]: ...


class Hooks:
    """Hooks that do nothing: a model as it is. `isoviz.methods.protocol.Method` is what overrides them.

    Attributes:
        state: what is learned or tracked, saved and moved with the model; None for nothing.
    """

    state: nn.Module | None = None

    def attach(self, model: HookedModel) -> None:
        """Called once, before the model is prepared for its device: make `self.state` here if there is one."""

    def transform(self, reps: Representations, training: bool) -> Tensor:
        """What dropout and the output layer read instead of `reps.pooled`, of the same shape, each point for itself in
        evaluation; look at `reps.pooled` alone, because a network that writes texts has nothing else."""
        return reps.pooled

    def penalties(self, reps: Representations) -> dict[str, Tensor]:
        """Scalar terms of the training loss by name, already weighted; computed inside the forward pass."""
        return {}

    def reads_tokens(self) -> bool:
        """Whether `penalties` read more of the `Representations` than `pooled`, `output_weight` and `again`."""
        return type(self).penalties is not Hooks.penalties

    def objective(self, task_loss: Tensor, penalties: dict[str, Tensor]) -> Tensor:
        """The loss that is minimised. Default: the sum."""
        total = task_loss
        for term in penalties.values():
            total = total + term
        return total

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Optimiser groups of those parameters of `self.state` that want settings of their own; default none.

        Each is `{"params": [...]}` with any of AdamW's `lr`, `eps`, `weight_decay`, `betas`, and `clip`: the norm to which the
        gradients of that group alone are cut before a step. The run's schedule scales `lr`. What is named here is trained
        in no other group.
        """
        return []
