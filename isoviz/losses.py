"""Isotropy methods as losses for `SentenceTransformerTrainer`: `Regularised(CoSENTLoss(model), method="sigreg", lam=0.01)`."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from isoviz import methods
from isoviz.errors import InputError, named
from isoviz.methods.protocol import CloudPenalty
from isoviz.parameters import ParamValue


class Regularised(nn.Module):
    """A sentence-transformers loss plus λ times an isotropy penalty of the sentence embeddings.

    The penalty is computed for each text column on its own and averaged, because over all columns at once it would push a text away
    from its own partner. It reads the vectors before a final `Normalize`, over the rows of all processes. In evaluation the loss is
    `loss` alone. The trainer logs both terms by name.

    Args:
        loss: a loss of sentence-transformers (with `loss.model`), except a cached one: its batch never exists as a whole.
        method: `gor`, `sigreg`, `vicreg`, or another method of the catalogue that adds a penalty on a cloud of vectors.
        params: the method's parameters, such as `lam`. For SIGReg `scale` is on, because cosines ignore lengths.

    Raises:
        InputError: (a ValueError) unknown method or parameter, a method that is no such penalty, or a loss without a model.
    """

    def __init__(self, loss: nn.Module, method: str = "gor", **params: ParamValue) -> None:
        super().__init__()
        penalties = {slug: kind for slug, kind in methods.catalogue().items() if issubclass(kind, CloudPenalty)}
        kind = named(penalties, method, "method")
        values = methods.check_params(method, {**kind.for_embeddings, **params})
        if values["on"] != "pooled":
            raise InputError(f"on: a loss sees pooled vectors only (got '{values['on']}')", field="params.on")
        model: Any = getattr(loss, "model", None)
        name = type(loss).__name__
        if not hasattr(model, "get_embedding_dimension") or name.startswith("Cached"):
            known = (
                "expected one with a SentenceTransformer as `model`, and not a cached one"  # its batch is never whole
            )
            raise InputError.at("loss", f"{known} (got {name})")
        self.model, self.loss = model, loss  # the trainer replaces `model` in both by the wrapped one
        self.method = kind(kind.Params(**values))
        self.method.attach(SimpleNamespace())  # a penalty on a cloud reads nothing of a model
        self.method_state = self.method.state
        *before, last = model
        # a module's hook fires inside any wrapper of the model
        self._pooling = [before[-1] if type(last).__name__ == "Normalize" and before else last]

    def forward(
        self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None = None
    ) -> dict[str, Tensor]:
        """The terms of the loss by name; their sum is minimised.

        Raises:
            InputError: the loss does not encode every text column once with gradients.
        """
        features = list(sentence_features)
        seen: list[Tensor] = []
        handle = self._pooling[0].register_forward_hook(
            lambda module, inputs, output: seen.append(output["sentence_embedding"])
        )
        try:
            value = self.loss(features, labels)
        finally:
            handle.remove()
        terms = dict(value) if isinstance(value, dict) else {type(self.loss).__name__: value}
        if not torch.is_grad_enabled():  # evaluation: the processes may hold different numbers of batches
            return terms
        vectors = torch.cat(seen) if seen else torch.zeros(0)
        if not vectors.requires_grad or len(vectors) % len(features):
            raise InputError.at("loss", f"{type(self.loss).__name__} does not encode each column of a batch at once")
        # column by column, whether they were encoded one by one or together
        parts = [self.method.term(column) for column in vectors.chunk(len(features))]
        return terms | {self.method.slug: torch.stack(parts).mean()}
