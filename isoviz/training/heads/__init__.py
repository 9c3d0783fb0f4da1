"""The differences between the four head kinds in training: one module each, found by the kind's name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isoviz.training.heads.classification import Classification
from isoviz.training.heads.generation import Generation
from isoviz.training.heads.protocol import Answers, Head
from isoviz.training.heads.regression import Regression
from isoviz.training.heads.span import Span

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from isoviz.config import RunConfig
    from isoviz.tasks.protocol import Task

__all__ = ["Answers", "Head", "head_for"]

_HEADS: dict[str, type[Head]] = {
    "classification": Classification,
    "regression": Regression,
    "span": Span,
    "seq2seq": Generation,
}


def head_for(task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> Head:
    """The head of a task's kind."""
    return _HEADS[task.kind](task, tokenizer, config)
