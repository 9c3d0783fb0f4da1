"""Writes the generated parts of docs/methods.md, docs/metrics.md and docs/posthoc.md from the catalogues.

    python -m factory.reference_docs            # rewrite what is out of date
    python -m factory.reference_docs --check    # exit code 1 if anything is

The part between a page's two markers is generated; the rest is written by hand. Only this project's own items are
listed, whatever packages are installed beside it; the Methods page of the dashboard lists those too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from isoviz import methods, metrics, posthoc, reference
from isoviz.methods.protocol import Method
from isoviz.metrics.protocol import Metric
from isoviz.posthoc.protocol import CataloguedTransform

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- catalogue: begin -->\n", "<!-- catalogue: end -->"


def main() -> int:
    """Write the pages, or report which are out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 if a page is out of date")
    chosen = parser.parse_args()
    stale = [name for name in PAGES if renewed(name) != (DOCS / name).read_text(encoding="utf-8")]
    if chosen.check:
        if stale:
            print(f"Out of date: {', '.join(f'docs/{name}' for name in stale)}. Run `make docs`.", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (DOCS / name).write_text(renewed(name), encoding="utf-8")
        print(f"Wrote docs/{name}")
    return 0


def renewed(name: str) -> str:
    """The page with its generated part up to date."""
    text = (DOCS / name).read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    return before + BEGIN + PAGES[name]() + "\n" + END + rest.split(END, 1)[1]


# --------------------------------------------------------------------------------------------------------- methods


def methods_part() -> str:
    """A table of all methods, then a section on each."""
    ours = reference.of_this_project(methods.catalogue().values())
    rows = [
        (
            f"[{method.title}](#{method.slug})",
            f"`{method.slug}`",
            reference.direction(method) or "Changes nothing.",
            _step(method.slug),
            method.paper.short if method.paper else "",
        )
        for method in ours
    ]
    table = _table(("method", "name", "measured effect", "step ÷ plain step", "paper"), rows)
    return "\n\n".join([table, *map(_method_section, ours)])


def _step(slug: str) -> str:
    ratio = reference.step_ratio(slug)
    return "" if ratio is None else f"{ratio:.2f}"


def _method_section(method: type[Method]) -> str:
    parts = [f'<a id="{method.slug}"></a>\n\n## {method.title}', method.summary, f"$${method.equation}$$"]
    if method.paper:
        parts.append(f"**Paper.** {method.paper.title} ({method.paper.short}).")
    facts = [("Measured effect", reference.direction(method)), ("Cost", reference.cost(method))]
    parts += [f"**{name}.** {text}" for name, text in facts if text]
    entries = reference.parameters(method.Params)
    if entries:
        rows = [
            (
                f"`{entry.name}`",
                f"{entry.label} {entry.symbol}".strip(),
                entry.default,
                entry.allowed,
                f"no range; {entry.tried_as.lower()}: {entry.tried}"
                if entry.tried_as == "Values to try" and entry.tried
                else entry.tried,
                entry.help,
                entry.source,
            )
            for entry in entries
        ]
        parts.append(
            _table(("parameter", "meaning", "default", "allowed", "paper's range", "what it does", "source"), rows)
        )
    if method.traps:
        parts.append("**Watch for**\n\n" + "\n".join(f"- {_cell(trap)}" for trap in method.traps))
    if bibtex := reference.bibtex_of(method):
        parts.append(f"```bibtex\n{bibtex}\n```")
    return "\n\n".join(parts)


# --------------------------------------------------------------------------------------------------------- measures

_MEASURE_HEADER = (
    "measure",
    "what it sees",
    "what it cannot see",
    "range",
    "isotropic",
    "unchanged by",
    "defined from",
    "enough points",
    "time ÷ IsoScore",
    "source",
)


def measures_part() -> str:
    """The table of the whole catalogue, one line per measure."""
    return _table(_MEASURE_HEADER, [_measure_row(m) for m in reference.of_this_project(metrics.catalogue().values())])


def _measure_row(metric: Metric) -> tuple[str, ...]:
    unchanged = ", ".join(reference.unchanged_and_changed(metric)[0])
    ratio = reference.costs()["measures"].get(metric.slug)
    return (
        f"`{metric.slug}`",
        metric.sees,
        metric.blind_to,
        metric.range.text,
        metric.at_isotropy.text,
        f"{unchanged} (together with {metric.jointly})" if metric.jointly else unchanged,
        f"n = {metric.minimum}" + (f", d = {metric.minimum_d}" if metric.minimum_d > 1 else ""),
        metric.enough.text,
        "" if ratio is None else f"{ratio:g}",
        f"{metric.paper.text}, {metric.paper.identifier}",
    )


# ------------------------------------------------------------------------------------------------------- transforms


def transforms_part() -> str:
    """A table of the transforms, and the caveats of each."""
    kinds = reference.of_this_project(posthoc.catalogue().values())
    header = ("transform", "equation", "IsoScore", "EV_k", "mean cosine", "in What-if", "time ÷ IsoScore", "paper")
    return "\n\n".join([_table(header, map(_transform_row, kinds)), *map(_transform_section, kinds)])


def _transform_row(kind: type[CataloguedTransform]) -> tuple[str, ...]:
    effects = kind.effects
    papers = [kind.paper.short, *(f"{what}: {paper.short}" for what, paper in kind.variants.items())]
    ratio = reference.costs()["transforms"].get(kind.slug)
    return (
        f"`{kind.slug}`",
        f"${kind.equation}$",
        effects.isoscore,
        effects.ev,
        effects.mean_cosine,
        "slower: moves every point" if kind.coordinates is None else "at once",
        "" if ratio is None else f"{ratio:g}",
        "; ".join(papers),
    )


def _transform_section(kind: type[CataloguedTransform]) -> str:
    return f"**`{kind.slug}`**: {kind.title}. {kind.summary}\n\n" + "\n".join(f"- {trap}" for trap in kind.traps)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("IsoScore*", "IsoScore\\*")


PAGES: Mapping[str, Callable[[], str]] = {
    "methods.md": methods_part,
    "metrics.md": measures_part,
    "posthoc.md": transforms_part,
}

if __name__ == "__main__":
    raise SystemExit(main())
