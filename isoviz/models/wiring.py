"""Where each family keeps its parts: what one batch gives, the dropout, the output layer. No other module distinguishes families."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.errors import ModelError, one_line
from isoviz.models import pooled
from isoviz.models.families import CLASSIFIERS, CausalPooling, architecture
from isoviz.models.hooks import Representations
from isoviz.tasks.protocol import HeadKind

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Wiring:
    """The parts of one network, by their role. Not a module: the network owns its weights.

    Attributes:
        per_token: the output layer reads every token, not one vector per row.
        output_path: where the output layer lies in the network.
        bias: (1, labels) added to the logits beside the output layer's own bias, or None.
    """

    per_token = False
    output_path = ""

    def __init__(self, network: PreTrainedModel) -> None:
        self.network: Any = network
        self._nothing = nn.Identity()

    @property
    def output(self) -> nn.Linear:
        """The output layer."""
        layer: nn.Linear = attrgetter(self.output_path)(self.network)
        return layer

    @property
    def dropout(self) -> nn.Module:
        """The modules between the method and the output layer."""
        return self._nothing

    @property
    def bias(self) -> Tensor | None:
        return None

    @property
    def depth(self) -> int:
        """Layers whose token vectors are reported."""
        return int(self.network.config.num_hidden_layers)

    @property
    def width(self) -> int:
        """d, the size of the token vectors."""
        return int(self.network.config.hidden_size)

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        """Run the network up to the method. `inputs` are named as the network names them."""
        raise NotImplementedError

    def _read(
        self,
        cls: Tensor,
        pooled: Tensor,
        states: Sequence[Tensor],
        mask: Tensor,
        places: Tensor | None = None,
    ) -> Representations:
        layers, weight = tuple(states[1:]), self.output.weight
        return Representations(cls, pooled, states[-1], layers, mask, weight, places=places, embeddings=states[0])


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

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        encoded = self.network.base_model(**inputs, output_hidden_states=True, return_dict=True)
        first, pooled = encoded.last_hidden_state[:, 0], self._pool(encoded, inputs)
        return self._read(first, pooled, encoded.hidden_states, inputs["attention_mask"])

    def _pool(self, encoded: Any, inputs: dict[str, Tensor]) -> Tensor:
        last = encoded.last_hidden_state
        if self.head == "pooler":
            return encoded.pooler_output
        if self.head == "relu":
            return torch.relu(self.network.pre_classifier(last[:, 0]))
        if self.head == "context":
            return self.network.pooler(last)
        if self.head == "norm":
            first = self.network.config.classifier_pooling == "cls"
            return self.network.head(last[:, 0] if first else _mean(last, inputs["attention_mask"]))
        head = self.network.classifier
        activation = nn.functional.gelu if self.head == "gelu" else torch.tanh
        return activation(head.dense(head.dropout(last[:, 0])))


class AnyText(Wiring):
    """A network with a head of `isoviz.models.pooled`; its layers are counted by reading eight tokens.

    Raises:
        ModelError: the network does not give one vector per token for tokens alone.
    """

    output_path = "output_layer"

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__(network)
        ids = torch.ones(1, 8, dtype=torch.long, device=network.device)
        was_training = network.training
        try:
            with torch.no_grad():
                states = pooled.layers(network.eval().base_model, {"input_ids": ids, "attention_mask": ids})
                self._check(states[-1], ids)
        except Exception as error:  # of any of hundreds of families
            reason = one_line(str(error)) or type(error).__name__
            raise ModelError.at(
                "model",
                f"the family '{network.config.model_type}' cannot be fine-tuned: its network fails on tokens alone ({reason})",
            ) from error
        finally:
            network.train(was_training)
        self._depth, self._width = len(states) - 1, states[-1].shape[2]
        widths = {state.shape[2] for state in states}
        if self._depth < 1 or len(widths) > 1 or not torch.isfinite(states[-1]).all():
            found = f"{len(states)} states of width {', '.join(map(str, sorted(widths)))}"
            raise ModelError.at(
                "model",
                f"the family '{network.config.model_type}' cannot be fine-tuned: its layers do not give one vector per token "
                f"({found})",
            )

    def _check(self, last: Tensor, mask: Tensor) -> None:
        """Raise for a last layer (B, L, d) that is not what follows it reads."""
        self.output(last)

    @property
    def depth(self) -> int:
        return self._depth

    @property
    def width(self) -> int:
        return self._width

    @property
    def dropout(self) -> nn.Module:
        return self.network.dropout if self.output_path == "output_layer" else self._nothing

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        states, mask = pooled.layers(self.network.base_model, inputs), inputs["attention_mask"]
        last = states[-1]
        return self._read(last[:, 0], _mean(last.float(), mask).to(last.dtype), states, mask)


class Causal(AnyText):
    """One vector per row of a decoder. Its tokens see only what stands before them, so padding on the right changes nothing.

    Args:
        pooling: which vector.
    """

    output_path = "score"

    def __init__(self, network: PreTrainedModel, pooling: CausalPooling = "last") -> None:
        super().__init__(network)
        self.pooling = pooling

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        ids, mask = inputs["input_ids"], inputs["attention_mask"]  # not the token types: GPT-2 reads them as words
        states = pooled.layers(self.network.base_model, {"input_ids": ids, "attention_mask": mask})
        last, places = states[-1], mask.sum(dim=1).clamp(min=1) - 1
        vector = last[torch.arange(len(ids), device=ids.device), places]
        return self._read(vector, vector if self.pooling == "last" else _mean(last.float(), mask), states, mask, places)


class _NoOutputs(nn.Linear):
    def reset_parameters(self) -> None:
        """There are none."""


class Embedder(AnyText):
    """One vector per text of any network, by the modules of `isoviz.models.sentences.modules_of`, its `sentence_modules`.

    Its output layer has no outputs.
    """

    output_path = ""

    def _check(self, last: Tensor, mask: Tensor) -> None:
        self._output = _NoOutputs(self._pooled(last, mask).shape[1], 0, bias=False)

    @property
    def output(self) -> nn.Linear:
        return self._output

    def encode(self, inputs: dict[str, Tensor], *, tokens: bool = True) -> Representations:
        """`tokens`: with all layers' token vectors; bringing those of texts of different lengths together takes a sixth of a step."""
        mask = inputs["attention_mask"]
        parts = _by_length(mask.sum(dim=1))
        order = torch.cat([items for items, _ in parts]).argsort()
        read = []
        for items, longest in parts:
            cut = {name: values[items, :longest] for name, values in inputs.items()}
            states = pooled.layers(self.network.base_model, cut)
            wide = [nn.functional.pad(state, (0, 0, 0, mask.shape[1] - longest)) for state in states if tokens]
            read.append((self._pooled(states[-1], cut["attention_mask"]), states[-1][:, 0], *wide))
        vectors, first, *layers = (torch.cat(tensors)[order] for tensors in zip(*read, strict=True))
        return self._read(first, vectors, layers or (vectors,), mask)

    def _pooled(self, last: Tensor, mask: Tensor) -> Tensor:
        features = {"token_embeddings": last, "attention_mask": mask}
        vectors: Tensor = self.network.sentence_modules(features)["sentence_embedding"]
        return vectors


