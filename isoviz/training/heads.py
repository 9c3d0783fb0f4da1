"""The head kinds in training: each encodes rows, predicts, and scores its predictions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
import torch

from isoviz.errors import InputError
from isoviz.models import prefixes
from isoviz.models.objectives import Objective
from isoviz.readouts import retrieval
from isoviz.readouts.image import ROUNDING, Image
from isoviz.readouts.retrieval import Relevance
from isoviz.tasks import metrics, spans
from isoviz.training.batches import Encoded, tokenise

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedTokenizerBase

    from isoviz.config import RunConfig
    from isoviz.models.adapter import HeadedModel, Outputs
    from isoviz.tasks.kinds import HeadKind
    from isoviz.tasks.protocol import Task

PART = 10_000
"""Rows that are tokenised at a stretch: between them there is time to tell how far it is, and to stop."""

Report = Callable[[int, int], None]
"""Called with rows done and rows in total."""


@dataclass(frozen=True)
class Answers:
    """A head's answer for each row.

    Attributes:
        values: one per row: class code, number or text.
        confidence: the probability given to the predicted class, one per row; None for kinds that have none.
        scores: the task's metrics, of kinds for which the values do not tell them.
    """

    values: list[Any]
    confidence: list[float] | None = None
    scores: dict[str, float | None] | None = None


class Head:
    """One head kind on one task. An *item* is what goes through the network once: a row, or a window of a long one.

    Attributes:
        kind: which one.
        per_token: see `HeadedModel`; then evaluation takes no larger batches than training, because it costs more memory.
        num_labels: outputs of the output layer, where the task decides it.
        together: consecutive items that are one row in every batch; then the loss is that of whole rows (`loss`).
        read: the columns that `tokenise` looks at.
        generation: how texts are written, as options of `transformers.GenerationConfig`; `prepare` fills it in.
    """

    kind: ClassVar[HeadKind]
    per_token = False
    together = 1

    def __init__(self, task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> None:
        self.task = task
        self.tokenizer = tokenizer
        self.config = config
        self.num_labels = len(task.label_names)
        self.read = task.columns
        self.generation: dict[str, int | None] = {}

    def encode(self, frame: pd.DataFrame, report: Report = lambda done, total: None) -> Encoded:
        """Tokens and labels of these rows.

        Args:
            report: called where tokenising takes a while; may raise to abort.
        """
        read = self.prefixed(frame[list(self.read)].reset_index(drop=True))
        tokens: dict[str, list[Any]] = {}
        for begin in range(0, len(read), PART):
            for name, lists in self.tokenise(read.iloc[begin : begin + PART]).items():
                tokens.setdefault(name, []).extend(lists)
            if len(read) > PART:
                report(min(begin + PART, len(read)), len(read))
        return self.assemble(frame, tokens)

    def prefixed(self, read: pd.DataFrame) -> pd.DataFrame:
        """The columns that are read, with the configuration's prefixes before their texts."""
        for column, prefix in zip(self.task.inputs, prefixes.split_prefix(self.config.prefix), strict=False):
            if prefix:
                read[column] = prefix + " " + read[column]
        return read

    def tokenise(self, read: pd.DataFrame) -> dict[str, list[Any]]:
        """The model's inputs and everything that is read off them, as lists with an entry per item.

        Args:
            read: the columns `read` of some rows, indexed by their numbers among all.
        """
        return tokenise(read, self.read, self.tokenizer, self.config.max_length)

    def assemble(self, frame: pd.DataFrame, tokens: dict[str, list[Any]]) -> Encoded:
        """The items, from what `tokenise` made of these rows."""
        return Encoded(tokens, frame["label"].to_numpy(), np.arange(len(frame)))

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
        if answers.scores is not None:
            return answers.scores
        references = frame[self.task.reference].tolist()
        return metrics.compute(self.task.metrics, references, answers.values, kind=self.task.kind)

    def evaluate_widths(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> dict[str, float | None]:
        """`METRIC_WIDTH` → value, for every metric at each of the configuration's widths."""
        return {
            f"{name}_{width}": value
            for width in self.config.prefixes
            for name, value in self.evaluate(
                frame, self.answers(frame, encoded, [vector[:width] for vector in predictions])
            ).items()
        }

    def loss(self, model: HeadedModel, encoded: Encoded, predictions: list[Any]) -> float:
        """The task loss of all rows in batches as in training, if items of several form one."""
        raise NotImplementedError

    def primary_of(self, logits: Tensor, labels: Tensor) -> float | None:
        """The primary metric of logits, for kinds with one vector per row: a method's second stage."""
        predicted = self.decide(logits).tolist()
        return metrics.compute([self.task.primary], labels.tolist(), predicted, self.task.kind)[self.task.primary]

    def decide(self, logits: Tensor) -> Tensor:
        """(B,) answers for logits (B, labels), for kinds with one vector per row."""
        raise NotImplementedError


class Classification(Head):
    """Labels are codes (n,) int64; a prediction is a code with its probability."""

    kind = "classification"

    def decide(self, logits: Tensor) -> Tensor:
        return logits.argmax(dim=1)

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        shares = outputs.logits.float().softmax(dim=1).max(dim=1).values
        return list(zip(self.decide(outputs.logits).tolist(), shares.tolist(), strict=True))

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        return Answers([code for code, _ in predictions], [share for _, share in predictions])


class Regression(Head):
    """Labels are numbers (n,) float64, and so are predictions."""

    kind = "regression"

    def decide(self, logits: Tensor) -> Tensor:
        return logits.squeeze(-1).float()

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        return self.decide(outputs.logits).tolist()


@dataclass
class EncodedSpans(Encoded):
    """Windows with (m, 2) first and last token of the answer as labels."""

    features: spans.SpanFeatures


class Span(Head):
    """An item is a window; it predicts (start, end) logits of its tokens, two (L,) float32."""

    kind = "span"
    per_token = True

    def __init__(self, task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> None:
        super().__init__(task, tokenizer, config)
        self.read = (*task.columns, "answer_starts", "answer_texts")

    def prefixed(self, read: pd.DataFrame) -> pd.DataFrame:
        """Both around the question: the answers' places are counted from where the context begins."""
        before, after = prefixes.split_prefix(self.config.prefix)
        question = self.task.columns[0]
        read[question] = [" ".join(filter(None, (before, text, after))) for text in read[question]]
        return read

    def tokenise(self, read: pd.DataFrame) -> dict[str, list[Any]]:
        questions, contexts, starts, texts = (read[column].tolist() for column in self.read)
        features = spans.features(questions, contexts, self.tokenizer, self.config.max_length, self.config.doc_stride)
        return {
            **features.inputs,
            "labels": spans.gold(features, starts, texts).tolist(),
            "row": read.index.to_numpy()[features.row].tolist(),
            "offsets": features.offsets,
        }

    def assemble(self, frame: pd.DataFrame, tokens: dict[str, list[Any]]) -> EncodedSpans:
        labels, row = (np.asarray(tokens.pop(name), dtype=np.int64) for name in ("labels", "row"))
        offsets = tokens.pop("offsets")
        return EncodedSpans(tokens, labels, row, spans.SpanFeatures(tokens, row, offsets))

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        logits = outputs.logits.float().cpu().numpy()
        lengths = batch["attention_mask"].sum(dim=1).tolist()
        return [(row[:length, 0], row[:length, 1]) for row, length in zip(logits, lengths, strict=True)]

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        assert isinstance(encoded, EncodedSpans)
        starts, ends = ([pair[end] for pair in predictions] for end in (0, 1))
        return Answers(spans.best_answers(encoded.features, frame[self.task.columns[1]].tolist(), starts, ends))


class Generation(Head):
    """Labels are token lists of the targets, special tokens included; a prediction is a text."""

    kind = "seq2seq"
    per_token = True

    def tokenise(self, read: pd.DataFrame) -> dict[str, list[Any]]:
        source, target = (read[column].tolist() for column in self.read)
        limit = {"truncation": True, "max_length": self.config.max_length}
        tokens = self.tokenizer(source, **limit)
        return {
            **{name: tokens[name] for name in ("input_ids", "attention_mask")},
            "labels": self.tokenizer(text_target=target, **limit)["input_ids"],
        }

    def assemble(self, frame: pd.DataFrame, tokens: dict[str, list[Any]]) -> Encoded:
        labels = tokens.pop("labels")
        return Encoded(tokens, labels, np.arange(len(frame)))

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


class Embedding(Head):
    """An item is a text of a row; labels and predictions are as `Objective` and `isoviz.tasks.kinds.Embedding` say."""

    kind = "embedding"

    def __init__(self, task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> None:
        super().__init__(task, tokenizer, config)
        self.together = len(task.columns)
        self.codes: dict[str, int] = {}
        self.known: set[tuple[int, int]] = set()

    def prefixed(self, read: pd.DataFrame) -> pd.DataFrame:
        """That of the second text is that of a negative, too."""
        before = prefixes.split_prefix(self.config.prefix)
        for place, column in enumerate(self.read):
            if prefix := before[min(place, 1)]:
                read[column] = prefix + " " + read[column]
        return read

    def tokenise(self, read: pd.DataFrame) -> dict[str, list[Any]]:
        texts = pd.DataFrame({"text": read[list(self.read)].to_numpy().ravel()})
        return tokenise(texts, ["text"], self.tokenizer, self.config.max_length)

    def assemble(self, frame: pd.DataFrame, tokens: dict[str, list[Any]]) -> Encoded:
        if self.task.label:
            labels = np.repeat(frame["label"].to_numpy(dtype=np.float64), self.together)
        else:
            labels = self._codes(frame).ravel()
            self.known.update(map(tuple, self._codes(frame)[:, :2].tolist()))
        return Encoded(tokens, labels, np.repeat(np.arange(len(frame)), self.together))

    def _codes(self, frame: pd.DataFrame) -> np.ndarray:
        """(rows, columns): a number for each text, the same for equal ones of all splits."""
        texts = frame[list(self.read)].to_numpy()
        return np.array([[self.codes.setdefault(text, len(self.codes)) for text in row] for row in texts])

    def prepare(self, model: HeadedModel, train: Encoded) -> None:
        loss, scale = self.config.loss, self.task.scale
        if loss == "auto":
            loss = "cosent" if self.task.label else "infonce"
        if loss == "cosine" and scale is None and not (train.labels.min() >= 0 and train.labels.max() <= 1):  # type: ignore[union-attr]
            raise InputError(
                f"loss: cosine compares scores with cosines; '{self.task.label}' must lie between 0 and 1", field="loss"
            )
        widths = self.config.prefixes
        if not all(0 < width < model.head_width for width in widths):
            raise InputError(
                f"widths: must be below the {model.head_width} dimensions of the model's vectors (got {self.config.widths})",
                field="widths",
            )
        model.objective = Objective(loss, self.together, self.config.temperature, scale, self.known, widths)

    def predict(self, model: HeadedModel, outputs: Outputs, batch: dict[str, Tensor]) -> list[Any]:
        return list(outputs.head.float().cpu().numpy())

    def loss(self, model: HeadedModel, encoded: Encoded, predictions: list[Any]) -> float:
        assert model.objective is not None
        vectors, labels = torch.from_numpy(np.stack(predictions)), torch.from_numpy(np.asarray(encoded.labels))
        size = self.together * self.config.batch_size
        parts = zip(vectors.split(size), labels.split(size), strict=True)
        return sum(float(model.objective(*part)) * len(part[1]) for part in parts) / len(labels)

    def answers(self, frame: pd.DataFrame, encoded: Encoded, predictions: list[Any]) -> Answers:
        vectors = np.stack(predictions)
        if self.task.label:
            pairs = torch.from_numpy(vectors).unflatten(0, (-1, self.together)).double()
            return Answers(torch.cosine_similarity(pairs[:, 0], pairs[:, 1]).tolist())
        ranks, scores = ranking(vectors, self._codes(frame))
        return Answers(ranks, scores={name: scores[name] for name in self.task.metrics})


def ranking(vectors: np.ndarray, codes: np.ndarray) -> tuple[list[float], dict[str, float | None]]:
    """How well first texts find second ones by cosine among all other distinct texts of the rows (not the first ones), ties counted in
    every order: the rank of each row's second text, and the means over distinct first texts of nDCG, MRR (both at 10) and recalls.

    Args:
        vectors: (rows · columns, h), row by row.
        codes: (rows, columns), equal for equal texts.
    """
    queries, query = np.unique(codes[:, 0], return_inverse=True)
    documents, found = np.unique(codes[:, 1:], return_inverse=True)
    document = found.reshape(len(codes), -1)[:, 0]
    places = np.arange(codes.size).reshape(codes.shape)
    at_query = places[np.unique(codes[:, 0], return_index=True)[1], 0]
    at_document = places[:, 1:].ravel()[np.unique(codes[:, 1:], return_index=True)[1]]
    image = Image(np.concatenate([vectors[at_query], vectors[at_document]]))
    rows = np.arange(len(queries) + len(documents))
    pairs = np.unique(np.stack([query, document], axis=1), axis=0)
    relevance = Relevance(rows[: len(queries)], rows[len(queries) :], pairs[:, 0], pairs[:, 1], np.ones(len(pairs)))
    slugs = [f"{name}_cosine" for name in ("ndcg", "mrr", "recall1", "recall10")]
    measured = retrieval.measure(image, relevance)
    unit, ranks = image.unit, np.empty(len(codes))
    for start in range(0, len(codes), 1000):
        part = slice(start, start + 1000)
        scores = unit[query[part]] @ unit[len(queries) :].T
        own = np.take_along_axis(scores, document[part, None], axis=1)
        above = (scores > own + ROUNDING).sum(axis=1)
        ranks[part] = above + ((scores >= own - ROUNDING).sum(axis=1) - above + 1) / 2
    return ranks.tolist(), {slug.removesuffix("_cosine"): measured[slug].value for slug in slugs}


def head_for(task: Task, tokenizer: PreTrainedTokenizerBase, config: RunConfig) -> Head:
    """The head of a task's kind."""
    return next(head for head in Head.__subclasses__() if head.kind == task.kind)(task, tokenizer, config)
