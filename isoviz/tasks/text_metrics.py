"""Metrics of predicted texts: SQuAD's exact match and token F1, BLEU and chrF by sacrebleu, ROUGE by rouge-score.

The SQuAD rules are written here because no light library has them: the measure of a question is the best over its right
answers after lower-casing, dropping punctuation and articles and joining white space (Rajpurkar et al. 2016).
"""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def normalised(answer: str) -> str:
    """An answer as SQuAD compares it: lower case, without ASCII punctuation and English articles, single spaces."""
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_NO_PUNCTUATION)).split())


def token_f1(reference: str, prediction: str) -> float:
    """F1 of the bags of words of two answers; 1 if both are empty, 0 if one is."""
    right, got = normalised(reference).split(), normalised(prediction).split()
    if not right or not got:
        return float(right == got)
    common = sum((Counter(right) & Counter(got)).values())
    return 2 * common / (len(right) + len(got))


def exact_match(reference: str, prediction: str) -> float:
    """1 if both answers are the same after normalisation, else 0."""
    return float(normalised(reference) == normalised(prediction))


def spans(
    names: Sequence[str], references: Sequence[Sequence[str]], predictions: Sequence[str]
) -> dict[str, float | None]:
    """Means over questions of the best value over a question's right answers; a question without any wants ""."""
    measures = {"exact_match": exact_match, "f1": token_f1}
    return {
        name: sum(
            max(measures[name](answer, got) for answer in (answers or [""]))
            for answers, got in zip(references, predictions, strict=True)
        )
        / len(predictions)
        for name in names
    }


def generated(names: Sequence[str], references: Sequence[str], predictions: Sequence[str]) -> dict[str, float | None]:
    """BLEU and chrF of the whole corpus; ROUGE as the mean F measure over texts, with stemming."""
    values: dict[str, float | None] = {}
    for name in names:
        if name in ("bleu", "chrf"):
            values[name] = float(_sacrebleu(name).corpus_score(predictions, [references]).score)
    rouges = [name for name in names if name.startswith("rouge")]
    if rouges:
        from rouge_score.rouge_scorer import RougeScorer

        scorer = RougeScorer(rouges, use_stemmer=True)
        totals = dict.fromkeys(rouges, 0.0)
        for right, got in zip(references, predictions, strict=True):
            # only rougeLsum sees line ends; the others take them for spaces
            for name, score in scorer.score(on_lines(right), on_lines(got)).items():
                totals[name] += float(score.fmeasure)
        values |= {name: total / len(predictions) for name, total in totals.items()}
    return {name: values[name] for name in names}


def on_lines(text: str) -> str:
    """One sentence a line, as rougeLsum reads: a text with line ends as it is, else broken after each . ! or ?"""
    text = text.strip()
    return text if "\n" in text else _SENTENCE_END.sub("\n", text)


def signatures(names: Iterable[str]) -> dict[str, str]:
    """The exact definitions of BLEU, chrF and ROUGE, by sacrebleu's signature and rouge-score's version; other names are left out."""
    signatures_by_name: dict[str, str] = {}
    for name in names:
        if name in ("bleu", "chrf"):
            metric = _sacrebleu(name)
            metric.corpus_score(["a b c d"], [["a b c d"]])  # the signature's number of references is known only then
            signatures_by_name[name] = str(metric.get_signature())
        elif name.startswith("rouge"):
            signatures_by_name[name] = f"rouge-score:{version('rouge-score')}|stemmer:porter|value:f|aggregate:mean"
            if name == "rougeLsum":
                signatures_by_name[name] += "|lines:own or after .!?"
    return signatures_by_name


def _sacrebleu(name: str):  # type: ignore[no-untyped-def]  # its classes are imported here only
    from sacrebleu.metrics import BLEU, CHRF

    return BLEU() if name == "bleu" else CHRF()
