"""Sections of the Papers page: the choice of a table or figure, its published values, our measurement, and open points."""

from __future__ import annotations

import functools

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.components import figure
from dashboard.export import button
from dashboard.papers import drawing, frames, records
from dashboard.papers.records import Record, StudyRuns
from dashboard.shared import actions, downloads, exported, job_progress, menu, resources, timing, wording
from dashboard.shared.exported import ExportedSentences, ExportedTable
from dashboard.shared.stable import stable
from isoviz import studies
from isoviz.formatting import sentence
from isoviz.jobs import queue
from isoviz.studies import Listed, Study, jobs, published
from isoviz.studies.papers import PAPERS, place_names, slug_of
from isoviz.studies.result import Figure, Result, Table
from isoviz.studies.study import ComputedStudy, TrainedStudy

PREFIX = "papers_"
ALL = "All claims"
"""Choice of the scoreboard."""
STUDY = "study"
"""Query parameter of a link to one study by its name: `/papers?study=istar-figure-2`."""
TICK = 2.0
"""Seconds between reads of the store while runs of a study are queued or running."""
_BADGES = {
    "held": ":blue-badge[:material/check: held]",
    "not held": ":orange-badge[:material/close: not held]",
    "cannot tell": ":gray-badge[:material/question_mark: cannot tell]",
}


# ------------------------------------------------------------------------------------------------------- choice


def choose() -> Listed | None:
    """Widgets to choose a paper and one of its tables or figures, in the order of print; None for the scoreboard of all papers."""
    _follow_link()
    names = {source.name: source for source in PAPERS}
    name = st.segmented_control(
        "Paper", [ALL, *names], default=ALL, required=True, key=PREFIX + "paper", bind="query-params"
    )
    if name == ALL:
        return None
    source = names[str(name)]
    # one key per paper: Streamlit resets a widget whose options change
    selected = st.pills(
        "Table or figure",
        source.places,
        default=source.places[0],
        required=True,
        key=PREFIX + source.slug,
        bind="query-params",
        help="In the papers' order.",
    )
    slug = slug_of(source, str(selected))
    return next(entry for entry in studies.listed() if entry.slug == slug)


@stable
def _follow_link() -> None:
    """Follow a link to a study by its name, once."""
    requested = st.query_params.get(STUDY)
    if requested is None:
        return
    del st.query_params[STUDY]
    for listed in studies.listed():
        if requested in (listed.slug, listed.study.slug):
            # set the address, which the fields read: a field set directly would not update it
            st.query_params.from_dict({PREFIX + "paper": listed.source.name, PREFIX + listed.source.slug: listed.place})
            st.rerun()
    st.warning(f"No study is called “{wording.plain(requested)}”.", icon=":material/search_off:")


def about(choice: Listed) -> None:
    """The paper's citation."""
    paper = choice.source.paper
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"*{wording.plain(paper.title)}* · {wording.plain(paper.short)}", width="content")
        with st.popover("Cite", type="tertiary", icon=":material/format_quote:"):
            st.code(paper.bibtex.strip(), language="latex")


