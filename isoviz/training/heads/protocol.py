"""What the loop asks of a head kind: encode rows, predict, score the predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoviz import tasks
from isoviz.training import token_cache
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
        self._tokenizer = token_cache.fingerprint(tokenizer)

    @property
    def num_labels(self) -> int:
        """Outputs of the output layer, where the task decides it."""
        return 1

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that `tokenise` looks at."""
        return self.task.columns

    @property
    def settings(self) -> dict[str, int]:
        """What else its tokens depend on, beside rows and tokenizer."""
        return {"max_length": self.config.max_length}

    def encode(self, frame: pd.DataFrame) -> Encoded:
        """Tokens and labels of these rows. The tokens are kept on this machine: equal rows are not tokenised twice."""
        rows = tasks.fingerprint({"rows": frame[list(self.read)]})
        key = token_cache.key(rows, self._tokenizer, kind=self.task.kind, **self.settings)
        return self.assemble(frame, token_cache.kept(key, lambda: self.tokenise(frame)))

    def tokenise(self, frame: pd.DataFrame) -> token_cache.Ragged:
        """Everything that takes time to make, as lists of whole numbers per item."""
        raise NotImplementedError

    def assemble(self, frame: pd.DataFrame, tokens: token_cache.Ragged) -> Encoded:
        """The items, from what `tokenise` made of the same rows, now or earlier."""
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
