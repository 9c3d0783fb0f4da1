"""Filters over runs, stored in the page's address, and the empty state."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard.shared import examples, menu, wording
from dashboard.streamlit_private import TabContainer
from isoviz import reference

ALL = "all"


def group_field(facets: pd.DataFrame, key: str, example: str, *, newest: bool = False) -> str:
    """Field for an experiment, from `run_lists.facets`; `all` means all runs except examples.

    Args:
        example: the first option if there are only examples.
        newest: begin with the newest experiment instead of all runs, unless the newest run belongs to none.
    """
    options = group_options(facets, example)
    own_groups = facets.loc[~facets["example"], "group"]
    first = options[0] if not newest or own_groups.empty else own_groups.iloc[0] or ALL
    follow(key, first)
    if st.session_state.get(key) not in options:  # deleted, or a hidden example
        st.session_state.pop(key, None)
    # No format_func: the address contains the option's label, so it must not change with the runs.
    return st.selectbox(
        "Experiment",
        options,
        index=options.index(first),
        key=key,
        bind="query-params",
        help=reference.glossary()["experiment"].text,
    )


def group_caption(facets: pd.DataFrame, group: str) -> None:
    """What an experiment consists of; nothing for `all`."""
    if group == ALL:
        return
    rows = facets[facets["group"] == group]
    methods, runs = ", ".join(dict.fromkeys(rows["title"])), int(rows["runs"].sum())
    recorded = f". {examples.where_recorded()}" if rows["example"].any() else ""
    st.caption(wording.plain(f"{runs} run{'s' if runs != 1 else ''}: {methods}{recorded}"))


def group_options(facets: pd.DataFrame, example: str) -> list[str]:
    """The visitor's runs and experiments first, then examples; only examples if there are no others."""
    groups = dict.fromkeys(facets.loc[~facets["example"], "group"])
    shipped = list(dict.fromkeys(facets.loc[facets["example"], "group"]))
    shipped.sort(key=lambda name: name != example)
    own_groups = [ALL, *(group for group in groups if group)] if groups or not shipped else []
    return [*own_groups, *shipped]


def within(facets: pd.DataFrame, group: str | None) -> pd.DataFrame:
    """The rows of an experiment; for `all` or None, all rows except examples."""
    return facets[~facets["example"]] if group in (ALL, None) else facets[facets["group"] == group]


def same_kind(facets: pd.DataFrame, group: str) -> pd.DataFrame:
    """The rows of all examples if the experiment is an example, else all other rows."""
    return facets[facets["example"] == within(facets, group)["example"].any()]


def several(label: str, values: Sequence[str], key: str, *, titles: dict[str, str] | None = None) -> list[str]:
    """Field for several values; an empty selection means all."""
    names = titles or {}
    return st.multiselect(
        label,
        list(values),
        format_func=lambda value: names.get(value, value),
        key=key,
        bind="query-params",
        placeholder="all",
    )


def follow(key: str, default: object) -> None:
    """Call before drawing a field whose default depends on other fields: the field follows its default until the user changes it."""
    default_key, state = f"{key}_default", st.session_state
    if key in state and default_key in state and state[key] == state[default_key]:
        state[key] = default
    state[default_key] = default


def tabs(titles: Sequence[str], key: str) -> dict[str, TabContainer]:
    """Tabs by title; the address says which one is open. One that is left over from other data falls back to the first."""
    if st.session_state.get(key, titles[0]) not in titles:
        del st.session_state[key]
    if st.query_params.get(key, titles[0]) not in titles:
        del st.query_params[key]
    return dict(zip(titles, st.tabs(list(titles), key=key, bind="query-params"), strict=True))


def empty_state(purpose: str, preset: str, label: str) -> None:
    """Empty state of a page: its purpose, and a preset to start with."""
    with st.container(border=True):
        st.markdown("## No run yet")
        st.markdown(purpose)
        with st.container(horizontal=True):
            st.page_link(menu.TRAIN, label=label, icon=":material/linear_scale:", query_params={"preset": preset})
            st.page_link(menu.TRAIN, label="Set up your own runs", icon=":material/model_training:")
