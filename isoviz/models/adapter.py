"""One model for every head kind: a network with a method between its tokens and its output layer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isoviz.errors import InputError, ModelError
from isoviz.metrics.collectives import gathered, own_share
from isoviz.models import folders, pooled, sentences
from isoviz.models.families import CLASSIFIERS, CausalPooling
from isoviz.models.hooks import Hooks, Representations
from isoviz.models.loading import Mismatch, load_bare, load_pretrained, reading
from isoviz.models.objectives import Objective
from isoviz.models.sources import ModelSource, configuration
from isoviz.models.wiring import Embedder, wire
from isoviz.tasks.kinds import KINDS, HeadKind, Kind

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

IGNORED = -100
"""Label of a target position that is padding."""


@dataclass
class Outputs:
    """The output of one forward pass; P counts the unpadded tokens (span) or target positions (seq2seq).

    Attributes:
        logits: (B, labels) for classes, (B, 1) for numbers, (B, L, 2) for spans (start and end; padding has the lowest
            number there is), (P, vocabulary) for texts, `head` for embeddings.
        loss: the objective, if labels were given.
        terms: the task loss and each weighted penalty, detached from nothing.
        reps: what the hooks saw.
        head: (B, h), or (P, h) for spans and texts: what the output layer read (after the method, before dropout).
        count: how many labels the task loss is the mean of: B, or P for texts.
    """

    logits: Tensor
    loss: Tensor | None
    terms: dict[str, Tensor]
    reps: Representations
    head: Tensor
    count: int


class HeadedModel(nn.Module):
    """Network → vectors that feed the output layer → method's transform → dropout → output layer, for every kind and family.

    Penalties are computed inside `forward`, because a wrapped (distributed) model synchronises only what its forward saw.

    Attributes:
        kind: what the network was loaded for.
        width: d, the size of the token vectors.
        head_width: h, the size of the vectors that feed the output layer.
        num_layers: layers whose token vectors are reported: the encoder's, of an encoder-decoder the decoder's.
        per_token: the output layer reads every token, not one vector per row.
        objective: the loss of embeddings, which the training rows decide.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        hooks: Hooks,
        kind: HeadKind = "classification",
        *,
        pooling: CausalPooling = "last",
    ) -> None:
        """`pooling`: of a decoder, see `isoviz.models.wiring.Causal`."""
        super().__init__()
        self.network = network
        self.kind = kind
        self.wiring = wire(network, kind, pooling)
        self.per_token = self.wiring.per_token
        self.width: int = self.wiring.width
        self.head_width: int = self.output.in_features
        self.num_layers: int = self.wiring.depth
        self.objective: Objective | None = None
        self.hooks = hooks
        hooks.attach(self)
        self.method_state = hooks.state  # under this name in checkpoints

    @property
    def output(self) -> nn.Linear:
        """The output layer. A property, so that its weights have one name only in the state."""
        return self.wiring.output

    @property
    def dropout(self) -> nn.Module:
        """The modules between the method and the output layer."""
        return self.wiring.dropout

    def represent(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
    ) -> Representations:
        """What the hooks see of a batch. Only texts need one of the last two: without either there is nothing to decode.

        Args:
            input_ids, attention_mask, token_type_ids: (B, L).
            labels: as for `forward`.
            decoder_input_ids: (B, T), all of them counting; otherwise they are the labels, one place to the right.
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        if self.kind == "seq2seq":
            if decoder_input_ids is not None:
                mask = torch.ones_like(decoder_input_ids)
            elif labels is not None:
                decoder_input_ids, mask = self.shifted(labels), (labels != IGNORED).long()
            else:
                raise ValueError("seq2seq: expected labels or decoder_input_ids, got neither")
            inputs |= {"decoder_input_ids": decoder_input_ids, "decoder_attention_mask": mask}
        if isinstance(self.wiring, Embedder):
            return self.wiring.encode(inputs, tokens=not self.training or self.hooks.reads_tokens())
        return self.wiring.encode(inputs)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        labels: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        penalise: bool = False,
    ) -> Outputs:
        """Logits, and with labels the loss.

        Args:
            input_ids, attention_mask, token_type_ids, decoder_input_ids: see `represent`.
            labels: (B,) class codes; (B,) numbers; (B, 2) first and last token of the answer, (0, 0) where there is none;
                (B, T) target tokens, padded with `IGNORED`; (B,) as `Objective` reads them.
            penalise: compute the method's penalties as well (training).
        """
        # of the class: FSDP replaces the object's own by one that may not be called within a forward pass
        represent = functools.partial(
            HeadedModel.represent, self, input_ids, attention_mask, token_type_ids, labels, decoder_input_ids
        )
        return self.read(represent(), attention_mask, labels, represent if penalise else None)

    def read(
        self,
        reps: Representations,
        attention_mask: Tensor,
        labels: Tensor | None = None,
        again: Callable[[], Representations] | None = None,
    ) -> Outputs:
        """What `forward` gives, of what the hooks see of a batch; with penalties if there is `again`, for their `Representations`."""
        head = self.hooks.transform(reps, self.training)
        logits = self.output(self.dropout(head)) if self.output.out_features else head
        if self.wiring.bias is not None:
            logits = logits + self.wiring.bias
        if self.kind == "span":
            keep = attention_mask.bool()
            lowest = torch.finfo(logits.dtype).min
            logits = logits.new_full((*keep.shape, 2), lowest).masked_scatter(keep.unsqueeze(-1), logits)
        if labels is None:
            return Outputs(logits, None, {}, reps, head, 0)
        if self.kind == "seq2seq":
            labels = labels[labels != IGNORED]
        task_loss = self.task_loss(logits, labels)
        # processes that train together have parts of a batch that differ by a row, and in their texts' lengths
        if self.training:
            task_loss = task_loss * own_share(len(labels), logits.device)
        penalties = self._penalties(replace(reps, again=again)) if again else {}
        loss = self.hooks.objective(task_loss, penalties)
        return Outputs(logits, loss, {"task": task_loss, **penalties}, reps, head, len(labels))

    def task_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of its kind; arguments as `Outputs.logits` and the labels of `forward`, for texts (P,) without padding."""
        if self.objective is None:
            return KINDS[self.kind].loss(logits.float(), labels)
        # float64 holds every code
        gathered_labels = gathered(labels.double()[:, None])[:, 0]
        return self.objective(gathered(logits.float()), gathered_labels)

    def _penalties(self, reps: Representations) -> dict[str, Tensor]:
        """The method's terms; of rows of several texts the mean over the columns, or a text would be pushed away from its partner."""
        columns = self.objective.columns if self.objective else 1
        if columns == 1:
            return self.hooks.penalties(reps)
        parts = [self.hooks.penalties(reps.column(first, columns)) for first in range(columns)]
        return {name: torch.stack([part[name] for part in parts]).mean() for name in parts[0]}

    def shifted(self, labels: Tensor) -> Tensor:
        """(B, T) what the decoder reads to predict (B, T) labels: the family's own start token, then the labels."""
        return self.network.prepare_decoder_input_ids_from_labels(labels=labels)  # type: ignore[operator]

    def generate(self, input_ids: Tensor, attention_mask: Tensor, **options: Any) -> Tensor:
        """(B, T) tokens that the network writes with the method's transform before its output layer, start token first.

        Args:
            options: of `transformers.GenerationConfig`. What it leaves open is the network's `generation_config`.
        """
        from transformers import GenerationConfig

        with self._transforming():
            return self.network.generate(  # type: ignore[operator]
                input_ids=input_ids, attention_mask=attention_mask, generation_config=GenerationConfig(**options)
            )

    @contextmanager
    def _transforming(self) -> Iterator[None]:
        """While it lasts, the network's own forward pass goes through the method as well."""

        def before(module: nn.Module, inputs: tuple[Tensor]) -> tuple[Tensor]:
            (hidden,) = inputs  # (B, T, h), T = 1 with a cache
            reps = Representations(
                cls=hidden[:, 0],
                pooled=hidden.flatten(0, 1),
                last_hidden=hidden,
                hidden_states=(hidden,),
                attention_mask=hidden.new_ones(hidden.shape[:2], dtype=torch.long),
                output_weight=self.output.weight,
            )
            return (self.hooks.transform(reps, training=False).unflatten(0, hidden.shape[:2]),)

        handle = self.output.register_forward_pre_hook(before)
        try:
            yield
        finally:
            handle.remove()


