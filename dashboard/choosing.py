"""Filters over runs that live in the page's address, and what is said when nothing is left."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import examples, menu, wording

ALL = "all"


def group_field(facets: pd.DataFrame, key: str, example: str) -> str:
    """Which experiment to show, of `run_lists.facets`; `all` shows every run but the examples.

    Args:
        example: the example that comes first where there are no other runs.
    """
    options = group_options(facets, example)
    follow(key, options[0])
    if st.session_state.get(key) not in options:  # gone, or an example that is hidden now
        st.session_state.pop(key, None)
    # No format_func: what an option is called is what stands in the address, so it must not change with the runs.
    chosen = st.selectbox("Experiment", options, key=key, bind="query-params", help="Runs that were launched together.")
    if chosen != ALL:
        part = facets[facets["group"] == chosen]
        methods, runs = ", ".join(dict.fromkeys(part["title"])), int(part["runs"].sum())
        recorded = f". {examples.where_recorded()}" if part["example"].any() else ""
        st.caption(wording.plain(f"{runs} run{'s' if runs != 1 else ''}: {methods}{recorded}"))
    return chosen


def group_options(facets: pd.DataFrame, example: str) -> list[str]:
    """The visitor's runs and experiments first; the examples alone where there are none."""
    groups = dict.fromkeys(facets.loc[~facets["example"], "group"])
    shipped = list(dict.fromkeys(facets.loc[facets["example"], "group"]))
    shipped.sort(key=lambda name: name != example)
    own = [ALL, *(group for group in groups if group)] if groups or not shipped else []
    return [*own, *shipped]


def within(facets: pd.DataFrame, group: str | None) -> pd.DataFrame:
    """The lines of an experiment; for `all` or None every line that is no example."""
    return facets[~facets["example"]] if group in (ALL, None) else facets[facets["group"] == group]


def alike(facets: pd.DataFrame, group: str) -> pd.DataFrame:
    """The lines of the examples if the experiment is one of them, else all others."""
    return facets[facets["example"] == within(facets, group)["example"].any()]


def several(label: str, values: Sequence[str], key: str, *, titles: dict[str, str] | None = None) -> list[str]:
    """Choose among values; none chosen means all."""
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
    """Before a field is drawn whose default depends on other fields: it follows its default until someone chooses otherwise."""
    known = f"{key}_default"
    if key in st.session_state and known in st.session_state and st.session_state[key] == st.session_state[known]:
        st.session_state[key] = default
    st.session_state[known] = default


def keep(frame: pd.DataFrame, **wanted: Sequence[str] | str) -> pd.DataFrame:
    """The lines whose column has one of the wanted values; an empty choice, or `all`, keeps everything."""
    for column, values in wanted.items():
        chosen = [values] if isinstance(values, str) else list(values)
        if chosen and chosen != [ALL]:
            frame = frame[frame[column].isin(chosen)]
    return frame


def nothing_yet(what: str, preset: str, label: str) -> None:
    """The planned look of an empty store: what will be here, and the preset that brings it."""
    with st.container(border=True):
        st.markdown("#### No run yet")
        st.markdown(what)
        with st.container(horizontal=True):
            st.page_link(menu.TRAIN, label=label, icon=":material/linear_scale:", query_params={"preset": preset})
            st.page_link(menu.TRAIN, label="Set up your own runs", icon=":material/model_training:")


def method_titles(facets: pd.DataFrame) -> dict[str, str]:
    """Slug → name on screen of the methods in `run_lists.facets`."""
    return dict(zip(facets["method"], facets["title"], strict=True))
