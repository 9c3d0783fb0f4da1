"""The head kinds, one object each: what is predicted, and all that rows, scores and models of it have of their own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias, get_args

from isoviz.tasks.chance import AT_CHANCE, at_chance
from isoviz.tasks.text_metrics import exact_match, on_lines, token_f1

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from torch import Tensor

HeadKind = Literal["classification", "regression", "span", "seq2seq", "embedding"]
"""What is predicted, and so what sits on the encoder: one of several classes, one number, a stretch of the second text, a text of
its own, or nothing but one vector per text.
"""
HEAD_KINDS: tuple[HeadKind, ...] = get_args(HeadKind)
Compared: TypeAlias = "tuple[dict[str, Any], np.ndarray]"
CONSTANT: Final = 1e-3
"""Numbers that spread less than this share of the labels' spread are one number."""


class Kind:
    """One head kind; the defaults are those of labels with one vector per row. `task` is an `isoviz.tasks.protocol.Task`.

    Attributes:
        slug, title: name in configurations; what is predicted, in a few words.
        question, columns, metrics: of a task of a person's own: description, names of its texts, metrics (the first is the primary).
        guess: the simple guess (`isoviz.tasks.outcomes`) that a model must beat.
        answers: the raw column beside the texts: `label`, `answers`, or none.
        reference: the column of a checked frame that predictions are compared with; "" for the last text.
        inputs: number of text columns that an encoder reads at once.
        correlation: the metric by which chance is judged, if any.
        per_row: the output layer reads one vector per row.
        auto_class, options: transformers' class of its network, and what it wants to know.
        outputs: numbers that the output layer gives; None if the task decides, 0 if it is a part of the network.
        settings: fields of the configuration for this kind alone.
    """

    slug: ClassVar[HeadKind]
    title: ClassVar[str]
    question: ClassVar[str]
    columns: ClassVar[tuple[str, ...]] = ("text", "second")
    metrics: ClassVar[tuple[str, ...]]
    guess: ClassVar[str]
    answers: ClassVar[str | None] = "label"
    reference: ClassVar[str] = "label"
    inputs: ClassVar[int] = 2
    correlation: ClassVar[str] = ""
    per_row: ClassVar[bool] = True
    auto_class: ClassVar[str] = "AutoModelForSequenceClassification"
    options: ClassVar[Mapping[str, Any]] = {}
    outputs: ClassVar[int | None] = None
    settings: ClassVar[tuple[str, ...]] = ()

    def check(self, frame: pd.DataFrame, task: Any, checked: dict[str, Any], refuse: Any) -> None:
        """Add the checked columns beside the texts to `checked`; `refuse(bad, column, what, values)` for rows at fault."""

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        """The answer of the task's simple guess for each validation row."""
        raise NotImplementedError

    def constant(self, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
        """Why predictions do not depend on the row or do no better than chance; None if they do."""
        from isoviz.tasks import metrics

        score = metrics.compute([self.correlation], rows["label"].to_numpy(), predictions, self.slug)
        return AT_CHANCE if at_chance(score[self.correlation], len(rows)) else None

    def errors(self, task: Any, rows: pd.DataFrame, predictions: Any, confidence: Any) -> Compared:
        """Columns that compare predictions with the right answers, and how bad each row is."""
        import numpy as np

        return {"prediction": list(predictions)}, np.zeros(len(rows))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of float32 logits: by default the cross-entropy; arguments as in `HeadedModel.forward`."""
        from torch.nn.functional import cross_entropy

        return cross_entropy(logits, labels)


class Classification(Kind):
    """One of several classes, as codes (n,) int64."""

    slug = "classification"
    title = "class"
    question = "Which class does the text have?"
    metrics = ("accuracy", "macro-f1", "matthews")
    guess = "majority"
    correlation = "matthews"

    def check(self, frame: pd.DataFrame, task: Any, checked: dict[str, Any], refuse: Any) -> None:
        """Classes by name, or by code."""
        import pandas as pd

        column, labels, names = task.label, frame["label"], task.label_names
        refuse(labels.isna(), column, f"empty '{column}'")
        if not task.by_name and pd.api.types.is_numeric_dtype(labels) and not pd.api.types.is_bool_dtype(labels):
            codes = labels
        else:
            by_name = {} if task.by_name else {str(code): code for code in range(len(names))}
            by_name = {name: code for code, name in enumerate(names)} | by_name
            codes = labels.map(as_name).map(by_name)
        if not task.by_name:
            refuse(pd.to_numeric(labels, errors="coerce") == -1, column, _hidden(column), list(labels))
        allowed = ", ".join(names) if task.by_name else ", ".join(f"{code} = {name}" for code, name in enumerate(names))
        refuse(~codes.isin(range(len(names))), column, f"'{column}' must be one of {allowed}", list(labels))
        checked["label"] = codes

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        import numpy as np

        classes, counts = np.unique(train["label"].to_numpy(), return_counts=True)
        return np.full(len(validation), classes[counts.argmax()])

    def constant(self, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
        return "predicts one class" if len(set(predictions)) == 1 else super().constant(rows, predictions)

    def errors(self, task: Any, rows: pd.DataFrame, predictions: Any, confidence: Any) -> Compared:
        """Wrong and sure ones first, right and sure ones last."""
        import numpy as np

        labels, codes = rows["label"].to_numpy(), np.asarray(predictions)
        wrong = labels != codes
        badness = wrong.astype(np.float64)
        if confidence is not None:
            badness += np.where(wrong, 1, -1) * np.asarray(confidence, dtype=np.float64)
        names = {
            name: [task.label_names[code] for code in of] for name, of in (("label", labels), ("prediction", codes))
        }
        return names | {"correct": ~wrong}, badness


class Regression(Kind):
    """One number (n,) float64."""

    slug = "regression"
    title = "number"
    question = "Which number does the text have?"
    metrics = ("pearson", "spearman", "mse")
    guess = "mean"
    correlation = "pearson"
    outputs = 1
    options = MappingProxyType({"problem_type": "regression"})

    def check(self, frame: pd.DataFrame, task: Any, checked: dict[str, Any], refuse: Any) -> None:
        """Finite numbers."""
        import numpy as np
        import pandas as pd

        labels = frame["label"]
        refuse(labels.isna(), task.label, f"empty '{task.label}'")
        numbers = pd.to_numeric(labels, errors="coerce").astype("float64")
        refuse(~np.isfinite(numbers.fillna(np.nan)), task.label, f"'{task.label}' must be a number", list(labels))
        if task.hub is not None:  # of an own file -1 may be a number like any other
            refuse(numbers == -1, task.label, _hidden(task.label), list(labels))
        checked["label"] = numbers

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        import numpy as np

        return np.full(len(validation), train["label"].mean())

    def constant(self, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
        import numpy as np

        spread = np.ptp(np.asarray(predictions, dtype=np.float64))
        constant = spread <= CONSTANT * np.ptp(rows["label"].to_numpy())
        return "predicts one number" if constant else super().constant(rows, predictions)

    def errors(self, task: Any, rows: pd.DataFrame, predictions: Any, confidence: Any) -> Compared:
        import numpy as np

        true, predicted = (np.asarray(values, dtype=np.float64) for values in (rows["label"], predictions))
        off = predicted - true
        return {"label": true, "prediction": predicted, "residual": off}, np.abs(off)

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The squared error."""
        from torch.nn.functional import mse_loss

        return mse_loss(logits.squeeze(-1), labels.float())


class Texts(Kind):
    """Kinds whose answers are texts; `same` is what is wrong with predictions that are all empty, or all the same."""

    per_row = False
    same: ClassVar[tuple[str, str]]

    def constant(self, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
        texts = {text.strip() for text in predictions}
        return self.same[texts != {""}] if len(texts) <= 1 else None


class Span(Texts):
    """A stretch of the second text."""

    slug = "span"
    title = "answer in the second text"
    question = "Which stretch of the context answers the question?"
    columns = ("question", "context")
    metrics = ("exact_match", "f1")
    guess = "whole context"
    answers = "answers"
    reference = "answer_texts"
    auto_class = "AutoModelForQuestionAnswering"
    outputs = 2
    settings = ("doc_stride",)
    same = ("answers nothing", "gives every question the same answer")

    def check(self, frame: pd.DataFrame, task: Any, checked: dict[str, Any], refuse: Any) -> None:
        """Answers where they are said to stand."""
        import pandas as pd

        # missing: refused above
        contexts = [text if isinstance(text, str) else "" for text in checked[task.columns[1]]]
        parsed = [answers(value, context) for value, context in zip(frame["answers"], contexts, strict=True)]
        faults = [problem for _, _, problem in parsed]
        refuse([problem == "" for problem in faults], task.label, f"no answer in '{task.label}'")
        misplaced = f"an answer of '{task.label}' is not in the context at its stated position"
        refuse([problem is not None for problem in faults], task.label, misplaced, faults)
        for place, column in enumerate(("answer_texts", "answer_starts")):
            checked[column] = pd.Series([answer[place] for answer in parsed], index=frame.index, dtype="object")
        rows = pd.Series([str(int(number)) for number in frame.index], index=frame.index)
        checked["id"] = frame["id"].astype(str) if "id" in frame.columns else rows

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        return validation[task.columns[1]].tolist()

    def errors(self, task: Any, rows: pd.DataFrame, predictions: Any, confidence: Any) -> Compared:
        import numpy as np

        pairs = list(zip(rows["answer_texts"], predictions, strict=True))
        table = {
            "label": [" / ".join(dict.fromkeys(texts)) for texts, _ in pairs],
            "prediction": list(predictions),
            "correct": [any(exact_match(text, got) == 1 for text in texts) for texts, got in pairs],
            "f1": [max(token_f1(text, got) for text in texts) for texts, got in pairs],
        }
        return table, -np.asarray(table["f1"])

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The mean of the first and the last token's cross-entropies."""
        ends = (super(Span, self).loss(logits[..., end], labels[:, end]) for end in (0, 1))
        return sum(ends, start=logits.new_zeros(())) / 2


class Seq2Seq(Texts):
    """A text of its own."""

    slug = "seq2seq"
    title = "text to generate"
    question = "Write the second text from the first."
    columns = ("source", "target")
    metrics = ("rouge1", "rouge2", "rougeL", "rougeLsum", "bleu", "chrf")
    guess = "source"
    answers = None
    reference = ""
    inputs = 1
    auto_class = "AutoModelForSeq2SeqLM"
    outputs = 0
    settings = ("num_beams",)
    same = ("writes nothing", "writes the same text for every row")

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        sources = validation[task.columns[0]]
        if task.simple_guess == "first three sentences":
            return ["\n".join(on_lines(text).split("\n")[:3]) for text in sources]
        if task.simple_guess != "source":
            raise ValueError(f"'{task.simple_guess}' is not a simple guess")
        return sources.tolist()


class Embedding(Kind):
    """Vectors that are close where texts belong together: those of a row, or as much as its score says.

    A prediction is the cosine of a row's two texts; without scores the rank of its second text among all texts to be found, and
    `ranked` are the metrics. `losses` are those of rows with scores.
    """

    slug = "embedding"
    title = "vectors, close for texts that belong together"
    question = "Which texts belong together?"
    columns = ("first", "second", "third")
    metrics = ("spearman", "pearson")
    ranked: ClassVar[tuple[str, ...]] = ("ndcg", "mrr", "recall1", "recall10")
    losses: ClassVar[tuple[str, ...]] = ("cosent", "angle", "cosine")
    guess = "tf-idf"
    inputs = 1
    correlation = "spearman"
    per_row = False
    auto_class = "AutoModel"
    outputs = 0
    settings = ("loss", "temperature", "widths")

    def check(self, frame: pd.DataFrame, task: Any, checked: dict[str, Any], refuse: Any) -> None:
        """Scores, where there are any; a negative that is none."""
        if task.label:
            Regression().check(frame, task, checked, refuse)
        for column in task.columns[2:]:
            bad = checked[column] == checked[task.columns[1]]
            refuse(
                bad, column, f"'{column}' is the text that belongs to the first, not a negative", list(frame[column])
            )

    def simple_guess(self, task: Any, train: pd.DataFrame, validation: pd.DataFrame) -> Any:
        """The cosine of the texts' weighted word counts, if there are scores."""
        import numpy as np

        if not task.label:
            return None
        from sklearn.feature_extraction.text import TfidfVectorizer

        words = TfidfVectorizer(token_pattern=r"\S+").fit(train[list(task.columns)].to_numpy().ravel())
        first, second = (words.transform(validation[column]) for column in task.columns)
        return np.asarray(first.multiply(second).sum(axis=1)).ravel()

    def constant(self, rows: pd.DataFrame, predictions: Sequence[Any]) -> str | None:
        import numpy as np

        if np.ptp(np.asarray(predictions, dtype=np.float64)) <= CONSTANT:
            return "gives all texts the same vector"
        return super().constant(rows, predictions) if "label" in rows else None

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Never: that of a row depends on its batch (`isoviz.models.objectives.Objective`)."""
        raise ValueError("embeddings have no loss without `HeadedModel.objective`")

    def errors(self, task: Any, rows: pd.DataFrame, predictions: Any, confidence: Any) -> Compared:
        """Pairs whose cosine is out of order first; without scores, those found last."""
        import numpy as np
        from scipy.stats import rankdata

        found = np.asarray(predictions, dtype=np.float64)
        if not task.label:
            return {"rank": found}, found
        labels = rows["label"].to_numpy()
        off = (rankdata(found) - rankdata(labels)) / max(1, len(rows) - 1)
        return {"label": labels, "prediction": found, "off": off}, np.abs(off)


KINDS: Mapping[str, Kind] = MappingProxyType(
    {kind.slug: kind() for kind in (Classification, Regression, Span, Seq2Seq, Embedding)}
)


def _hidden(column: str) -> str:
    return f"'{column}' is -1, a hidden label of a test split; labels are needed"


def as_name(value: object) -> str:
    """A class as people write it: `3` for 3 and 3.0."""
    import numpy as np

    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def answers(value: object, context: str) -> tuple[list[str], list[int], str | None]:
    """Texts and starts of a question's answers, and what is wrong with them: None, "" if there are none, or the answer.

    An answer is taken from `{"text": [...], "answer_start": [...]}`, from a list of `{"text", "answer_start"}`, from either
    as JSON text, or from plain text, which then counts where it first stands in the context.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError):  # else it is plain text that begins with a bracket
            value = json.loads(value)
    if isinstance(value, str):
        start = context.find(value.strip())
        return [value.strip()], [start], "" if not value.strip() else None if start >= 0 else value
    texts, starts = _lists(value)
    if not texts or len(texts) != len(starts):
        return [], [], ""
    for text, start in zip(texts, starts, strict=True):
        if not text.strip() or start < 0 or context[start : start + len(text)] != text:
            return texts, starts, text
    return texts, starts, None


def _lists(value: object) -> tuple[list[str], list[int]]:
    import numpy as np

    try:
        if isinstance(value, dict):
            return [str(text) for text in _many(value["text"])], [int(start) for start in _many(value["answer_start"])]
        if isinstance(value, (list, np.ndarray)):
            return [str(answer["text"]) for answer in value], [int(answer["answer_start"]) for answer in value]
    except (KeyError, TypeError, ValueError, OverflowError):
        pass
    return [], []


def _many(value: Any) -> list[Any]:
    import numpy as np

    return list(value) if isinstance(value, (list, tuple, np.ndarray)) else [value]