class TwoSided(Wiring):
    """A network with a decoder: the tokens are the decoder's, the first vector is the encoder's."""

    @property
    def depth(self) -> int:
        config = self.network.config
        return int(config.num_decoder_layers if hasattr(config, "num_decoder_layers") else config.decoder_layers)

    def _both(
        self, inputs: dict[str, Tensor], written: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, tuple[Tensor, ...]]:
        """(B, L, d) the encoder's last layer; (B, T, d) the decoder's, and each of its layers'.

        Args:
            written, mask: (B, T) what the decoder reads; None where everything it must not see stands behind what counts.
        """
        source = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        read = self.network.get_encoder()(**source, return_dict=True).last_hidden_state
        decoded = self.network.get_decoder()(
            input_ids=written,
            attention_mask=mask,
            encoder_hidden_states=read,
            encoder_attention_mask=source["attention_mask"],
            use_cache=False,
            output_hidden_states=True,
            return_dict=True,
        )
        return read, decoded.last_hidden_state, tuple(decoded.hidden_states)

    def _again(self, inputs: dict[str, Tensor]) -> Tensor:
        """(B, L) the text itself, one place to the right: what the decoder reads where there is nothing to write."""
        ids, config = inputs["input_ids"], self.network.config
        if config.model_type == "mbart":  # begins with the text's own last token, its language
            first = ids.gather(1, inputs["attention_mask"].sum(dim=1, keepdim=True) - 1)
        else:
            first = torch.full_like(ids[:, :1], config.decoder_start_token_id)
        return torch.cat([first, ids[:, :-1]], dim=1)