def heading(choice: Listed) -> None:
    """A description of the table or figure, and how to read it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header(f"{choice.place} · {wording.plain(choice.study.title)}", anchor=False)
        st.space("stretch")
        with st.popover("How to read this", type="tertiary", icon=":material/help:"):
            st.markdown(wording.plain(choice.study.summary))
            st.caption(f"{wording.plain(choice.source.paper.short)}, {choice.place}")


# ------------------------------------------------------------------------------------------------------ published values


@stable
def printed(choice: Listed) -> None:
    """The published values of a table, with notes on doubtful cells."""
    st.markdown("### In the paper")
    if choice.place.startswith("Figure"):
        st.caption("A figure, published without its values. Numbers quoted in the text or caption are listed below.")
        return
    table = frames.as_printed(published.of(choice.source.slug, choice.place))
    st.dataframe(
        table.frame,
        hide_index=True,
        placeholder="",
        alt=f"The published numbers of {choice.source.name}, {choice.place}",
        key=PREFIX + "printed_" + choice.slug,
    )
    if table.remarks:
        st.caption(wording.plain(f"As printed: {'; '.join(table.remarks)}."))
    if table.doubts:
        doubtful = "  \n".join(f"{mark} {wording.plain(sentence(text))}" for mark, text in table.doubts)
        st.caption(f":material/report: Doubtful cells:  \n{doubtful}")
    doubts = tuple(f"{mark} {text}" for mark, text in table.doubts)
    exported.note(
        PREFIX + "printed",
        ExportedTable(f"{choice.source.paper.short}, {choice.place}, as printed", table.frame, doubts),
    )
    name = downloads.file_name("printed", choice.source.slug, choice.place)
    downloads.buttons(name, table.frame, with_parquet=False)


# ------------------------------------------------------------------------------------------------------ our measurement


@stable
def measured(choice: Listed) -> None:
    """Our measurement of the same table or figure: a result, and the button that computes it."""
    st.markdown("### Measured here")
    study = choice.study
    if isinstance(study, TrainedStudy):
        busy = records.progress(study).under_way > 0
        st.fragment(_trained, run_every=TICK if busy else None)(choice, study, busy)
    elif isinstance(study, ComputedStudy):
        _computed(choice, study)


def _trained(choice: Listed, study: TrainedStudy, was_busy: bool) -> None:
    """A study of runs: launch the missing ones, and draw the finished ones. Refreshes while runs are queued or running."""
    runs = records.progress(study)
    with st.container(border=True):
        _launch_missing(study, runs)
        commands(study)
    _profiles(runs)
    _selected_result(choice)
    if was_busy != (runs.under_way > 0):
        st.rerun()


def _launch_missing(study: TrainedStudy, runs: StudyRuns) -> None:
    """The button that starts the missing runs, with their number and estimated time, and their progress."""
    count = len(runs.planned)
    if runs.under_way:
        st.progress(
            runs.finished / count, text=f"{runs.finished} of {count} runs finished, {runs.under_way} queued or running"
        )
        st.page_link(menu.LIVE, label="Follow them live", icon=":material/monitoring:")
    if not runs.missing:
        if not runs.under_way:
            st.markdown(f":material/check: All {count} runs of the quick scale are in this store.")
        return
    refusal = actions.sentences(resources.service().launch_refusal(runs.missing)) if actions.refusal() is None else None
    existing = f" {count - len(runs.missing)} of {count} already exist." if len(runs.missing) < count else ""
    time_needed = timing.estimated(runs.missing).words()
    summary = f"Trains {len(runs.missing)} runs as one experiment; time: {time_needed}.{existing} {study.quick}."
    launch = functools.partial(resources.service().launch, group=f"{study.slug} {records.QUICK}", new=True)
    if _reproduce(refusal or summary, disabled=refusal is not None) and actions.perform(launch, list(runs.missing)):
        st.rerun()


def _reproduce(summary: str, *, disabled: bool, done: bool = False) -> bool:
    """The button that computes a study, with what it takes beside it; whether it was pressed."""
    with st.container(horizontal=True, vertical_alignment="center"):
        pressed = actions.button(
            "Reproduced (quick)" if done else "Reproduce (quick)",
            key=PREFIX + "reproduce",
            type="primary",
            icon=":material/check:" if done else ":material/replay:",
            disabled=disabled,
        )
        st.caption(wording.plain(summary), width="stretch")
    return pressed


def _profiles(runs: StudyRuns) -> None:
    """For a figure of layers: start measuring the layers of finished runs, once all runs have ended."""
    if not runs.unprofiled or runs.under_way:
        return
    state = job_progress.ask(jobs.PROFILES, {"runs": sorted(runs.unprofiled)})
    if not job_progress.follow(jobs.PROFILES, state, "layers", key=PREFIX + "stop_layers"):
        st.caption(f"{len(runs.unprofiled)} runs have no weights on this machine, so their layers cannot be measured.")


def _computed(choice: Listed, study: ComputedStudy) -> None:
    """A study without runs: the button that starts its computation, and its progress."""
    scale = records.QUICK
    state = queue.look(jobs.STUDY, jobs.key_of(study.slug, scale))
    with st.container(border=True):
        if not job_progress.follow(jobs.STUDY, state, key=PREFIX + "stop") or state.in_trouble:
            resources.expect_jobs()
            done = state.status == "done"
            summary = f"No training run: {study.scales[scale]}."
            start = functools.partial(resources.service().start_job, jobs.STUDY, state.key)
            if _reproduce(summary, disabled=done, done=done) and actions.perform(
                start, jobs.request_of(study.slug, scale)
            ):
                st.rerun()
        commands(study)
    _selected_result(choice)


def commands(study: Study) -> None:
    """Shell commands for each scale."""
    with st.expander("As a command", icon=":material/terminal:"):
        for name, size in study.scales.items():
            st.caption(f"**{name}**: {wording.plain(size)}")
            st.code(f"python -m isoviz study run {study.slug} --scale {name}", language="bash", wrap_lines=True)


def _selected_result(choice: Listed) -> None:
    """The selected result."""
    by_name = {record.name: record for record in records.records(choice.study)}
    if not by_name:
        st.caption("No result yet. Press the button above.")
        return
    name, *others = by_name
    with st.container():  # for any number of results: see `dashboard.shared.stable`
        if others:
            key = f"{PREFIX}result_{choice.slug}"
            name = st.segmented_control("Result", list(by_name), default=name, required=True, key=key)
    result(choice, by_name[str(name)])


# ------------------------------------------------------------------------------------------------------ one result


def result(choice: Listed, record: Record) -> None:
    """A result's figures, published and measured numbers, tables and provenance."""
    study_result = record.result
    if study_result.planned and len(study_result.runs) < study_result.planned:
        st.caption(
            f":material/hourglass_empty: {len(study_result.runs)} of {study_result.planned} runs so far. Missing runs leave gaps."
        )
    if record.terms:
        st.caption(wording.plain(f"{record.terms}."))
    verdicts(study_result)
    at_place = [one for one in study_result.figures if choice.place in place_names(one.place)]
    figures = at_place or [one for one in study_result.figures if not place_names(one.place)]
    for drawn_figure in figures:
        _figure(choice, record, drawn_figure)
    numbers = [number for number in study_result.published if choice.place in place_names(number.where)]
    comparison_frame = frames.comparison(numbers)
    if comparison_frame is not None:
        st.markdown("**Published and measured**")
        columns = {name: st.column_config.NumberColumn(name, format="%.4g", width=90) for name in frames.NUMBERS}
        st.dataframe(
            comparison_frame,
            hide_index=True,
            placeholder="",
            column_config=columns,
            alt="Published and measured numbers",
        )
        exported.note(PREFIX + "compared", ExportedTable("Each published number and ours", comparison_frame))
    tables = st.expander("Numbers in this figure", icon=":material/table_chart:") if figures else st.container()
    if study_result.tables:
        with tables:
            for index, table in enumerate(study_result.tables):
                _table(choice, table, index)
    notes = [note for note in study_result.notes if not (study_result.planned and note.endswith("runs have finished."))]
    if notes:
        st.markdown("**How it was measured here**")
        exported.note(PREFIX + "notes", ExportedSentences("How it was measured", tuple(notes)))
        st.markdown(wording.plain(" ".join(notes)))
    origin = study_result.provenance
    packages = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    origin_text = "From this machine," if record.origin == "here" else "Recorded"
    basis = f"{len(study_result.runs)} runs" if study_result.planned else f"seed {origin.seed}"
    duration = wording.duration(origin.seconds)
    st.caption(
        wording.plain(f"{origin_text} {origin.finished[:10]}, {origin.scale} scale, {basis}, {duration}. {packages}.")
    )
    _files(choice, record)


