"""The effect of each transform on a sentence embedding model: similarity on STS-B, retrieval on SQuAD, and IsoScore.

    python benchmarks/embedding_tables.py --model DIR --stsb DIR --squad DIR [--out docs]

DIR of a set holds train and validation files with the column names of the Hugging Face data sets. Transforms are fitted without
labels and never on the pairs or questions of the evaluation: on the sentences of STS-B's training split that are not in its
validation split; for SQuAD once on the paragraphs to be searched, once on the questions and paragraphs of its training
split. Every difference is from no transform on the same pairs, questions or rows, with the 95 % interval of a paired bootstrap (of
IsoScore: a jackknife).
Spearman of the untouched vectors must be within 0.002 of sentence-transformers' own evaluator, or the exit status is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _report import Table, machine, options, publish
from numpy.typing import NDArray
from scipy import stats

from isoviz import metrics, tasks
from isoviz.models import sentences, sources
from isoviz.models.extract import encode
from isoviz.posthoc import chain
from isoviz.readouts import Annotations, RatedPairs, Relevance, measure
from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Difference, difference
from isoviz.whatif import chains

Points = NDArray[np.floating]

CUT = 128
GROUPS = 50
"""Of rows, left out in turn for the interval of IsoScore."""
BAR = 0.002
CHAINS = {
    "none": "none",
    "centred": "all_but_the_top:remove=0",
    "ZCA, ε = 0": "zca",
    "ZCA, ε = mean variance": "zca:eps={variance}",
    "ZCA, ε = 0.1": "zca:eps=0.1",
    "ZCA, ε = 1": "zca:eps=1",
    "all-but-the-top, 1": "all_but_the_top:remove=1",
    "all-but-the-top, 3": "all_but_the_top:remove=3",
    "all-but-the-top, 10": "all_but_the_top:remove=10",
    "IsoBN": "isobn",
    f"first {CUT} dimensions": "",
}


def maps(fit: Points) -> dict[str, Callable[[Points], Points]]:
    """What each line of a table does to vectors (n, d), fitted on `fit`."""
    variance = float(np.var(fit, axis=0, dtype=np.float64).mean())
    found: dict[str, Callable[[Points], Points]] = {}
    for name, text in CHAINS.items():
        steps = chains.read(text.format(variance=variance))
        fitted = chain([step.make() for step in steps]).fit(fit)
        found[name] = fitted.transform if text else lambda points: points[:, :CUT]
    return found


def isoscores(before: Points, after: Points) -> tuple[float, Difference]:
    """IsoScore of `after`, and its difference from `before` with the interval of a delete-a-group jackknife.

    Not a bootstrap: rows that are drawn twice add no direction, so resamples have a lower IsoScore than the rows themselves.
    """
    score = float(metrics.isoscore(after))
    if before is after:
        return score, Difference(0.0, 0.0, 0.0, len(after), 0)
    group = np.random.default_rng(0).permutation(len(before)) % GROUPS
    subsets = [group != number for number in range(GROUPS)]
    differences = np.array(
        [float(metrics.isoscore(after[rows])) - float(metrics.isoscore(before[rows])) for rows in subsets]
    )
    error = float(np.sqrt((GROUPS - 1) / GROUPS * np.sum((differences - differences.mean()) ** 2)))
    value, reach = score - float(metrics.isoscore(before)), float(stats.t.ppf(0.975, GROUPS - 1)) * error
    return score, Difference(value, value - reach, value + reach, len(after), GROUPS)


def table(
    title: str, fit: Points, judged: Points, rows: slice, annotations: Annotations, slugs: Sequence[str]
) -> dict[str, Any]:
    """Every chain's read-outs of the judged vectors, and IsoScore of `rows` of them."""
    lines: dict[str, Any] = {}
    plain = np.asarray(judged, dtype=np.float64)
    first = measure(Image(plain), annotations, slugs)
    for name, transform in maps(fit).items():
        image = np.asarray(transform(plain), dtype=np.float64)
        scores = measure(Image(image), annotations, slugs)
        score, change = isoscores(plain[rows], plain[rows] if name == "none" else image[rows])
        lines[name] = {slug: _line(scores[slug].value, difference(first[slug], scores[slug])) for slug in slugs}
        lines[name]["isoscore"] = _line(score, change)
        print(f"{title}: {name}: {lines[name]}", flush=True)
    return {"title": title, "fitted_on": len(fit), "lines": lines}


def _line(value: float | None, change: Difference) -> dict[str, float | None]:
    return {"value": value, "low": change.low, "high": change.high, "n": change.n}


