"""The part of docs/posthoc.md that the catalogue writes: `python -m isoviz.posthoc.reference` prints it."""

from __future__ import annotations

from isoviz import posthoc
from isoviz.posthoc.protocol import CataloguedTransform

_HEAD = """\
| transform | equation | IsoScore | EV_k | mean cosine | in What-if | paper |
|---|---|---|---|---|---|---|"""


def markdown() -> str:
    """A table of the transforms of this package, and what to know of each before trusting a number."""
    kinds = [kind for kind in posthoc.catalogue().values() if kind.__module__.startswith(f"{posthoc.__name__}.")]
    lines = [_HEAD, *map(_row, kinds), ""]
    for kind in kinds:
        lines += ["", f"**`{kind.slug}`**: {kind.title}. {kind.summary}", "", *(f"- {trap}" for trap in kind.traps)]
    return "\n".join(lines).replace("\n\n\n", "\n\n").strip()


def _row(kind: type[CataloguedTransform]) -> str:
    effects = kind.effects
    papers = [kind.paper.short, *(f"{what}: {paper.short}" for what, paper in kind.variants.items())]
    cells = [f"`{kind.slug}`", f"${kind.equation}$", effects.isoscore, effects.ev, effects.mean_cosine]
    cells += ["slower: moves every point" if kind.coordinates is None else "at once", "; ".join(papers)]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    print(markdown())
