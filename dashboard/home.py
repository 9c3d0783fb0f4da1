"""Sections of the home page: what isotropy is, presets, running and latest runs, the model that comes along."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from dashboard import examples, explanations, measures, menu, resources, theme, wording
from dashboard.explanations import Explanation
from dashboard.tables import decimals, primary_metric
from isoviz import demo, metrics
from isoviz.events import ENDINGS
from isoviz.runs.examples import METHODS, Examples
from isoviz.runs.rows import RunProgress, RunRow

CLOUDS = Explanation(
    title="Three clouds",
    reading=(
        "Each picture is a cloud of 300 points in two dimensions; the cross is the origin. Stretching changes "
        "IsoScore and leaves the mean cosine alone; moving the cloud away from the origin does the opposite."
    ),
    formula=(
        r"\text{IsoScore} = \frac{\mathrm{PR} - 1}{d - 1}, \quad "
        r"\mathrm{PR} = \frac{(\operatorname{tr} \Sigma)^2}{\operatorname{tr} \Sigma^2}"
    ),
    formula_text="IsoScore = (PR − 1)/(d − 1),  PR = (tr Σ)² / tr(Σ²)",
    paper="Rudman et al. 2022, IsoScore: Measuring the Uniformity of Embedding Space Utilization.",
)

POINTS = 300
SHOWN = 8
TICK = 3.0
"""Seconds between looks at the list while something runs."""

_SPAN = 5.0
"""Half the width of a cloud's picture, in standard deviations of the round cloud."""

Cloud = NDArray[np.float64]


def what_isotropy_is() -> None:
    """Five lines, and three clouds with their numbers."""
    text, figure = st.columns([5, 6], gap="large", vertical_alignment="center")
    with text:
        st.markdown(
            "1. A language model turns every text into a **point** in a space of hundreds of dimensions.\n"
            "2. Points that spread evenly in all directions are **more isotropic**; if a few directions hold most of the "
            "spread, **less isotropic**.\n"
            "3. **IsoScore** says it in one number: 1 is an even spread, 0 a line.\n"
            "4. **Mean cosine** is often used instead, but it mostly tells how far the cloud lies from the origin.\n"
            "5. More isotropic is not better by itself: **steer it while a model learns**, and see what the task makes of it."
        )
    with figure:
        grid = st.grid(3, min_column_width=90)
        for title, points in clouds().items():
            with grid.cell():
                score, cosine = measured(points)
                words = f"IsoScore {score}, mean cosine {cosine}"
                st.image(cloud_svg(points), width="stretch", alt=f"{title} cloud: {words}")
                st.markdown(f"**{title}**  \nIsoScore **{score}**  \nmean cosine **{cosine}**", text_alignment="center")
        explanations.show(CLOUDS)


def clouds() -> dict[str, Cloud]:
    """A round cloud, the same stretched, and the same moved away from the origin, each (300, 2)."""
    points = np.random.default_rng(0).standard_normal((POINTS, 2))
    stretched = points * (1.4, 0.28)
    angle = np.pi / 6
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return {"Round": points, "Stretched": stretched @ turn, "Round, moved": points * 0.7 + (2.4, 2.0)}


def measured(points: Cloud) -> tuple[str, str]:
    """IsoScore and mean cosine of a cloud, computed here."""
    return decimals(metrics.isoscore(points), 2), decimals(metrics.mean_cosine(points), 2)


def cloud_svg(points: Cloud) -> str:
    """A cloud as SVG: points, and a cross at the origin. Drawn without a chart library, so that the first page is light."""
    colour, grey = theme.PALETTE[0], theme.NEUTRAL
    dots = "".join(f'<circle cx="{x:.2f}" cy="{-y:.2f}" r="0.1"/>' for x, y in points)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{-_SPAN} {-_SPAN} {2 * _SPAN} {2 * _SPAN}" width="260" height="260">'
        f'<rect x="{-_SPAN + 0.05}" y="{-_SPAN + 0.05}" width="{2 * _SPAN - 0.1}" height="{2 * _SPAN - 0.1}" rx="0.4" '
        f'fill="none" stroke="{grey}" stroke-opacity="0.35" stroke-width="0.05"/>'
        f'<path d="M-0.45 0H0.45M0-0.45V0.45" stroke="{grey}" stroke-width="0.09"/>'
        f'<g fill="{colour}" fill-opacity="0.6">{dots}</g></svg>'
    )


