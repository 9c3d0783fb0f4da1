"""The losses of embedding models, which compare the vectors of all rows of a batch. A row of k texts is k consecutive vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

Loss = Literal["cosent", "angle", "cosine", "infonce"]


class Objective:
    """One of these losses as a function of vectors (k · rows, h) and labels (k · rows,), row by row.

    Labels are the row's score for each of its texts; for `infonce` each text's code, a whole number that equal texts share.

    Args:
        loss: `cosent`, `angle` and `cosine` are sentence-transformers'. `infonce`: cross-entropy of each row's first text over all
            other texts of the batch, with the row's second one as the answer.
        columns: k.
        temperature: divides cosines; of `cosine` without effect.
        scale: the lowest and the highest score, which `cosine` maps to 0 and 1; None for scores that are cosines already.
        known: pairs of codes (query, document) that belong together. Such a document, like the query itself, is not taken for
            a negative of that query.
        widths: numbers of first dimensions of which, and of all, the loss is the mean (Matryoshka, Kusupati et al. 2022).
    """

    def __init__(
        self,
        loss: Loss,
        columns: int,
        temperature: float,
        scale: tuple[float, float] | None = None,
        known: Iterable[tuple[int, int]] = (),
        widths: Sequence[int] = (),
    ) -> None:
        from sentence_transformers.sentence_transformer import losses

        self.loss, self.columns, self.temperature, self.scale = loss, columns, temperature, scale
        self.widths = widths
        pairs = torch.tensor(sorted(known), dtype=torch.long).reshape(-1, 2)
        self._base = int(pairs.max()) + 1 if len(pairs) else 1
        self._known = torch.cat([torch.tensor([-2]), pairs[:, 0] * self._base + pairs[:, 1]]).unique()  # never empty
        options = {} if loss == "cosine" else {"scale": 1 / temperature}
        names = {"cosent": "CoSENTLoss", "angle": "AnglELoss", "cosine": "CosineSimilarityLoss"}
        self._library = getattr(losses, names[loss])(None, **options) if loss in names else None

    def __call__(self, vectors: Tensor, labels: Tensor) -> Tensor:
        """The mean loss, a scalar."""
        return torch.stack([self._at(vectors[:, :width], labels) for width in (vectors.shape[1], *self.widths)]).mean()

    def _at(self, vectors: Tensor, labels: Tensor) -> Tensor:
        rows, labels = vectors.unflatten(0, (-1, self.columns)), labels.unflatten(0, (-1, self.columns))
        if self._library is None:
            return self._infonce(rows, labels.long())
        scores = labels[:, 0].float()
        if self.scale is not None and self.loss == "cosine":
            low, high = self.scale
            scores = (scores - low) / (high - low)
        loss: Tensor = self._library.compute_loss_from_embeddings(list(rows.unbind(1)), scores)
        return loss

    def _infonce(self, rows: Tensor, codes: Tensor) -> Tensor:
        queries, documents = normalize(rows[:, 0], dim=1), normalize(rows[:, 1:].flatten(0, 1), dim=1)
        query, document = codes[:, :1], codes[:, 1:].flatten()
        place = torch.arange(len(rows), device=rows.device)
        own = place * (self.columns - 1)
        known = self._known = self._known.to(rows.device)
        pair = torch.where(torch.maximum(query, document) < self._base, query * self._base + document, -1)
        # several times as fast as isin
        is_false = known[torch.searchsorted(known, pair).clamp_(max=len(known) - 1)] == pair
        is_false |= query == document
        # its own negatives are as the file says
        own_row = torch.arange(len(document), device=rows.device) // (self.columns - 1)
        is_false &= own_row != place[:, None]
        scores = queries @ documents.T / self.temperature
        return cross_entropy(scores.masked_fill(is_false, -torch.inf), own)