class TwoSidedClassifier(TwoSided):
    """One vector per row, the decoder's at the text's last end token, where it has seen the whole text."""

    output_path = "classification_head.out_proj"

    @property
    def dropout(self) -> nn.Module:
        return self.network.classification_head.dropout

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        mask, ids = inputs["attention_mask"], inputs["input_ids"]
        read, last, layers = self._both(inputs, self._again(inputs), None)
        # the last end token; where a text has none (a tokenizer that sets none), its last token
        place = torch.arange(ids.shape[1], device=ids.device) * mask
        place = place + ids.shape[1] * place * (ids == self.network.config.eos_token_id)
        vector = last[torch.arange(len(ids), device=ids.device), place.argmax(dim=1)]
        head = self.network.classification_head
        return self._read(read[:, 0], torch.tanh(head.dense(head.dropout(vector))), layers, mask)


class SpanFinder(Wiring):
    """Every token: does the answer start here, does it end here?"""

    per_token = True

    @property
    def output(self) -> nn.Linear:
        return getattr(self.network, "qa_outputs", None) or self.network.classifier

    @property
    def dropout(self) -> nn.Module:
        return getattr(self.network, "dropout", None) or getattr(self.network, "drop", None) or self._nothing

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        encoded = self.network.base_model(**inputs, output_hidden_states=True, return_dict=True)
        last, mask = encoded.last_hidden_state, inputs["attention_mask"]
        points = last[mask.bool()]
        if hasattr(self.network, "head"):  # ModernBERT has a map between the last layer and the output layer
            points = self.network.head(points)
        return self._read(last[:, 0], points, encoded.hidden_states, mask)


class TwoSidedSpanFinder(TwoSided):
    """Every token as the decoder makes it: it has seen the text before it, and all of the text through the encoder."""

    per_token = True
    output_path = "qa_outputs"

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        mask = inputs["attention_mask"]
        read, last, layers = self._both(inputs, self._again(inputs), None)
        return self._read(read[:, 0], last[mask.bool()], layers, mask)


class Writer(TwoSided):
    """Every target position: which word comes next?"""

    per_token = True

    @property
    def output(self) -> nn.Linear:
        return self.network.get_output_embeddings()

    @property
    def bias(self) -> Tensor | None:
        return getattr(self.network, "final_logits_bias", None)

    def encode(self, inputs: dict[str, Tensor]) -> Representations:
        mask = inputs["decoder_attention_mask"]
        read, last, layers = self._both(inputs, inputs["decoder_input_ids"], mask)
        points = last[mask.bool()]
        if getattr(self.network.config, "scale_decoder_outputs", False):  # T5 with tied embeddings
            points = points * self.network.config.d_model**-0.5
        return self._read(read[:, 0], points, layers, mask)


def wire(network: PreTrainedModel, kind: HeadKind, pooling: CausalPooling = "last") -> Wiring:
    """The parts of a network that was loaded for this kind. `pooling` is for decoders."""
    if kind == "seq2seq":
        return Writer(network)
    if kind == "embedding":
        return Embedder(network)
    if hasattr(network, "output_layer"):
        return AnyText(network)
    if architecture(network.config.to_dict()) == "decoder":
        return Causal(network, pooling)
    wirings: tuple[type[Wiring], type[Wiring]] = (Classifier, SpanFinder)
    if CLASSIFIERS[network.config.model_type] == "end":
        wirings = (TwoSidedClassifier, TwoSidedSpanFinder)
    return wirings[kind == "span"](network)


def _by_length(lengths: Tensor) -> list[tuple[Tensor, int]]:
    """Items, and the length of their longest: those of one batch in parts, each of which saves a sixth of the places it had before."""
    ordered, order = lengths.sort(stable=True)

    def parts(begin: int, end: int) -> list[tuple[Tensor, int]]:
        count, longest = end - begin, int(ordered[end - 1])
        below = torch.arange(1, count, device=lengths.device)
        places = below * ordered[begin : end - 1] + (count - below) * longest
        if count < 2 or 6 * int(places.min()) > 5 * count * longest:
            return [(order[begin:end], longest)]
        split = begin + int(places.argmin()) + 1
        return [*parts(begin, split), *parts(split, end)]

    return parts(0, len(order))


def _mean(last: Tensor, mask: Tensor) -> Tensor:
    weight = mask.unsqueeze(-1)
    return (last * weight).sum(dim=1) / weight.sum(dim=1).clamp(min=1)
