"""Sections of the Methods page: methods, measures and transforms, generated from the catalogues."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd
import streamlit as st

from dashboard.shared import theme
from dashboard.shared.stable import stable
from dashboard.shared.wording import plain
from isoviz import methods, metrics, posthoc, reference
from isoviz.methods.protocol import Method
from isoviz.metrics.protocol import CHANGES, Metric
from isoviz.posthoc.protocol import CataloguedTransform

PREFIX = "methods_"


@dataclass(frozen=True)
class Kind:
    """One of the three catalogues.

    Attributes:
        name: title in the field and in the address.
        purpose: one sentence.
        catalogue: items by slug.
        overview: draws the table of all items.
        detail: draws one item.
    """

    name: str
    purpose: str
    catalogue: Callable[[], Mapping[str, Any]]
    overview: Callable[[Mapping[str, Any]], None]
    detail: Callable[[Any], None]


_SENTENCE: Final = 225
"""Width of a column of sentences, in pixels: beside a name, it fits on a phone. Wider pages stretch it."""


def choose() -> tuple[Kind, str | None]:
    """Fields for a catalogue and one of its items; no item means the overview."""
    names = {kind.name: kind for kind in KINDS}
    selected = st.segmented_control(
        "Show", list(names), default=KINDS[0].name, required=True, key=PREFIX + "kind", bind="query-params"
    )
    kind = names[str(selected)]
    items = kind.catalogue()
    # one key per catalogue: Streamlit resets a widget whose options change
    slug = st.pills(
        f"Pick a {kind.name.lower().removesuffix('s')}",
        list(items),
        format_func=lambda item: items[item].title,
        key=PREFIX + kind.name.lower(),
        bind="query-params",
        help="Pick one to see its details. Pick it again to return to the overview.",
    )
    return kind, slug


@stable
def show(kind: Kind, slug: str | None) -> None:
    """The overview of a catalogue, or one item."""
    items = kind.catalogue()
    if slug is None:
        st.caption(kind.purpose)
        kind.overview(items)
    else:
        kind.detail(items[slug])


# -------------------------------------------------------------------------------------------------------- overviews


def _methods_overview(items: Mapping[str, type[Method]]) -> None:
    rows = [
        {
            "Method": item.title,
            "What it does": item.summary,
            "Measured effect": reference.direction(item) or ("None" if item.slug == "baseline" else "Not declared"),
            "Step cost": reference.step_ratio(item.slug),
            "Paper": item.paper.short if item.paper else "",
        }
        for item in items.values()
    ]
    _table(
        rows,
        {
            "Step cost": st.column_config.NumberColumn(
                format="%.2f", help="Time of a training step over a plain one; a few percent are noise."
            ),
            "What it does": st.column_config.TextColumn(width=_SENTENCE),
        },
    )
    st.caption(plain(f"Costs measured on {reference.costs()['machine']}"))


def _measures_overview(items: Mapping[str, Metric]) -> None:
    rows = [
        {
            "Measure": item.title,
            "Isotropic cloud": item.at_isotropy.text,
            **{change.capitalize(): "same" if change in item.unchanged_by else "moves" for change in CHANGES},
            "Cost": item.cost,
        }
        for item in items.values()
    ]
    config = {
        change.capitalize(): st.column_config.TextColumn(
            width="small", help=f"{reference.CHANGE_WORDS[change].capitalize()}: does the value stay the same?"
        )
        for change in CHANGES
    }
    _table(rows, config)
    st.caption("The tests verify every “same” and “moves” on twenty clouds.")


def _transforms_overview(items: Mapping[str, type[CataloguedTransform]]) -> None:
    rows = [
        {
            "Transform": item.title,
            "What it does": item.summary,
            **reference.effects(item.slug),
            "Time ÷ IsoScore": reference.costs()["transforms"].get(item.slug),
            "Paper": item.paper.short,
        }
        for item in items.values()
    ]
    config: dict[str, Any] = {
        "What it does": st.column_config.TextColumn(width=_SENTENCE),
        "Time ÷ IsoScore": st.column_config.NumberColumn(
            help=f"Fitting and applying it to {reference.costs()['n']:,} points in {reference.costs()['d']} dimensions."
        ),
    }
    _table(rows, config)


def _table(rows: list[dict[str, Any]], config: dict[str, Any]) -> None:
    first = next(iter(rows[0]))
    sentences = "What it does" in rows[0]
    st.dataframe(
        pd.DataFrame(rows),
        hide_index=True,
        column_config={first: st.column_config.TextColumn(pinned=True), **config},
        height="content",
        row_height=80 if sentences else None,  # Streamlit wraps text only in rows above 4rem
    )


# ---------------------------------------------------------------------------------------------------------- details


def _detail(item: Any, summary: str, facts: Mapping[str, str]) -> None:
    """One item: heading, summary, equation and facts, then what it has of parameters, traps and BibTeX."""
    _heading(item)
    st.markdown(plain(summary))
    st.latex(item.equation)
    st.markdown("  \n".join(f"**{plain(name)}:** {plain(text)}" for name, text in facts.items() if text))
    if hasattr(item, "Params"):
        _parameters(item)
    if traps := getattr(item, "traps", ()):
        st.markdown("### Watch for")
        for trap in traps:
            st.markdown(f":material/warning: {plain(trap)}")
    if bibtex := reference.bibtex_of(item):
        with st.expander("BibTeX", icon=":material/format_quote:"):
            st.code(bibtex, language="latex")


def _method(method: type[Method]) -> None:
    _detail(
        method,
        method.summary,
        {
            "Measured effect": reference.direction(method),
            "Cost": reference.cost(method),
            "Works on": "" if len(method.kinds) == len(Method.kinds) else ", ".join(method.kinds) + " tasks only",
            "Paper": f"{method.paper.title} ({method.paper.short})" if method.paper else "",
        },
    )


def _measure(metric: Metric) -> None:
    unchanged, changed = reference.unchanged_and_changed(metric)
    with_what = f" ({metric.jointly} changing along)" if metric.jointly else ""
    _detail(
        metric,
        f"{metric.sees} {metric.blind_to}",
        {
            "Range": metric.range.text,
            "Isotropic cloud": metric.at_isotropy.text,
            "Stays the same under": "; ".join(reference.CHANGE_WORDS[change] for change in unchanged) + with_what,
            "Moves under": "; ".join(reference.CHANGE_WORDS[change] for change in changed),
            "Defined from": f"n = {metric.minimum}" + (f", d = {metric.minimum_d}" if metric.minimum_d > 1 else ""),
            "Enough points": metric.enough.text,
            "Cost": reference.cost(metric),
            "Note": " ".join(filter(None, (metric.help, metric.comparison))),
            "Paper": f"{metric.paper.text}, {metric.paper.identifier}",
        },
    )


def _transform(kind: type[CataloguedTransform]) -> None:
    _detail(
        kind,
        kind.summary,
        {
            **reference.effects(kind.slug),
            "Cost": reference.cost(kind),
            "In What-if": "moves every point, in the background" if kind.coordinates is None else "instant",
            "Paper": f"{kind.paper.title} ({kind.paper.short})",
            **{name: f"{paper.title} ({paper.short})" for name, paper in kind.variants.items()},
        },
    )


def _heading(item: Any) -> None:
    package = reference.home_package(item)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if isinstance(item, type) and issubclass(item, Method):
            st.image(theme.method_swatch(item.slug), width=16, alt=f"Colour of {item.title}")
        st.header(plain(item.title), anchor=False, width="content")
        st.badge(plain(item.slug), color="gray")
        if package != "isoviz":
            st.badge(f"from the package {plain(package)}", icon=":material/extension:", color="gray")


def _parameters(item: type[Method] | type[CataloguedTransform]) -> None:
    entries = reference.parameters(item.Params)
    if not entries:
        return
    st.markdown("### Parameters")
    with st.container(border=True):
        for entry in entries:
            values = [
                f"default {entry.default}",
                entry.allowed,
                f"{entry.tried_as.lower()} {entry.tried}" if entry.tried else "",
            ]
            label = plain(f"{entry.label} {entry.symbol}".strip())
            st.markdown(
                f"**{label}** `{entry.name}` · {plain(' · '.join(filter(None, values)))}  \n{plain(entry.help)}"
            )
            st.caption(f"Source: {plain(entry.source)}.")


KINDS = (
    Kind(
        "Methods",
        "What you can train with. Each adds a loss term, changes what the classifier reads, or trains a second stage.",
        methods.catalogue,
        _methods_overview,
        _method,
    ),
    Kind(
        "Measures",
        "What each number detects. “Same”: the change does not affect the value. “Moves”: it does.",
        metrics.catalogue,
        _measures_overview,
        _measure,
    ),
    Kind(
        "Transforms",
        "What you can apply to finished embeddings, without training: fitted on one set, applied to any other.",
        posthoc.catalogue,
        _transforms_overview,
        _transform,
    ),
)