def verdicts(study_result: Result) -> None:
    """Whether the paper's claims about this table or figure hold here, each with its numbers."""
    if not study_result.verdicts:
        return
    st.markdown("**Do the claims hold?**")
    lines = (f"{verdict.outcome.capitalize()}: {verdict.claim} {verdict.sentence}" for verdict in study_result.verdicts)
    exported.note(PREFIX + "verdicts", ExportedSentences("Do the claims hold?", tuple(lines)))
    for verdict in study_result.verdicts:
        st.markdown(
            f"{_BADGES[verdict.outcome]} **{wording.plain(verdict.claim)}**  \n{wording.plain(verdict.sentence)}"
        )


def _figure(choice: Listed, record: Record, study_figure: Figure) -> None:
    st.markdown(f"**{wording.plain(study_figure.title)}**")
    if not any(panel.traces for panel in study_figure.panels):
        st.info("Appears when its runs have finished.", icon=":material/hourglass_empty:")
        return
    width = min(study_figure.columns, 3)
    columns: list[DeltaGenerator] = []
    for number, panel in enumerate(study_figure.panels):
        columns = columns or st.columns(width)
        with columns.pop(0):
            plot = drawing.panel(panel, alone=len(study_figure.panels) == 1)
            figure.draw(
                plot.update_layout(uirevision=f"{choice.slug}/{record.name}"),
                key=PREFIX + downloads.file_name(choice.slug, study_figure.name, str(number)),
                title=panel.title.replace("\n", ", "),
                words=drawing.words(panel),
                name=downloads.file_name("isoviz", record.result.provenance.study, study_figure.name, str(number + 1)),
                about=f"{choice.source.paper.short}, {choice.place}, {record.name}. {panel.title}",
            )


