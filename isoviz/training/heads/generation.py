"""A text of its own, scored as the network writes it: through the method, word by word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from isoviz.tasks import metrics
from isoviz.training.batches import Encoded
from isoviz.training.heads.protocol import Answers, Head
from isoviz.training.token_cache import Ragged

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from isoviz.models.adapter import HeadedModel, Outputs


class Generation(Head):
    """Labels are token lists of the targets, special tokens included; a prediction is a text."""

    per_token = True

    def tokenise(self, read: pd.DataFrame) -> Ragged:
        source, target = (read[column].tolist() for column in self.read)
        limit = {"truncation": True, "max_length": self.config.max_length}
        tokens = self.tokenizer(source, **limit)
        return {
            **{name: tokens[name] for name in ("input_ids", "attention_mask")},
            "labels": self.tokenizer(text_target=target, **limit)["input_ids"],
        }

    def assemble(self, frame: pd.DataFrame, tokens: Ragged) -> Encoded:
        inputs = {name: lists for name, lists in tokens.items() if name != "labels"}
        return Encoded(inputs, tokens["labels"], np.arange(len(frame)))

    def prepare(self, model: HeadedModel, train: Encoded) -> None:
        """How a text begins and how long it may be, as the training targets have it.

        The decoder's start token is what it reads first in training (of mBART the language, of others a fixed token). A
        special token that all targets begin with is not left to the network, which matters for the language of mBART-50.
        """
        device = next(model.parameters()).device
        start = model.shifted(torch.tensor([train.labels[0]], device=device))[0, 0]
        firsts = {labels[0] for labels in train.labels}
        special = {*self.tokenizer.all_special_ids, *getattr(self.tokenizer, "lang_code_to_id", {}).values()}
        self.generation = {
            "decoder_start_token_id": int(start),
            "forced_bos_token_id": firsts.pop() if len(firsts) == 1 and firsts <= special else None,
            "max_new_tokens": max(map(len, train.labels)),
            "num_beams": self.config.num_beams,
            "do_sample": False,
        }

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        written = model.generate(batch["input_ids"], batch["attention_mask"], **self.generation)
        return [text.strip() for text in self.tokenizer.batch_decode(written, skip_special_tokens=True)]

    def evaluate(self, frame: pd.DataFrame, answers: Answers) -> dict[str, float | None]:
        references = frame[self.task.columns[1]].tolist()
        return metrics.compute(self.task.metrics, references, answers.values, kind="seq2seq")