def of_stsb(embed: Callable[[list[str]], Points], folder: Path, model: str) -> list[dict[str, Any]]:
    """Similarity: pairs of the validation split."""
    from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator

    rows = tasks.load(tasks.get("glue/stsb"), folder)
    pairs = rows.validation
    texts = sorted({*pairs["sentence1"], *pairs["sentence2"]})
    fit = sorted({*rows.train["sentence1"], *rows.train["sentence2"]} - set(texts))
    row_of = {text: number for number, text in enumerate(texts)}
    scores = pairs["label"].to_numpy(np.float64)
    known = Annotations(
        pairs=RatedPairs(
            *(np.array([row_of[text] for text in pairs[column]]) for column in ("sentence1", "sentence2")), scores
        )
    )
    title = f"STS-B validation, {len(pairs):,} pairs; fitted on {len(fit):,} training sentences"
    made = table(title, embed(fit), embed(texts), slice(None), known, ["spearman_cosine"])
    evaluator = EmbeddingSimilarityEvaluator(
        pairs["sentence1"].tolist(), pairs["sentence2"].tolist(), scores.tolist(), main_similarity="cosine"
    )
    made["library_spearman"] = float(evaluator(sentences.load(sources.resolve(model)))["spearman_cosine"])
    return [made]


def of_squad(embed: Callable[[list[str]], Points], folder: Path) -> list[dict[str, Any]]:
    """Retrieval: questions of the validation split, and its paragraphs."""
    rows = tasks.load(tasks.get("squad"), folder)
    questions = rows.validation
    documents = sorted(set(questions["context"]))
    row_of = {text: number for number, text in enumerate(documents)}
    count = len(questions)
    known = Annotations(
        queries=Relevance(
            queries=np.arange(count),
            documents=count + np.arange(len(documents)),
            query=np.arange(count),
            document=np.array([row_of[text] for text in questions["context"]]),
            grade=np.ones(count),
        )
    )
    queries, paragraph_vectors = embed(questions["question"].tolist()), embed(documents)
    judged = np.concatenate([queries, paragraph_vectors])
    train = sorted({*rows.train["question"], *rows.train["context"]} - {*questions["question"], *documents})
    title = f"SQuAD validation, {count:,} questions, {len(documents)} paragraphs; IsoScore of the questions; fitted on"
    slugs = ["ndcg_cosine", "recall10_cosine", "hubness_cosine"]
    return [
        table(f"{title} {fit_name}", fit, judged, slice(0, count), known, slugs)
        for fit_name, fit in (
            (f"{len(train):,} training questions and paragraphs", embed(train)),
            ("these paragraphs", paragraph_vectors),
        )
    ]


TITLES = {
    "spearman_cosine": "Spearman",
    "ndcg_cosine": "nDCG@10",
    "recall10_cosine": "Recall@10",
    "hubness_cosine": "hubness@10",
    "isoscore": "IsoScore",
}


def drawn(made: dict[str, Any]) -> Table:
    """One table of the page."""
    columns = list(made["lines"]["none"])
    shown = Table(made["title"], ["transform", *(part for slug in columns for part in (TITLES[slug], "difference"))])
    for name, line in made["lines"].items():
        cells = [name]
        for slug in columns:
            one = line[slug]
            ends = "" if name == "none" else f"{one['low'] - 0:+.3f} to {one['high'] - 0:+.3f}"
            cells += [f"{one['value']:.4f}", ends]
        shown.rows.append(cells)
    return shown


def main() -> int:
    parser = options(__doc__, out="embeddings.md")
    parser.add_argument("--model", required=True)
    parser.add_argument("--stsb", type=Path, required=True)
    parser.add_argument("--squad", type=Path, required=True)
    chosen = parser.parse_args()
    import torch

    torch.set_num_threads(1)

    def embed(texts: list[str]) -> Points:
        return encode(chosen.model, texts)

    made = [*of_stsb(embed, chosen.stsb, chosen.model), *of_squad(embed, chosen.squad)]
    off = abs(made[0]["library_spearman"] - made[0]["lines"]["none"]["spearman_cosine"]["value"])
    described = sentences.describe(Path(sources.resolve(chosen.model).location))
    words = f"{Path(chosen.model).name}: {described.words if described else 'bare transformer'}. "
    check = (
        f"Spearman of the untouched vectors is {made[0]['lines']['none']['spearman_cosine']['value']:.4f}; sentence-transformers' "
        f"own evaluator gives {made[0]['library_spearman']:.4f} in the same run (bar: within {BAR})."
    )
    packages = ["numpy", "torch", "transformers", "sentence-transformers"]
    publish(
        chosen.out, "tables", words + machine(packages, "one thread"), check, *map(drawn, made), page="embeddings.md"
    )
    if chosen.out:
        (chosen.out / "embeddings.json").write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n")
    return int(off > BAR)


if __name__ == "__main__":
    sys.exit(main())
