"""The corpus demo/everyday: related and unrelated pairs of sentences, for noise floors that compare. Its sentences are in `everyday.toml`.

`python -m factory.everyday` writes the card beside the rows, which `python -m factory.rows` writes.
"""

from __future__ import annotations

import functools
import hashlib
import random
import re
import tomllib
from pathlib import Path
from typing import Any

from isoviz import demo

SLUG = "demo/everyday"
CARD = demo.rows_dir(SLUG) / "README.md"
RELATED, SAME, OTHER = "paraphrase", "same domain", "other domain"
_TEMPLATE = Path(__file__).with_suffix(".md")


@functools.cache
def written() -> dict[str, list[tuple[str, str]]]:
    """The pairs as they were written, by domain."""
    domains = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    return {domain: [(first, second) for first, second in pairs] for domain, pairs in domains.items()}


def generate() -> dict[str, list[dict[str, Any]]]:
    """`pairs`: `sentence1`, `sentence2`, `label` (1: related), `kind` and the first one's `domain`; the same everywhere.

    Every sentence is in one related and one unrelated pair, on the same side. The second sentence of an unrelated pair is that of another
    pair of the domain, or of one of the next domain, equally often.
    """
    rng = random.Random(SLUG)
    sides = {
        # who wrote it first says nothing
        domain: [tuple(rng.sample(pair, 2)) for pair in rng.sample(pairs, len(pairs))]
        for domain, pairs in written().items()
    }
    rows = []
    names = list(sides)
    for number, (domain, pairs) in enumerate(sides.items()):
        following, half = sides[names[(number + 1) % len(names)]], len(pairs) // 2
        for place, (first, second) in enumerate(pairs):
            same = place < half
            other = pairs[(place + 1) % half][1] if same else following[place][1]
            for text, label, kind in ((second, 1, RELATED), (other, 0, SAME if same else OTHER)):
                rows.append({"sentence1": first, "sentence2": text, "label": label, "kind": kind, "domain": domain})
    rng.shuffle(rows)
    return {"pairs": rows}


def tokens(text: str) -> list[str]:
    return re.findall(r"[a-z0-9']+", text.lower())


def overlap(first: str, second: str) -> float:
    """The share of both sentences' words that they have in common (Jaccard)."""
    words = set(tokens(first)), set(tokens(second))
    return len(words[0] & words[1]) / len(words[0] | words[1])


def overlap_auc() -> float:
    """How well the overlap of words tells related pairs from all others of one left and one right sentence."""
    from scipy.stats import mannwhitneyu

    related = [(row["sentence1"], row["sentence2"]) for row in generate()["pairs"] if row["label"]]
    same = [overlap(*pair) for pair in related]
    others = [overlap(a, d) for a, b in related for _, d in related if b != d]
    return float(mannwhitneyu(same, others).statistic) / (len(same) * len(others))


def digest() -> str:
    """Thirty-two hex digits of SHA-256 over the related pairs: a line each, with a tab between the texts."""
    related = [row for row in generate()["pairs"] if row["label"]]
    content = "".join(f"{row['sentence1']}\t{row['sentence2']}\n" for row in related)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def card() -> str:
    """What the corpus is, as Markdown."""
    related = [row for row in generate()["pairs"] if row["label"]]
    lengths = [[len(tokens(row[side])) for row in related] for side in ("sentence1", "sentence2")]
    return _TEMPLATE.read_text(encoding="utf-8").format(
        pairs=len(related),
        topics=len(related) // len(written()),
        domains=", ".join(written()),
        count=len(written()),
        unrelated=len(related) * (len(related) - 1),
        left=sum(lengths[0]) / len(related),
        right=sum(lengths[1]) / len(related),
        shortest=min(map(min, lengths)),
        longest=max(map(max, lengths)),
        auc=overlap_auc(),
        digest=digest(),
    )


if __name__ == "__main__":
    CARD.write_text(card(), encoding="utf-8")
