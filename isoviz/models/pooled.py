"""A classifier on any network that transformers has for texts: the mean of the tokens (of a decoder the last one), dropout, a linear map.

For families of which no head of transformers is known here. Its class is made for the family, so that checkpoints load as for the
family's own heads, and `AutoModel` reads what is saved. The output layer of a decoder is named as in transformers, which reads it too.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from typing import Any

import torch
import transformers
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from isoviz.errors import ModelError
from isoviz.models import families

_DROPOUTS = ("classifier_dropout", "hidden_dropout_prob", "dropout", "dropout_rate", "hidden_dropout")


def classifier_for(config: PretrainedConfig) -> type[PreTrainedModel]:
    """The class of a family's network with `dropout` and an output layer: `score` of a decoder, else `output_layer`.

    Raises:
        ModelError: the family is not for texts.
    """
    kind: Any = type(config)
    body: Any = ()
    # no network without a task, or one that needs another package
    with contextlib.suppress(KeyError, ValueError, AttributeError, ImportError):
        body = transformers.MODEL_MAPPING[kind]
    classes: tuple[Any, ...] = body if isinstance(body, tuple) else (body,)
    if not classes or "input_ids" not in accepted(classes[0]):
        raise ModelError.at("model", f"the family '{config.model_type}' does not read texts alone")
    return _class(classes[0], kind)


def has_score(config: PretrainedConfig) -> bool:
    """Whether transformers has the same head for a decoder: an output layer `score` on the last token."""
    if families.architecture(config.to_dict()) != "decoder":
        return False
    try:
        with torch.device("meta"):
            network = transformers.AutoModelForSequenceClassification.from_config(config)
    except ValueError:  # no such class
        return False
    return isinstance(getattr(network, "score", None), nn.Linear)


@functools.cache
def accepted(network: type[nn.Module]) -> frozenset[str]:
    """The names of what a network's forward pass takes."""
    return frozenset(inspect.signature(network.forward).parameters)


def run(network: Any, inputs: dict[str, Tensor], **options: bool) -> Any:
    """What a network without a head gives for (B, L) inputs, as the tokenizer names them; what it does not take is left out."""
    kind: Any = type(network)
    takes = accepted(kind)
    given: dict[str, Any] = {name: tensor for name, tensor in inputs.items() if name in takes}
    given |= {"use_cache": False} if "use_cache" in takes else {}
    return network(**given, **options, return_dict=True)


def layers(network: Any, inputs: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """(B, L, d) of each layer, embeddings first, as the network without a head gives them; the last is what a head reads.

    What a family pads within is cut off, and layers that see fewer vectors than tokens (of Funnel and CANINE) are left out.
    """
    outputs = run(network, inputs, output_hidden_states=True)
    last, length = outputs.last_hidden_state, inputs["input_ids"].shape[1]
    states = [state[:, :length] for state in outputs.hidden_states if state.ndim == 3 and state.shape[1] >= length]
    return (*states[:-1], last[:, :length])


@functools.cache
def _class(body: type[PreTrainedModel], config_class: type[PretrainedConfig]) -> type[PreTrainedModel]:
    parent = next(
        base for base in body.__mro__ if issubclass(base, PreTrainedModel) and base.__init__ is PreTrainedModel.__init__
    )
    prefix = parent.base_model_prefix or "model"

    def initialise(self: Any, config: Any) -> None:
        parent.__init__(self, config)
        bare = {"add_pooling_layer": False} if "add_pooling_layer" in inspect.signature(body).parameters else {}
        setattr(self, prefix, body(config, **bare))
        is_decoder = families.architecture(config.to_dict()) == "decoder"
        rates = (getattr(config, name, None) for name in _DROPOUTS)
        self.dropout = nn.Dropout(0.0 if is_decoder else next((rate for rate in rates if isinstance(rate, float)), 0.1))
        layer = nn.Linear(config.hidden_size, config.num_labels, bias=not is_decoder)
        setattr(self, "score" if is_decoder else "output_layer", layer)
        self.post_init()

    name = body.__name__.removesuffix("Model") + "PooledClassifier"
    members = {
        "__init__": initialise,
        "base_model_prefix": prefix,
        "config_class": config_class,
        "__module__": __name__,
    }
    return type(name, (parent,), members)
