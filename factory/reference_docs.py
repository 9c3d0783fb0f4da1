"""Writes the generated parts of the pages in docs/ from the catalogues.

    python -m factory.reference_docs            # rewrite what is out of date
    python -m factory.reference_docs --check    # exit code 1 if anything is

The part between two markers of a page is generated; the rest is written by hand. Only this project's own items are
listed, whatever packages are installed beside it; the Methods page of the dashboard lists those too.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from isoviz import methods, metrics, posthoc, readouts, reference
from isoviz.catalogues import in_folder
from isoviz.errors import DISTRIBUTION
from isoviz.lessons import responses
from isoviz.methods.protocol import Method
from isoviz.metrics.protocol import Metric
from isoviz.posthoc.protocol import CataloguedTransform
from isoviz.tables import catalogue as formats
from isoviz.tables import stores
from isoviz.tables.protocol import Format

DOCS = Path(__file__).resolve().parent.parent / "docs"


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
    for marker, part in PAGES[name].items():
        begin, end = f"<!-- {marker}: begin -->\n", f"<!-- {marker}: end -->"
        before, rest = text.split(begin)
        text = before + begin + part() + "\n" + end + rest.split(end, 1)[1]
    return text


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


def measures_part() -> str:
    """A table of all measures, then a section on each."""
    ours = reference.of_this_project(metrics.catalogue().values())
    rows = [(f"[{m.title}](#{m.slug})", f"`{m.slug}`", m.sees, m.range.text, m.at_isotropy.text) for m in ours]
    table = _table(("measure", "name", "what it sees", "range", "isotropic"), rows)
    return "\n\n".join([table, *map(_measure_section, ours)])


def responses_part() -> str:
    """A table of what each measure says about each change of a cloud, and the key to its signs."""
    header = ("measure", "plain cloud", *(change.title for change in responses.CHANGES))
    below = (
        "",
        f"n = {responses.PLAIN['n']}, d = {responses.PLAIN['d']}",
        *(change.help for change in responses.CHANGES),
    )
    rows = [
        (f"[{metrics.get(slug).number_title}](#{slug})", next(iter(row.values())).shown[0], *map(str, row.values()))
        for slug, row in responses.table().items()
    ]
    key = "; ".join(f"{sign} {text}" for sign, text in responses.SIGNS.values())
    return f"{_table(header, [below, *rows])}\n\n{key}. {responses.HOW}"


def _measure_section(metric: Metric) -> str:
    unchanged = ", ".join(reference.unchanged_and_changed(metric)[0])
    ratio = reference.costs()["measures"].get(metric.slug)
    facts = {
        "Unchanged by": f"{unchanged} (together with {metric.jointly})" if metric.jointly else unchanged,
        "Defined from": f"n = {metric.minimum}" + (f", d = {metric.minimum_d}" if metric.minimum_d > 1 else ""),
        "Enough points": metric.enough.text,
        "Time ÷ IsoScore": "" if ratio is None else f"{ratio:g}",
        "Source": f"{metric.paper.text}, {metric.paper.identifier}",
    }
    return "\n\n".join(
        [
            f'<a id="{metric.slug}"></a>\n\n### {_cell(metric.title)}',
            _cell(f"{metric.sees} {metric.blind_to}"),
            f"$${metric.equation}$$",
            "\n".join(f"- *{name}*: {_cell(text)}" for name, text in facts.items() if text),
        ]
    )


# ------------------------------------------------------------------------------------------------------- transforms


def transforms_part() -> str:
    """A table of the transforms, and the caveats of each."""
    kinds = reference.of_this_project(posthoc.catalogue().values())
    header = ("transform", "equation", "IsoScore", "EV₁", "mean cosine", "in What-if", "time ÷ IsoScore", "paper")
    return "\n\n".join([_table(header, map(_transform_row, kinds)), *map(_transform_section, kinds)])


def _transform_row(kind: type[CataloguedTransform]) -> tuple[str, ...]:
    effects = [*reference.effects(kind.slug).values()] or ["", "", ""]
    papers = [kind.paper.short, *(f"{what}: {paper.short}" for what, paper in kind.variants.items())]
    ratio = reference.costs()["transforms"].get(kind.slug)
    return (
        f"`{kind.slug}`",
        f"${kind.equation}$",
        *effects,
        "slower: moves every point" if kind.coordinates is None else "at once",
        "" if ratio is None else f"{ratio:g}",
        "; ".join(papers),
    )


def _transform_section(kind: type[CataloguedTransform]) -> str:
    traps = "\n".join(f"- {trap}" for trap in kind.traps)
    return f'<a id="{kind.slug}"></a>\n\n### {kind.title}\n\n`{kind.slug}`: {kind.summary}\n\n{traps}'


# ---------------------------------------------------------------------------------------------------------- formats


def formats_part() -> str:
    """A table of the formats of files."""
    ours = in_folder("isoviz.tables.kinds", Format, listed_as="FORMATS")
    shown = [one for slug, one in formats.catalogue().items() if slug in ours and one.holds != "nothing"]
    rows = [(", ".join(one.endings), one.vectors or "–", one.texts or "–") for one in shown]
    return _table(("file", "vectors", "texts"), rows)


def stores_part() -> str:
    """A table of the stores of vectors."""
    rows = []
    for store in reference.of_this_project(stores.catalogue().values()):
        secret = f"`{store.secret}`" if store.secret else "–"
        addresses = "<br>".join(f"`{example}`" for example in store.examples)
        rows.append((store.title, addresses, f"`{DISTRIBUTION}[{store.extra}]`", secret, f"{store.samples}"))
    return _table(("store", "address", "install", "password or key from", "how a sample is drawn"), rows)


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("IsoScore*", "IsoScore\\*")


# -------------------------------------------------------------------------------------------------------- glossary


def glossary_part() -> str:
    """Every term, and every measure, method and transform with a link to its section, by name."""
    ours = reference.of_this_project
    entries = [(term.title, term.text) for term in reference.glossary().values()]
    entries += [(f"[{m.title}](metrics.md#{m.slug})", m.tooltip) for m in ours(metrics.catalogue().values())]
    entries += [
        (f"[{m.title}](methods.md#{m.slug})", f"Method. {m.summary}") for m in ours(methods.catalogue().values())
    ]
    entries += [
        (f"[{t.title}](posthoc.md#{t.slug})", f"Transform. {t.summary}") for t in ours(posthoc.catalogue().values())
    ]
    entries += [
        (f"[{r.title}](readouts.md)", f"Read-out. {r.help}") for r in readouts.CATALOGUE.values() if r.compute is None
    ]
    return _table(("term", "meaning"), sorted(entries, key=lambda entry: entry[0].strip("[").casefold()))


# ---------------------------------------------------------------------------------------------------------- Python


def metrics_names() -> str:
    """The functions and classes of `isoviz.metrics`."""
    public = [metric.function for metric in reference.of_this_project(metrics.catalogue().values())]
    return _documented([*public, *(getattr(metrics, name) for name in metrics.MODULE_OF)])


def posthoc_names() -> str:
    """The transforms, and what they share."""
    return _documented([posthoc.Transform, posthoc.chain, *reference.of_this_project(posthoc.catalogue().values())])


def methods_names() -> str:
    """The methods with their parameters."""
    return _documented(reference.of_this_project(methods.catalogue().values()))


def _documented(items: Iterable[Any]) -> str:
    """A line for mkdocstrings per item, which writes its signature and docstring there."""
    return "\n\n".join(dict.fromkeys(f"::: {item.__module__}.{item.__qualname__}" for item in items))


PAGES: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "methods.md": {"catalogue": methods_part},
    "metrics.md": {"responses": responses_part, "catalogue": measures_part},
    "posthoc.md": {"catalogue": transforms_part},
    "stores.md": {"catalogue": stores_part},
    "glossary.md": {"catalogue": glossary_part},
    "vectors.md": {"formats": formats_part},
    "reference/methods.md": {"catalogue": methods_names},
    "reference/metrics.md": {"catalogue": metrics_names},
    "reference/posthoc.md": {"catalogue": posthoc_names},
}
"""Page → marker → the part between its two markers."""

if __name__ == "__main__":
    raise SystemExit(main())
