"""Sections of the Experiments page: the list, and one experiment's state, seeds, tables and runs."""

from __future__ import annotations

from urllib.parse import quote

import pandas as pd
import streamlit as st

from dashboard.results import sections as results
from dashboard.shared import actions, examples, measures, menu, resources, run_lists, theme, timing, wording
from dashboard.shared.run_lists import Filter
from dashboard.shared.stable import while_busy
from isoviz.metrics.protocol import Metric
from isoviz.runs.planning import more_seeds
from isoviz.runs.rows import STATUSES

NAME = "experiment"
"""Query parameter: `/experiments?experiment=…`."""
MORE = 4
"""Seeds that the button adds: with the first one, the five that a comparison should have."""
LISTED = 25
"""Most experiments in the list without a scroll bar."""


def selected() -> str | None:
    """The experiment in the address; None without one, or with a warning if it does not exist."""
    requested = st.query_params.get(NAME)
    if not requested:
        return None
    if requested in set(run_lists.facets()["group"]):
        return requested
    st.warning(
        f"Experiment “{wording.plain(requested)}” not found. Its runs may have been deleted.",
        icon=":material/search_off:",
    )
    return None


def listing() -> None:
    """All experiments, newest first."""
    facets = run_lists.facets()
    frame = as_list(facets)
    if frame.empty:
        with st.container(border=True):
            st.markdown("## No experiment yet")
            st.markdown(
                "Runs that you launch together on the Train page, such as several methods and seeds, form one experiment."
            )
            st.page_link(menu.TRAIN, label="Set up an experiment", icon=":material/model_training:")
        return
    frame.insert(0, "Experiment", [f"experiments?{NAME}={quote(name)}" for name in frame["name"]])
    st.dataframe(
        frame.drop(columns=["name"] if frame["Other"].any() else ["name", "Other"]),
        hide_index=True,
        placeholder="",
        height="content" if len(frame) <= LISTED else "auto",
        column_config={
            "Experiment": st.column_config.LinkColumn(
                "Experiment", display_text=rf"experiments\?{NAME}=(.*)", width=260
            ),
            "Runs": st.column_config.NumberColumn("Runs", width=60),
            "Finished": st.column_config.NumberColumn("Finished", width=75),
            "Methods": st.column_config.TextColumn("Methods", width=300),
            "Other": st.column_config.TextColumn("Other", width=160),
        },
        alt="Experiments with their methods, tasks and numbers of finished runs",
    )


def as_list(facets: pd.DataFrame) -> pd.DataFrame:
    """One row per experiment in `run_lists.facets`, newest first."""
    lines = []
    for name, rows in facets[facets["group"] != ""].groupby("group", sort=False):
        counts = rows.groupby("status")["runs"].sum()
        others = [f"{counts[status]} {status}" for status in STATUSES if status != "finished" and counts.get(status)]
        lines.append(
            {
                "name": str(name),
                "Runs": int(rows["runs"].sum()),
                "Finished": int(counts.get("finished", 0)),
                "Other": ", ".join(others),
                "Methods": ", ".join(dict.fromkeys(rows["title"])),
                "Tasks": ", ".join(dict.fromkeys(rows["task"])),
                "Models": ", ".join(dict.fromkeys(rows["model"])),
            }
        )
    return pd.DataFrame(lines, columns=["name", "Runs", "Finished", "Other", "Methods", "Tasks", "Models"])


# --------------------------------------------------------------------------------------------------- one experiment


def heading(name: str) -> None:
    """Name, progress, and links to other pages. Refreshes while runs are queued or running."""
    while_busy(lambda: run_lists.under_way(Filter(name)) > 0, lambda: _heading(name))


def _heading(name: str) -> None:
    frame = run_lists.frame(Filter(name))
    counts = frame["status"].value_counts()
    st.title(wording.plain(name), anchor=False)
    badges = [f"{theme.status_badge(status)} {counts[status]}" for status in STATUSES if counts.get(status)]
    st.markdown(f"Experiment of {len(frame)} run{'s' if len(frame) != 1 else ''}: " + " · ".join(badges))
    with st.container(horizontal=True, vertical_alignment="center"):
        # a link to the current page would not change the address
        if st.button("All experiments", key="experiment_all", type="tertiary", icon=":material/arrow_back:"):
            st.query_params.clear()
            st.rerun()
        st.page_link(menu.LIVE, label="Live", icon=":material/monitoring:", query_params={"group": name})
        st.page_link(menu.RESULTS, label="Results", icon=":material/table_chart:", query_params={"results_group": name})
        link = {"tradeoffs_group": name}
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:", query_params=link)


def add_seeds(name: str) -> None:
    """Form that launches every setup of the experiment with new seeds; shows the number of runs and the estimated time."""
    facets = run_lists.facets()
    if facets.loc[facets["group"] == name, "example"].any():
        st.caption(f"{examples.where_recorded()} To train one yourself, open the run and press *Run again*.")
        return
    rows = resources.store().list(group=name, order="oldest")
    configs = more_seeds((row.config for row in rows), MORE)
    if not configs:
        return
    time_needed = timing.estimated(configs).words()
    refusal = actions.sentences(resources.service().launch_refusal(configs)) if actions.refusal() is None else None
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = actions.button(
            f"Add {MORE} seeds", key="experiment_more", icon=":material/add:", disabled=refusal is not None
        )
        seeds = sorted({config.seed for config in configs})
        summary = f"{len(configs)} more runs (seeds {seeds[0]} to {seeds[-1]}), time: {time_needed}."
        st.caption(wording.plain(refusal or summary), width="stretch")
    if pressed and actions.perform(resources.service().launch, configs, group=name):
        st.rerun()


def comparison(name: str) -> None:
    """The experiment's tables by task, as on Results."""
    results.by_task(Filter(name), _isotropy(name))


def runs(name: str) -> None:
    """The page as a file."""
    results.export("Experiments", name, Filter(name), _isotropy(name))


def _isotropy(name: str) -> list[Metric]:
    """Measures of the cloud that the experiment's methods act on."""
    facets = run_lists.facets()
    return [measures.default_for(facets.loc[facets["group"] == name, "method"])]
