"""What the loop asks of a head kind: encode rows, predict, score the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoviz.training.batches import Encoded

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from isoviz.config import RunConfig
    from isoviz.models.adapter import HeadedModel, Outputs
    from isoviz.tasks.protocol import Task


@dataclass(frozen=True)
class Answers:
    """What a head says of each row.

    Attributes:
        values: one per row: class code, number or text.
        confidence: the probability given to the predicted class, one per row; None for kinds that have none.
    """

    values: list[Any]
    confidence: list[float] | None = None


class Head:
    """One head kind on one task. An *item* is what goes through the network once: a row, or a window of a long one.

    Attributes:
        per_token: see `HeadedModel`; then evaluation takes no larger batches than training, because it costs more memory.
    """

    per_token = False

    def __init__(self, task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.config = config

    @property
    def num_labels(self) -> int:
        """Outputs of the output layer, where the task decides it."""
        return 1

    def encode(self, frame: pd.DataFrame) -> Encoded:
        """Tokens and labels of these rows."""
        raise NotImplementedError

    def prepare(self, model: HeadedModel, train: Encoded) -> None:
        """Called once, before anything is predicted."""

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        """What `answers` needs of each item of a batch."""
        raise NotImplementedError

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        """What is said of each row, from the predictions in the order of the items. Where a row is an item: the same."""
        return Answers(predictions)

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        """The task's metrics on these rows."""
        raise NotImplementedError

    def quick_metric(self, logits: Tensor, labels: Tensor) -> float | None:
        """The primary metric of logits against labels: of kinds with one vector per row, for methods with a second stage."""
        raise NotImplementedError
