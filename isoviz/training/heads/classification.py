"""One of several classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.tasks import metrics
from isoviz.training.batches import Encoded, tokenise
from isoviz.training.heads.protocol import Answers, Head
from isoviz.training.token_cache import Ragged

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from isoviz.models.adapter import HeadedModel, Outputs


class Classification(Head):
    """Labels are codes (n,) int64; a prediction is a code with its probability."""

    @property
    def num_labels(self) -> int:
        return len(self.task.label_names)

    def tokenise(self, read: pd.DataFrame) -> Ragged:
        return tokenise(read, self.read, self.tokenizer, self.config.max_length)

    def assemble(self, frame: pd.DataFrame, tokens: Ragged) -> Encoded:
        return Encoded(tokens, frame["label"].to_numpy(), np.arange(len(frame)))

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        shares = outputs.logits.float().softmax(dim=1).max(dim=1).values
        return list(zip(outputs.logits.argmax(dim=1).tolist(), shares.tolist(), strict=True))

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        return Answers([code for code, _ in predictions], [share for _, share in predictions])

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        return metrics.compute(self.task.metrics, frame["label"].to_numpy(), np.asarray(answers.values, dtype=np.int64))

    def quick_metric(self, logits: Tensor, labels: Tensor) -> float | None:
        predicted = logits.argmax(dim=1).cpu().numpy()
        return metrics.compute([self.task.primary], labels.cpu().numpy(), predicted)[self.task.primary]