def load_tokenizer(source: ModelSource, direction: str | None = None) -> PreTrainedTokenizerBase:
    """The model's own tokenizer, set to the two languages of `direction` ("en-ro") if it marks languages.

    It pads on the right. A decoder's often has no token to pad with; another special token fills the places, because nothing reads them.

    InputError for a direction whose languages it does not know.
    """
    from transformers import AutoTokenizer

    with reading(source, "the tokenizer of "):
        tokenizer = AutoTokenizer.from_pretrained(source.location)
    tokenizer.padding_side = "right"
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token or tokenizer.bos_token
    codes = getattr(tokenizer, "lang_code_to_id", None)
    if direction and codes:
        by_language = {code.split("_")[0]: code for code in codes}
        unknown = [name for name in direction.split("-") if name not in by_language]
        if unknown:
            languages = ", ".join(sorted(by_language))
            raise InputError.at("direction", f"'{source.name}' has no language '{unknown[0]}' (it has {languages})")
        tokenizer.src_lang, tokenizer.tgt_lang = (by_language[name] for name in direction.split("-"))
    return tokenizer


def load_network(
    source: ModelSource, num_labels: int, seed: int, kind: HeadKind = "classification", *, allow_random: bool = False
) -> PreTrainedModel:
    """As `load_network_with_mismatch`, without what differs."""
    return load_network_with_mismatch(source, num_labels, seed, kind, allow_random=allow_random)[0]


