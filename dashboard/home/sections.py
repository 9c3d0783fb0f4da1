"""Sections of the home page: four starting points, a small playground, running and latest runs."""

from __future__ import annotations

import streamlit as st

from dashboard.components.playground.mounted import playground
from dashboard.shared import choosing, examples, explanations, measures, menu, resources, run_lists, theme, wording
from dashboard.shared.stable import while_busy
from isoviz import metrics, tasks
from isoviz.events import ENDINGS
from isoviz.formatting import decimals
from isoviz.runs.examples import METHODS, Examples
from isoviz.runs.rows import RunRow
from isoviz.vectors import demo_sets

_HIDDEN = "presets plots transforms n spectrum decay rank floor rogue block rho rotation tails duplicates scale zeta"
CLOUD = {"d": 16, "hidden": _HIDDEN.split()}
"""Initial state of the playground on this page: few controls, each with a visible effect."""
FIRST = ("isoscore", "ev_1", "mean_cosine")
"""The measures to begin with; the question below is about them."""
QUESTION = "Move the slider *Mean shift*. Which of the three measures changes?"
ANSWER = (
    "Only the mean cosine: it rises towards 1. IsoScore and EV₁, the variance along the strongest direction, stay, because they "
    "subtract the mean. They measure the shape of the cloud, the mean cosine also where it lies."
)

OWN_VECTORS = "Explore my vectors"
OWN_DATA = "Try it on my data"
SEARCH = "Try it on an example search"
_QUERIES = {
    OWN_VECTORS: {"explore_at": "My vectors"},
    OWN_DATA: menu.WHATIF_OWN,
    SEARCH: menu.WHATIF_OWN | {"whatif_set": demo_sets.TITLES[demo_sets.RETRIEVAL]},
}
"""Label of a link → its query parameters."""
SHOWN = 8


def cloud() -> None:
    """A question about a small playground, and an explanation of its numbers."""
    st.markdown(f"**{QUESTION}**")
    playground(key="home_playground", state=CLOUD, measures=FIRST)
    with st.container(horizontal=True, vertical_alignment="center"):
        with st.popover("Answer", type="tertiary", icon=":material/lightbulb:"):
            st.markdown(ANSWER)
        explanations.show_metric(metrics.get(FIRST[0]))
        st.page_link(menu.PLAYGROUND, label="All controls and plots", icon=":material/bubble_chart:")


def ways_in() -> None:
    """What a visitor may have, each with links to the pages that answer it."""
    entry_points = (
        (
            "I have vectors",
            "Drop a file: how isotropic they are, which dimensions stand out, and what whitening would change.",
            [
                (menu.EXPLORE, OWN_VECTORS, ":material/upload:"),
                (menu.WHATIF, OWN_DATA, ":material/tune:"),
            ],
        ),
        (
            "I have a search",
            "What a cosine means for your encoder, and what your search loses or gains, with intervals.",
            [
                (menu.RULER, "What does 0.62 mean?", ":material/straighten:"),
                (menu.COMPARE, "Which encoder ranks higher?", ":material/balance:"),
                (menu.WHATIF, SEARCH, ":material/search:"),
            ],
        ),
        (
            "I train a model",
            "Fine-tune with isotropy methods, watch the vectors change, and test whether methods differ.",
            [
                (menu.TRAIN, "Set up runs", ":material/model_training:"),
                (menu.LIVE, "See a run train", ":material/monitoring:"),
                (menu.EXPLORE, "Explore an encoder", ":material/layers:"),
            ],
        ),
        (
            "I teach or learn",
            "Eleven short lessons: you guess, the cloud moves, and you see how far off you were.",
            [
                (menu.LESSONS, "Start the lessons", ":material/school:"),
                (menu.METHODS, "Methods and measures", ":material/functions:"),
                (menu.PAPERS, "What the papers found", ":material/menu_book:"),
            ],
        ),
    )
    for column, (question, text, links) in zip(st.columns(len(entry_points)), entry_points, strict=True):
        with column.container(border=True, height="stretch", gap="xsmall"):
            st.markdown(f"**{question}**")
            st.caption(text)
            st.space("stretch")
            for page, label, icon in links:
                st.page_link(page, label=label, icon=icon, query_params=_QUERIES.get(label))


def runs() -> None:
    """Running, waiting and latest runs, refreshed while runs are running. Empty for an empty store."""
    store = resources.library()
    if not store.list(limit=1):
        _examples(store.examples)
        return
    st.header("Runs", anchor=False)
    while_busy(resources.is_busy, _runs)


def _examples(shipped: Examples | None) -> None:
    """Recorded runs, shown while there are no others."""
    if shipped is None:
        st.caption(":material/arrow_upward: No run yet. Start with the 60-second demo.")
        return
    st.header("Example runs", anchor=False)
    st.caption(f"{wording.plain(examples.where_recorded())} Your own runs will replace them.")
    rows = [row for row in shipped.list(group=METHODS, order="oldest") if row.config.seed == 0]
    first = [row for row in rows if row.config.task == rows[0].config.task]
    with st.container(border=True, gap="xsmall"):
        for row in first[:SHOWN]:
            _line(row)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(menu.RESULTS, label="Results", icon=":material/table_chart:")
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:")
        st.page_link(menu.WHATIF, label="What-if", icon=":material/tune:")
        replay = {"run": first[-1].id, "replay": "1"}
        st.page_link(menu.LIVE, label="Replay a training run", icon=":material/history:", query_params=replay)


def _runs() -> None:
    store = resources.library()
    st.caption(" · ".join(f"{count} {status}" for status, count in store.counts().items() if count))
    running = store.list(status="running", limit=SHOWN // 2)
    waiting = store.list(status="queued", order="queue", limit=2)
    ended = store.list(status=sorted(ENDINGS), limit=SHOWN - len(running) - len(waiting))
    with st.container(border=True, gap="xsmall"):
        for row in [*running, *waiting, *ended]:
            _line(row)
    with st.container(horizontal=True):
        everything = {"results_group": choosing.ALL}
        st.page_link(menu.RESULTS, label="All results", icon=":material/table_chart:", query_params=everything)
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:")


def _line(row: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = wording.plain(wording.run_title(row))
        live = row.status == "running"
        page, query = (menu.LIVE, {"run": row.id}) if live else (menu.RUN, {"id": row.id})
        hint = "Watch it live." if live else "Open the run's page."
        st.page_link(page, label=label, query_params=query, help=hint, width="stretch")
        # on a phone these two wrap below the link
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width=330):
            st.markdown(theme.status_badge(row.status), width=100)
            st.caption(one_line(row), width="stretch", text_alignment="right")


def one_line(row: RunRow) -> str:
    """The most important fact about a run, for a list."""
    if row.status == "queued":
        return wording.place(row)
    if row.status == "running":
        return run_lists.activity(row)
    if row.result:
        values = row.result.metrics
        metric = tasks.primary_metric(row.config.task, values)
        isotropy = measures.comparing()
        number = decimals(row.result.isotropy.number(isotropy.slug), isotropy.decimals)
        problem = f", {row.left_out}" if row.left_out else ""
        return wording.plain(f"{metric} {decimals(values.get(metric))}, {isotropy.heading} {number}{problem}")
    return wording.plain(str((row.error or {}).get("message", "")))