def runs() -> None:
    """Running, waiting and latest runs; refreshes itself while something runs. Nothing on an empty store."""
    store = resources.library()
    if not store.list(limit=1):
        _examples(store.examples)
        return
    st.subheader("Runs", anchor=False)
    counts = store.counts()
    busy = counts["running"] + counts["queued"] > 0
    st.fragment(_runs, run_every=TICK if busy else None)(busy)


def _examples(shipped: Examples | None) -> None:
    """Recorded runs to look at before there are any others."""
    if shipped is None:
        st.caption(":material/arrow_upward: No run yet. Start with the 60-second demo.")
        return
    st.subheader("Example runs", anchor=False)
    st.caption(f"{wording.plain(examples.where_recorded())} Your own runs take their place.")
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
        examples.hide_button("home_hide_examples")


def _runs(was_busy: bool) -> None:
    store = resources.library()
    counts = store.counts()
    if was_busy and not counts["running"] + counts["queued"]:
        st.rerun()
    st.caption(" · ".join(f"{count} {status}" for status, count in counts.items() if count))
    running = store.list(status="running", limit=SHOWN // 2)
    waiting = store.list(status="queued", order="queue", limit=2)
    ended = store.list(status=sorted(ENDINGS), limit=SHOWN - len(running) - len(waiting))
    with st.container(border=True, gap="xsmall"):
        for row in [*running, *waiting, *ended]:
            _line(row)
    with st.container(horizontal=True):
        st.page_link(menu.RESULTS, label="All results", icon=":material/table_chart:")
        st.page_link(menu.TRADEOFFS, label="Trade-offs", icon=":material/scatter_plot:")


def _line(row: RunRow) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        label = wording.plain(wording.run_title(row))
        if row.status == "running":
            st.page_link(menu.LIVE, label=label, query_params={"run": row.id}, help="Watch it live.", width="stretch")
        else:
            st.page_link(
                menu.RUN, label=label, query_params={"id": row.id}, help="Open the run's page.", width="stretch"
            )
        # on a phone these two stand below the link
        with st.container(horizontal=True, vertical_alignment="center", gap="small", width=330):
            st.markdown(theme.status_badge(row.status), width=100)
            st.caption(one_line(row), width="stretch", text_alignment="right")


def one_line(row: RunRow) -> str:
    """The one thing worth saying of a run in a list."""
    if row.status == "queued":
        return wording.place(row)
    if row.status == "running":
        progress = row.progress or RunProgress()
        if progress.total_steps:
            return f"step {progress.step} of {progress.total_steps}"
        return wording.plain(progress.phase or "starting")
    if row.result:
        values = row.result.metrics
        metric = primary_metric(row.config.task, values)
        isotropy = measures.comparing()
        number = decimals(row.result.isotropy.number(isotropy.slug), isotropy.decimals)
        collapsed = f", collapsed: {row.collapsed}" if row.collapsed else ""
        return wording.plain(f"{metric} {decimals(values.get(metric))}, {isotropy.heading} {number}{collapsed}")
    return wording.plain(str((row.error or {}).get("message", "")))


def embedded_model() -> None:
    """Facts of each bundled model, read from its files."""
    for name in demo.bundled_models():
        facts = model_facts(name)
        with st.expander(f"Bundled model: {wording.plain(name)}", icon=":material/inventory_2:"):
            st.markdown(
                f"A small {facts['family']}, pretrained on text from this project's own grammar, so that everything here works "
                f"offline: **{facts['parameters'] / 1e6:.1f} million parameters**, "
                f"{facts['layers']} layers × {facts['width']} dimensions, {facts['vocabulary']:,} word pieces, "
                f"{facts['bytes'] / 1e6:.1f} MB on disk. "
                "It is made for the generated demo tasks; for real text, choose an encoder from a directory or the hub."
            )


@st.cache_data(show_spinner=False)
def model_facts(name: str) -> dict[str, Any]:
    """Family, parameters, layers, width, vocabulary and bytes of a bundled model, from its configuration and weights file."""
    from safetensors import safe_open

    folder = demo.bundled_model_dir(name)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    weights = folder / "model.safetensors"
    with safe_open(weights, framework="np") as file:
        count = sum(int(np.prod(file.get_slice(key).get_shape())) for key in file.keys())  # noqa: SIM118 (no mapping)
    return {
        "family": config["model_type"].upper(),
        "parameters": count,
        # an encoder-decoder names its layers by side
        "layers": config.get("num_hidden_layers") or config["encoder_layers"] + config["decoder_layers"],
        "width": config.get("hidden_size") or config["d_model"],
        "vocabulary": config["vocab_size"],
        "bytes": weights.stat().st_size,
    }
