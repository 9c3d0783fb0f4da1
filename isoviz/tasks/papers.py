"""The papers' tasks beside GLUE, by the column names and label codes of their data sets on the Hugging Face hub; and pairs of
sentences with a score for embedding models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from isoviz.tasks import demo, glue
from isoviz.tasks.kinds import Embedding
from isoviz.tasks.protocol import Task


def _translation(code: str, language: str) -> Task:
    """Either direction of a pair."""
    return Task(
        slug=f"wmt16/{code}-en",
        title=f"WMT16 {language}–English",
        description=f"Translate {language} news into English, or English news into {language}.",
        columns=("source", "target"),
        # Ding et al. 2022 print BLEU, of English to Romanian and of German to English
        metrics=("bleu", "chrf"),
        kind="seq2seq",
        directions=(f"{code}-en", f"en-{code}"),
        source="Bojar et al. 2016",
        cites=("bojar2016findings",),
        licence="Free for research purposes.",
        hub=("wmt/wmt16", f"{code}-en"),
    )


def _embedded(tasks: tuple[Task, ...], of: str, **changes: Any) -> Task:
    """A regression task's pairs for embedding models: each sentence with its own vector."""
    return replace(
        next(task for task in tasks if task.slug == of),
        kind=Embedding.slug,
        metrics=Embedding.metrics,
        scale=(0.0, 5.0),
        **changes,
    )


TASKS = (
    Task(
        slug="cnn_dailymail",
        title="CNN / Daily Mail",
        description="Summarise a news article in a few sentences.",
        columns=("source", "target"),
        places=(("source", "article"), ("target", "highlights")),
        # the R-L of Ding et al. 2022 is rougeL by its size, not rougeLsum
        metrics=("rouge1", "rouge2", "rougeL", "rougeLsum"),
        kind="seq2seq",
        guess="first three sentences",
        source="Hermann et al. 2015, See et al. 2017",
        cites=("hermann2015teaching", "see2017get"),
        licence="No licence given for the texts, which belong to CNN and the Daily Mail.",
        hub=("abisee/cnn_dailymail", "3.0.0"),
    ),
    Task(
        slug="squad",
        title="SQuAD 1.1",
        description="Which stretch of this paragraph answers the question?",
        columns=("question", "context"),
        # Rudman & Eickhoff 2024 print both and choose their checkpoint by exact match
        metrics=("exact_match", "f1"),
        kind="span",
        label="answers",
        source="Rajpurkar et al. 2016",
        cites=("rajpurkar2016squad",),
        licence="CC BY-SA 4.0.",
        hub=("rajpurkar/squad", "plain_text"),
    ),
    Task(
        slug="sst5",
        title="SST-5",
        description="How positive is this sentence of a film review, in five steps?",
        columns=("text",),
        label_names=("very negative", "negative", "neutral", "positive", "very positive"),
        metrics=("accuracy", "macro-f1"),
        source="Socher et al. 2013",
        cites=("socher2013recursive",),
        licence="No licence given; asks for a citation.",
        hub=("SetFit/sst5", "default"),
    ),
    _translation("ro", "Romanian"),
    _translation("de", "German"),
    _embedded(
        demo.TASKS,
        "demo/similarity",
        slug="demo/sts",
        rows="demo/similarity",
        title="Sentence embeddings (demo)",
        description="One vector per sentence, close in meaning as the cosine says. The sentences and scores are those of demo/similarity.",
    ),
    _embedded(
        glue.TASKS,
        "glue/stsb",
        slug="stsb",
        title="STS-B, embeddings",
        description="One vector per sentence: is the cosine of two high where people find them similar?",
    ),
)
