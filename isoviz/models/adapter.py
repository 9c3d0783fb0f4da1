"""One encoder with a classification head and a method between them. The only place that knows families apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.errors import ModelError
from isoviz.methods.protocol import Method, Representations
from isoviz.models.families import CLASSIFIERS
from isoviz.models.sources import ModelSource

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass
class Outputs:
    """What one forward pass gives.

    Attributes:
        logits: (B, labels).
        loss: the objective, if labels were given.
        terms: the task loss and each weighted penalty, detached from nothing.
        reps: what the hooks saw.
        head: (B, h) what the output layer read (after the method, before dropout).
    """

    logits: Tensor
    loss: Tensor | None
    terms: dict[str, Tensor]
    reps: Representations
    head: Tensor


class HeadedModel(nn.Module):
    """Encoder → pooled vector → method's transform → dropout → output layer, for every supported family alike.

    Penalties are computed inside `forward`, because a wrapped (distributed) model synchronises only what its forward saw.

    Attributes:
        width: d, the encoder's hidden size.
        head_width: h, the size of the vector that feeds the output layer.
        num_layers: transformer layers.
    """

    def __init__(self, network: PreTrainedModel, method: Method) -> None:
        super().__init__()
        self.network = network
        self.kind = CLASSIFIERS[network.config.model_type]
        self.width: int = network.config.hidden_size
        self.head_width: int = self.output.in_features
        self.num_layers: int = network.config.num_hidden_layers
        self.method = method
        method.attach(self)
        self.method_state = method.state

    @property
    def output(self) -> nn.Linear:
        """The output layer. A property, so that its weights have one name only in the state."""
        head: Any = self.network.classifier
        return head.out_proj if self.kind == "dense" else head

    @property
    def dropout(self) -> nn.Module:
        """What lies between the method and the output layer."""
        network: Any = self.network
        return network.classifier.dropout if self.kind == "dense" else network.dropout

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        penalise: bool = False,
    ) -> Outputs:
        """Logits, and with labels the loss.

        Args:
            input_ids, attention_mask, token_type_ids: (B, L).
            labels: (B,) class codes.
            penalise: compute the method's penalties as well (training).
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        encoded = self.network.base_model(**inputs, output_hidden_states=True, return_dict=True)
        last = encoded.last_hidden_state
        reps = Representations(
            cls=last[:, 0],
            pooled=self._pool(encoded, last),
            last_hidden=last,
            hidden_states=tuple(encoded.hidden_states[1:]),
            attention_mask=attention_mask,
            output_weight=self.output.weight,
        )
        head = self.method.transform(reps, self.training)
        logits = self.output(self.dropout(head))
        if labels is None:
            return Outputs(logits, None, {}, reps, head)
        task_loss = self.task_loss(logits, labels)
        penalties = self.method.penalties(reps) if penalise else {}
        loss = self.method.objective(task_loss, penalties)
        return Outputs(logits, loss, {"task": task_loss, **penalties}, reps, head)

    @staticmethod
    def task_loss(logits: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of (B, labels) logits against (B,) class codes, in float32."""
        return nn.functional.cross_entropy(logits.float(), labels)

    def _pool(self, encoded: Any, last: Tensor) -> Tensor:
        first = last[:, 0]
        if self.kind == "pooler":
            return encoded.pooler_output
        if self.kind == "relu":
            return torch.relu(self.network.pre_classifier(first))  # type: ignore[operator]
        head: Any = self.network.classifier
        return torch.tanh(head.dense(head.dropout(first)))


def load_tokenizer(source: ModelSource) -> PreTrainedTokenizerBase:
    """The model's own tokenizer."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(source.location)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"model: the tokenizer of '{source.name}' cannot be loaded: {_first_line(error)}", field="model"
        ) from error


def load_network(source: ModelSource, num_labels: int, seed: int) -> PreTrainedModel:
    """The encoder with a classification head of `num_labels` outputs, in float32.

    New weights (the head's, a missing pooler's) are drawn from a generator of their own, seeded by `seed`, so that they are
    the same for every method.
    """
    from transformers import AutoModelForSequenceClassification

    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return AutoModelForSequenceClassification.from_pretrained(
                source.location, num_labels=num_labels, dtype=torch.float32, trust_remote_code=False
            )
    except (OSError, ValueError, RuntimeError) as error:
        raise ModelError(f"model: '{source.name}' cannot be loaded: {_first_line(error)}", field="model") from error


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return text.splitlines()[0] if text else type(error).__name__
