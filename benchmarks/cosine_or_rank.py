"""Does the top dimension's share of variance predict what rank or L1 similarity gains over cosine?

    python benchmarks/cosine_or_rank.py [--model DIR …] [--out docs]

Mean token vectors of every layer of the bundled encoders, and of `--model`s, on the demo sets with a ranking: nDCG@10 of a search and
Spearman's correlation with rated pairs. Layers of one encoder resemble each other, so the correlation over layers is given for each
encoder and set, without a test; a gain has the paired bootstrap's 95 % interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from _report import Table, machine, options, publish
from scipy import stats

from isoviz.models import extract, sources
from isoviz.readouts import measure
from isoviz.readouts.division import divide
from isoviz.readouts.image import Image
from isoviz.statistics.paired_bootstrap import Difference, difference
from isoviz.vectors import VectorSet, demo_sets

BUNDLED = ("demo/tiny-bert", "demo/tiny-bart")
SETS = {"demo/retrieval": ("nDCG@10", "ndcg"), "demo/similarity": ("Spearman", "spearman")}
KINDS = ("rank", "l1")


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--model", nargs="+", default=[], metavar="DIR", help="further encoders")
    chosen = parser.parse_args()
    header = ["encoder, set", "layers", "top dimension's share", "cosine"]
    header += [f"{name}: {part}" for name in KINDS for part in ("gain", "layers up / down", "ρ with the share")]
    table = Table("Over the layers of an encoder: range of the share, of cosine's score and of the gains", header)
    for model in (*BUNDLED, *chosen.model):
        for slug, (name, prefix) in SETS.items():
            shares, cosines, by_layer = zip(*measured(model, slug, prefix), strict=True)
            cells = [str(len(shares)), ranged(shares), ranged(cosines)]
            for gains in zip(*by_layer, strict=True):
                changes = [gain.value or 0.0 for gain in gains]
                up, down = (sum(gain.outcome == outcome for gain in gains) for outcome in ("higher", "lower"))
                rho = float(stats.spearmanr(shares, changes).statistic)
                cells += [ranged(changes, "+"), f"{up} / {down}", f"{rho:+.2f}"]
            encoder = model.rstrip("/").rpartition("/")[2]
            table.rows.append([f"{encoder}, {name}", *(cell.replace("-", "−") for cell in cells)])
    about = machine(["torch", "transformers"], "all threads")
    publish(chosen.out, "cosine-or-rank", "## Cosine, rank or L1", about, table)
    return 0


def measured(model: str, slug: str, prefix: str) -> Iterator[tuple[float, float, list[Difference]]]:
    """Per layer: the top dimension's share of variance, the score by cosine, and what each of `KINDS` adds."""
    texts = demo_sets.read(slug)
    source = sources.fetch(sources.resolve(model))
    views = extract.layer_views(
        source, [texts.columns["text"].tolist()], poolings=["mean"], layers="all", max_length=256
    )
    for layer, _ in views.clouds:
        points = views.points(layer, "mean")
        rows = divide(VectorSet(points, texts.columns, texts.pairs, texts.relation, slug))
        slugs = [f"{prefix}_{kind}" for kind in ("cosine", *KINDS)]
        found = measure(Image(rows.validation), rows.annotations, [*slugs, "top_share"])
        cosine, *others = (found[name] for name in slugs)
        yield found["top_share"].value or np.nan, cosine.value or np.nan, [difference(cosine, one) for one in others]


def ranged(values: Sequence[float], sign: str = "") -> str:
    return f"{min(values):{sign}.3f} … {max(values):{sign}.3f}"


if __name__ == "__main__":
    raise SystemExit(main())