def _table(choice: Listed, table: Table, place: int) -> None:
    st.markdown(f"**{wording.plain(table.title)}**")
    frame = frames.as_frame(table)
    config = {
        name: st.column_config.NumberColumn(name, format="%.3g")
        for name in frame.columns
        if pd.api.types.is_float_dtype(frame[name])
    }
    st.dataframe(frame, hide_index=True, placeholder="", column_config=config, alt=table.title)
    for note in table.notes:
        st.caption(wording.plain(note))
    exported.note(f"{PREFIX}table_{place}", ExportedTable(table.title, frame, tuple(table.notes)))
    downloads.buttons(
        downloads.file_name(choice.slug, str(place + 1)),
        frame,
        with_parquet=False,
        latex=lambda: downloads.latex(frame, table.title),
    )


def _files(choice: Listed, record: Record) -> None:
    name = f"{record.result.provenance.study}-{record.scale}"
    about = f"{choice.source.paper.short}, {choice.study.place} · {choice.study.title}"
    button.offer("Papers", name, code=functools.partial(provenance, choice, record.result), about=about)
    make = functools.partial(record.result.model_dump_json, indent=1)
    downloads.button("Result (JSON)", make, f"{name}.json", key=f"{PREFIX}json_{choice.slug}")


def provenance(choice: Listed, study_result: Result) -> dict[str, str]:
    """The command that repeats the study, what it ran with, and the paper's citation."""
    origin = study_result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    return {
        "Command to repeat it": " ".join(
            ["python -m isoviz study run", choice.study.slug, "--scale", origin.scale, *origin.inputs]
        ),
        "Computed with": f"{versions}; {wording.duration(origin.seconds)}, finished {origin.finished}",
        "Settings": "\n".join(f"{name}: {value}" for name, value in origin.config.items()),
        "Runs": ", ".join(study_result.runs),
        "BibTeX": choice.source.paper.bibtex,
    }


# ------------------------------------------------------------------------------------------------------ open points


@stable
def reservations(choice: Listed) -> None:
    """Open questions and contradictions in the paper."""
    st.markdown("### What the paper leaves open or contradicts")
    st.markdown(wording.plain(" ".join(choice.study.open_points)))
    exported.note(
        PREFIX + "open", ExportedSentences("What the paper leaves open or contradicts", choice.study.open_points)
    )
