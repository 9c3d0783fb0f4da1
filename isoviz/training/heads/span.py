"""A stretch of the second text: long texts are read in overlapping windows, and the answer is sought over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.models import prefixes
from isoviz.tasks import metrics, spans
from isoviz.training.batches import Encoded
from isoviz.training.heads.protocol import Answers, Head
from isoviz.training.token_cache import Ragged

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from isoviz.models.adapter import HeadedModel, Outputs

OFFSETS = ("offset_start", "offset_end")
"""Names under which characters into the context are kept, per token."""
NOWHERE = -1
"""Stands there for a token outside the context."""


@dataclass
class EncodedSpans(Encoded):
    """Windows with (m, 2) first and last token of the answer as labels."""

    features: spans.SpanFeatures


class Span(Head):
    """An item is a window; it predicts (start, end) logits of its tokens, two (L,) float32."""

    per_token = True

    @property
    def num_labels(self) -> int:
        return 2

    @property
    def read(self) -> tuple[str, ...]:
        return (*self.task.columns, "answer_starts", "answer_texts")

    @property
    def settings(self) -> dict[str, int]:
        return {**super().settings, "doc_stride": self.config.doc_stride}

    def prefixed(self, read: pd.DataFrame) -> pd.DataFrame:
        """Both around the question: the answers' places are counted from where the context begins."""
        before, after = prefixes.split_prefix(self.config.prefix)
        question = self.task.columns[0]
        read[question] = [" ".join(filter(None, (before, text, after))) for text in read[question]]
        return read

    def tokenise(self, read: pd.DataFrame) -> Ragged:
        questions, contexts, starts, texts = (read[column].tolist() for column in self.read)
        features = spans.features(questions, contexts, self.tokenizer, self.config.max_length, self.config.doc_stride)
        return {
            **features.inputs,
            "labels": spans.gold(features, starts, texts).tolist(),
            "row": read.index.to_numpy()[features.row][:, None].tolist(),
            **{
                name: [[NOWHERE if place is None else place[end] for place in places] for places in features.offsets]
                for end, name in enumerate(OFFSETS)
            },
        }

    def assemble(self, frame: pd.DataFrame, tokens: Ragged) -> EncodedSpans:
        inputs = {name: lists for name, lists in tokens.items() if name not in ("labels", "row", *OFFSETS)}
        offsets: list[list[spans.Offset | None]] = [
            [None if pair[0] == NOWHERE else pair for pair in zip(*places, strict=True)]
            for places in zip(*(tokens[name] for name in OFFSETS), strict=True)
        ]
        labels, row = (np.asarray(tokens[name], dtype=np.int64) for name in ("labels", "row"))
        return EncodedSpans(inputs, labels, row[:, 0], spans.SpanFeatures(inputs, row[:, 0], offsets))

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        logits = outputs.logits.float().cpu().numpy()
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        return [(row[:length, 0], row[:length, 1]) for row, length in zip(logits, lengths, strict=True)]

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        assert isinstance(encoded, EncodedSpans)
        starts, ends = ([pair[end] for pair in predictions] for end in (0, 1))
        return Answers(spans.best_answers(encoded.features, frame[self.task.columns[1]].tolist(), starts, ends))

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        return metrics.compute(self.task.metrics, frame["answer_texts"].tolist(), answers.values, kind="span")