def load_network_with_mismatch(
    source: ModelSource,
    num_labels: int,
    seed: int,
    kind: HeadKind = "classification",
    *,
    allow_random: bool = False,
    pooling: str = "auto",
    **options: Any,
) -> tuple[PreTrainedModel, Mismatch]:
    """The network with a head of that kind, in float32, and the encoder weights on which it differs from its checkpoint.

    New weights (the head's, a missing pooler's) are drawn from a generator of their own, seeded by `seed`, so that they are
    the same for every method. A network that writes forgets its habits of generation (least length, penalties of repetition,
    ...) and keeps the special tokens, so that models compare.

    Args:
        num_labels: outputs of a classification head; the other kinds know theirs.
        allow_random: accept a checkpoint that lacks encoder weights; they are drawn at random.
        pooling: of embeddings, as `sentences.modules_of` takes it.
        options: for `from_pretrained`.

    Raises:
        ModelError: the family has no such head, the files cannot be loaded, or the weights do not fit the network.
    """
    import transformers

    if problem := folders.head_problem(configuration(source), kind):
        raise ModelError.at("model", f"'{source.name}' {problem}")
    with reading(source):
        config = transformers.AutoConfig.from_pretrained(source.location, trust_remote_code=False)
        auto_class, of_head = class_for(config, kind, num_labels)
    network, mismatch = load_pretrained(auto_class, source, seed=seed, allow_random=allow_random, **of_head, **options)
    if kind == "embedding":
        on_meta = "device_map" in options  # compared with its checkpoint, not run
        network.sentence_modules = (
            torch.nn.Sequential() if on_meta else sentences.modules_of(source, network.config.hidden_size, pooling)
        )
        for name, parameter in network.named_parameters():
            if "pooler." in name:  # has no part in the vectors
                parameter.requires_grad_(False)
    if kind == "seq2seq":
        generation = network.generation_config
        token_settings = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "bad_words_ids")
        network.generation_config = transformers.GenerationConfig(
            **{name: getattr(generation, name, None) for name in token_settings}
        )
    return network, mismatch


def require_fit(source: ModelSource, kind: HeadKind) -> None:
    """Raise `ModelError` unless every encoder weight is there and has its place; a new head may be missing.

    transformers compares names and shapes on its meta device, from the files' headers: 0.1 s for 440 MB. Of a model on the hub nothing
    is known before it is fetched.
    """
    if source.kind not in ("bundled", "hub"):  # the tests of the factory hold ours to their checkpoints
        load_network_with_mismatch(source, 2, 0, kind, device_map="meta")


def mismatch_words(source: ModelSource, kinds: tuple[HeadKind, ...]) -> str:
    """The first mismatch of a local model as text, for these heads, or for reading alone if there are none; empty if all fits."""
    return next((str(mismatch) for kind in kinds or (None,) if (mismatch := _compared(source, kind))), "")


@functools.lru_cache(maxsize=64)
def _compared(source: ModelSource, kind: HeadKind | None) -> Mismatch:
    if kind is None:
        return load_bare(source, allow_random=True, device_map="meta")[1]
    # how many classes there are changes the head alone
    return load_network_with_mismatch(source, 2, 0, kind, allow_random=True, device_map="meta")[1]


def class_for(config: PretrainedConfig, kind: HeadKind, num_labels: int) -> tuple[Any, dict[str, Any]]:
    """The class that puts a head of that kind on a network, and the options that it wants.

    ModelError for a family that has none.
    """
    import transformers

    rules = KINDS[kind]
    outputs = num_labels if rules.outputs is None else rules.outputs
    needed = {"num_labels": outputs, **rules.options} if outputs else {}
    # two kinds share transformers' class, which not every family has
    if rules.auto_class == Kind.auto_class and config.model_type not in CLASSIFIERS and not pooled.has_score(config):
        return pooled.classifier_for(config), needed
    return getattr(transformers, rules.auto_class), needed
