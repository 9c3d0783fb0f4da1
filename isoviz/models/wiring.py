"""Where each family keeps its parts: what one batch gives, the dropout, the output layer. The only place that tells them apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.models.families import CLASSIFIERS, HeadKind

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass
class Encoding:
    """What the hooks will see of one batch; the fields are those of `Representations`."""

    cls: Tensor
    pooled: Tensor
    hidden_states: tuple[Tensor, ...]
    attention_mask: Tensor


class Wiring:
    """The parts of one network, by their role. Not a module: the network owns its weights.

    Attributes:
        per_token: the output layer reads every token, not one vector per row.
        bias: (1, labels) added to the logits beside the output layer's own bias, or None.
    """

    per_token = False

    def __init__(self, network: PreTrainedModel) -> None:
        self.network: Any = network
        self._nothing = nn.Identity()

    @property
    def output(self) -> nn.Linear:
        """The output layer."""
        raise NotImplementedError

    @property
    def dropout(self) -> nn.Module:
        """What lies between the method and the output layer."""
        return self._nothing

    @property
    def bias(self) -> Tensor | None:
        return None

    @property
    def depth(self) -> int:
        """Layers whose token vectors are reported."""
        return int(self.network.config.num_hidden_layers)

    def encode(self, inputs: dict[str, Tensor]) -> Encoding:
        """Run the network up to the method. `inputs` are named as the network names them."""
        raise NotImplementedError


class Classifier(Wiring):
    """One vector per row: classification and regression."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__(network)
        self.head = CLASSIFIERS[network.config.model_type]

    @property
    def output(self) -> nn.Linear:
        head = self.network.classifier
        return head.out_proj if self.head in ("dense", "gelu") else head

    @property
    def dropout(self) -> nn.Module:
        if self.head in ("dense", "gelu"):
            return self.network.classifier.dropout
        return self.network.drop if self.head == "norm" else self.network.dropout

    def encode(self, inputs: dict[str, Tensor]) -> Encoding:
        encoded = self.network.base_model(**inputs, output_hidden_states=True, return_dict=True)
        first, pooled = encoded.last_hidden_state[:, 0], self._pool(encoded, inputs)
        return Encoding(first, pooled, tuple(encoded.hidden_states[1:]), inputs["attention_mask"])

    def _pool(self, encoded: Any, inputs: dict[str, Tensor]) -> Tensor:
        last = encoded.last_hidden_state
        if self.head == "pooler":
            return encoded.pooler_output
        if self.head == "relu":
            return torch.relu(self.network.pre_classifier(last[:, 0]))
        if self.head == "context":
            return self.network.pooler(last)
        if self.head == "norm":
            return self.network.head(_first_or_mean(last, inputs["attention_mask"], self.network.config))
        head = self.network.classifier
        activation = nn.functional.gelu if self.head == "gelu" else torch.tanh
        return activation(head.dense(head.dropout(last[:, 0])))


class SpanFinder(Wiring):
    """Every token: does the answer start here, does it end here?"""

    per_token = True

    @property
    def output(self) -> nn.Linear:
        return getattr(self.network, "qa_outputs", None) or self.network.classifier

    @property
    def dropout(self) -> nn.Module:
        return getattr(self.network, "dropout", None) or getattr(self.network, "drop", None) or self._nothing

    def encode(self, inputs: dict[str, Tensor]) -> Encoding:
        encoded = self.network.base_model(**inputs, output_hidden_states=True, return_dict=True)
        last, mask = encoded.last_hidden_state, inputs["attention_mask"]
        points = last[mask.bool()]
        if hasattr(self.network, "head"):  # ModernBERT has a map between the last layer and the output layer
            points = self.network.head(points)
        return Encoding(last[:, 0], points, tuple(encoded.hidden_states[1:]), mask)


class Writer(Wiring):
    """Every target position: which word comes next? The tokens are the decoder's, the first vector is the encoder's."""

    per_token = True

    @property
    def output(self) -> nn.Linear:
        return self.network.get_output_embeddings()

    @property
    def bias(self) -> Tensor | None:
        return getattr(self.network, "final_logits_bias", None)

    @property
    def depth(self) -> int:
        config = self.network.config
        return int(config.num_decoder_layers if hasattr(config, "num_decoder_layers") else config.decoder_layers)

    def encode(self, inputs: dict[str, Tensor]) -> Encoding:
        source = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        read = self.network.get_encoder()(**source, return_dict=True).last_hidden_state
        mask = inputs["decoder_attention_mask"]
        written = self.network.get_decoder()(
            input_ids=inputs["decoder_input_ids"],
            attention_mask=mask,
            encoder_hidden_states=read,
            encoder_attention_mask=source["attention_mask"],
            use_cache=False,
            output_hidden_states=True,
            return_dict=True,
        )
        points = written.last_hidden_state[mask.bool()]
        if getattr(self.network.config, "scale_decoder_outputs", False):  # T5 with tied embeddings
            points = points * self.network.config.d_model**-0.5
        return Encoding(read[:, 0], points, tuple(written.hidden_states[1:]), mask)


def of(network: PreTrainedModel, kind: HeadKind) -> Wiring:
    """The parts of a network that was loaded for this kind."""
    wirings: dict[str, type[Wiring]] = {"span": SpanFinder, "seq2seq": Writer}
    return wirings.get(kind, Classifier)(network)


def _first_or_mean(last: Tensor, mask: Tensor, config: Any) -> Tensor:
    if config.classifier_pooling == "cls":
        return last[:, 0]
    weight = mask.unsqueeze(-1)
    return (last * weight).sum(dim=1) / weight.sum(dim=1)
