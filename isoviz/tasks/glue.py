"""GLUE, by the column names, label codes and splits of the Hugging Face data set nyu-mll/glue."""

from __future__ import annotations

from typing import Any

from isoviz.tasks.protocol import Task

_PAIR = ("sentence1", "sentence2")


def _glue(name: str, title: str, source: str, cites: tuple[str, ...], **options: Any) -> Task:
    cites = (*cites, "wang2019glue")
    return Task(
        slug=f"glue/{name}", title=title, source=f"{source}, GLUE", cites=cites, hub=("nyu-mll/glue", name), **options
    )


TASKS = (
    _glue(
        "cola",
        "CoLA",
        description="Is this English sentence acceptable? From published linguistics works.",
        columns=("sentence",),
        label_names=("unacceptable", "acceptable"),
        metrics=("matthews", "accuracy"),
        source="Warstadt et al. 2019",
        cites=("warstadt2019neural",),
        licence="No licence; excerpts of published works, research use expected to be fair use.",
    ),
    _glue(
        "sst2",
        "SST-2",
        description="Is this phrase of a film review positive?",
        columns=("sentence",),
        label_names=("negative", "positive"),
        metrics=("accuracy", "matthews"),
        source="Socher et al. 2013",
        cites=("socher2013recursive",),
        licence="No licence given; asks for a citation.",
    ),
    _glue(
        "mrpc",
        "MRPC",
        description="Do these two news sentences mean the same?",
        columns=_PAIR,
        label_names=("not_equivalent", "equivalent"),
        # accuracy in three papers, F1 in Ding et al. 2022: both are kept
        metrics=("accuracy", "f1"),
        source="Dolan & Brockett 2005",
        cites=("dolan2005automatically",),
        licence="Microsoft Research Paraphrase Corpus agreement.",
    ),
    _glue(
        "qqp",
        "QQP",
        description="Do these two questions ask the same?",
        columns=("question1", "question2"),
        label_names=("not_duplicate", "duplicate"),
        metrics=("accuracy", "f1"),
        source="Iyer et al. 2017 (Quora)",
        cites=("iyer2017quora",),
        licence="Quora's terms of service; non-commercial use.",
    ),
    _glue(
        "stsb",
        "STS-B",
        description="How similar in meaning are these two sentences, from 0 to 5?",
        columns=_PAIR,
        # Pearson in 001 and 003; 002 does not say which
        metrics=("pearson", "spearman", "mse"),
        kind="regression",
        source="Cer et al. 2017",
        cites=("cer2017semeval",),
        licence="Scores CC BY-SA 4.0; each part of the text has its own licence.",
    ),
    _glue(
        "mnli",
        "MNLI",
        description="Does the second sentence follow from the first, contradict it, or neither? Matched and mismatched genres.",
        columns=("premise", "hypothesis"),
        label_names=("entailment", "neutral", "contradiction"),
        metrics=("accuracy", "macro-f1"),
        validation="validation_matched",
        extra=(("mismatched", "validation_mismatched"),),
        source="Williams et al. 2018",
        cites=("williams2018broad",),
        licence="OANC's licence, CC BY-SA 3.0 and CC BY 3.0, by genre.",
    ),
    _glue(
        "qnli",
        "QNLI",
        description="Does the sentence answer the question? Made from SQuAD.",
        columns=("question", "sentence"),
        label_names=("entailment", "not_entailment"),
        metrics=("accuracy", "matthews"),
        source="Rajpurkar et al. 2016",
        cites=("rajpurkar2016squad",),
        licence="CC BY-SA 4.0.",
    ),
    _glue(
        "rte",
        "RTE",
        description="Does the second text follow from the first?",
        columns=_PAIR,
        label_names=("entailment", "not_entailment"),
        metrics=("accuracy", "matthews"),
        source="Dagan et al. 2005 to Bentivogli et al. 2009",
        cites=("dagan2006pascal", "barhaim2006second", "giampiccolo2007third", "bentivogli2009fifth"),
        licence="No licence given; research use.",
    ),
    _glue(
        "wnli",
        "WNLI",
        description="Does the sentence with the pronoun replaced follow? Rows that share a sentence mostly have opposite labels.",
        columns=_PAIR,
        label_names=("not_entailment", "entailment"),
        metrics=("accuracy", "matthews"),
        source="Levesque et al. 2012",
        cites=("levesque2012winograd",),
        licence="CC BY 4.0.",
    ),
)
