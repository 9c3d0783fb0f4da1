"""One number."""

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


class Regression(Head):
    """Labels are numbers (n,) float64, and so are predictions."""

    def tokenise(self, read: pd.DataFrame) -> Ragged:
        return tokenise(read, self.read, self.tokenizer, self.config.max_length)

    def assemble(self, frame: pd.DataFrame, tokens: Ragged) -> Encoded:
        return Encoded(tokens, frame["label"].to_numpy(), np.arange(len(frame)))

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        return outputs.logits.squeeze(-1).float().tolist()

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        return self._metrics(self.task.metrics, frame["label"].to_numpy(), np.asarray(answers.values, dtype=np.float64))

    def quick_metric(self, logits: Tensor, labels: Tensor) -> float | None:
        truth, predicted = labels.double().cpu().numpy(), logits.squeeze(-1).double().cpu().numpy()
        return self._metrics([self.task.primary], truth, predicted)[self.task.primary]

    def _metrics(self, names: Any, labels: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
        return metrics.compute(names, labels, predicted, kind="regression")
