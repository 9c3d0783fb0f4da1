"""A stretch of the second text: long texts are read in overlapping windows, and the answer is sought over all of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.tasks import metrics, spans
from isoviz.training.batches import Encoded
from isoviz.training.heads.protocol import Answers, Head

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from isoviz.models.adapter import HeadedModel, Outputs


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

    def encode(self, frame: pd.DataFrame) -> EncodedSpans:
        questions, contexts = (frame[column].tolist() for column in self.task.columns)
        features = spans.features(questions, contexts, self.tokenizer, self.config.max_length, self.config.doc_stride)
        labels = spans.gold(features, frame["answer_starts"].tolist(), frame["answer_texts"].tolist())
        return EncodedSpans(features.inputs, labels, np.asarray(features.row), features)

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
