"""The interface of a head kind: encode rows, predict, score the predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from isoviz import tasks
from isoviz.models import prefixes
from isoviz.training import token_cache
from isoviz.training.batches import Encoded

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from isoviz.config import RunConfig
    from isoviz.models.adapter import HeadedModel, Outputs
    from isoviz.tasks.protocol import Task

PART = 10_000
"""Rows that are tokenised at a stretch: between them there is time to tell how far it is, and to stop."""

Tell = Callable[[int, int], None]


@dataclass(frozen=True)
class Answers:
    """A head's answer for each row.

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
        generation: how texts are written, as options of `transformers.GenerationConfig`; `prepare` fills it in.
    """

    per_token = False

    def __init__(self, task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.config = config
        self.generation: dict[str, int | None] = {}
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
        """Settings that the tokens depend on, beside rows and tokenizer."""
        return {"max_length": self.config.max_length}

    def encode(self, frame: pd.DataFrame, tell: Tell | None = None) -> Encoded:
        """Tokens and labels of these rows. Tokens are cached on this machine.

        Args:
            tell: called with rows done and rows in total, where tokenising takes a while.
        """
        read = self.prefixed(frame[list(self.read)].reset_index(drop=True))
        key = token_cache.key(tasks.fingerprint({"rows": read}), self._tokenizer, kind=self.task.kind, **self.settings)

        def waiting() -> None:
            if tell is not None:
                tell(0, len(read))

        return self.assemble(frame, token_cache.cached(key, lambda: self._in_parts(read, tell), waiting))

    def _in_parts(self, read: pd.DataFrame, tell: Tell | None) -> token_cache.Ragged:
        whole: token_cache.Ragged = {}
        for begin in range(0, len(read), PART):
            for name, lists in self.tokenise(read.iloc[begin : begin + PART]).items():
                whole.setdefault(name, []).extend(lists)
            if tell is not None and len(read) > PART:
                tell(min(begin + PART, len(read)), len(read))
        return whole

    def prefixed(self, read: pd.DataFrame) -> pd.DataFrame:
        """The columns that are read, with the configuration's prefixes before their texts."""
        for column, prefix in zip(self.task.inputs, prefixes.split_prefix(self.config.prefix), strict=False):
            if prefix:
                read[column] = prefix + " " + read[column]
        return read

    def tokenise(self, read: pd.DataFrame) -> token_cache.Ragged:
        """Everything that takes time to make, as lists of whole numbers per item.

        Args:
            read: the columns `read` of some rows, indexed by their numbers among all.
        """
        raise NotImplementedError

    def assemble(self, frame: pd.DataFrame, tokens: token_cache.Ragged) -> Encoded:
        """The items, from what `tokenise` made of the same rows, now or earlier."""
        raise NotImplementedError

    def prepare(self, model: HeadedModel, train: Encoded) -> None:
        """Called once, before anything is predicted."""

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        """The values that `answers` needs for each item of a batch."""
        raise NotImplementedError

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        """The answer for each row, from the predictions in the order of items; they are equal where a row is an item."""
        return Answers(predictions)

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        """The task's metrics on these rows."""
        raise NotImplementedError

    def quick_metric(self, logits: Tensor, labels: Tensor) -> float | None:
        """The primary metric of logits against labels: of kinds with one vector per row, for methods with a second stage."""
        raise NotImplementedError
