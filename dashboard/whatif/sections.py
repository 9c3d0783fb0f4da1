"""Sections of the What-if page: choose a finished run, read its embeddings, then the panel with the sliders."""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import streamlit as st

from dashboard import actions, choosing, forms, job_progress, learned, resources, tables, wording
from dashboard.job_progress import Waited
from dashboard.whatif import form, panel
from dashboard.whatif.form import PREFIX
from isoviz.errors import InputError, StoreError
from isoviz.events import Started
from isoviz.runs.examples import is_example
from isoviz.runs.naming import method_title
from isoviz.runs.rows import RunRow
from isoviz.whatif import jobs
from isoviz.whatif.embeddings import Embeddings, load
from isoviz.whatif.request import KINDS, EncodingRequest, can_serve, request_for


def nothing_yet() -> None:
    """The page of a store without a finished run."""
    choosing.nothing_yet(
        "What-if takes the embeddings of a finished run and its trained head, and shows what a transform would do to both: move "
        "a slider, and isotropy and accuracy follow at once. The *60-second demo* trains runs to try it on. *Vectors or texts*, above, "
        "needs no run.",
        "demo",
        "Start with the 60-second demo",
    )


def choose() -> RunRow | None:
    """Choose a finished run; the planned empty state if there is none."""
    library = resources.library()
    shipped = library.examples
    runs = library.list(status="finished", limit=form.RUNS_OFFERED)
    runs += [shipped.get(run_id) for run_id in reversed(shipped.about["embeddings"])] if shipped else []
    asked = st.query_params.get(form.RUN)
    fitting = [run for run in runs if can_serve(run.config) or run.id == asked]
    if runs and not fitting:
        st.caption(
            f"The finished runs here are of other tasks: What-if works on {' and '.join(KINDS)}, where one vector per row feeds "
            "the head."
        )
    if not fitting:
        if asked is not None:
            forms.error_beside("The run of this address is not in this store, or has not finished.")
        nothing_yet()
        return None
    return form.run_field(fitting)


def embeddings_of(run: RunRow) -> str | None:
    """The key of the run's embeddings once they are there; before that, how to get them, or why that cannot be."""
    store = resources.library()
    if is_example(run.id):
        if store.examples is not None and run.id in store.examples.with_embeddings:
            return run.id
        forms.error_beside(
            "This example ships without its embeddings. Choose another run, or open it and press Run again."
        )
        return None
    try:
        request = request_for(run, store.folder_of(run.id), _data_fingerprint(run.id))
    except InputError as error:
        forms.error_beside(forms.sentence(error))
        return None
    state = jobs.look(request)
    if state.status == "done":
        return request.key
    if state.under_way:
        job = Waited(
            "", functools.partial(jobs.look, request), functools.partial(resources.service().stop_whatif, request)
        )
        job_progress.watch([job], key=PREFIX + "stop")
        return None
    if state.in_trouble:
        job_progress.trouble(state)
    if state.field != "run":  # the run itself cannot serve: read again, it would still not
        _offer(request, again=state.status != "none")
    return None


def _offer(request: EncodingRequest, *, again: bool) -> None:
    resources.expect_jobs()
    with st.container(border=True):
        st.markdown("#### First, the run's embeddings")
        st.markdown(
            f"Up to {request.rows:,} training and {request.rows:,} validation rows go once through the weights that the run keeps. "
            "It takes seconds for the bundled model, minutes for a large one without a GPU, and is kept for the next time."
        )
        label = "Read them again" if again else "Read the embeddings"
        if actions.button(
            label, key=PREFIX + "read", type="primary", icon=":material/download_for_offline:"
        ) and actions.done(resources.service().start_whatif, request):
            st.rerun()


def draw_panel(run: RunRow, key: str) -> None:
    """Everything about the run's embeddings; moving a slider draws this part alone."""
    try:
        embeddings = load(key)
    except KeyError:  # made room for others this moment
        st.rerun()
    with contextlib.suppress(StoreError):  # deleted meanwhile: what is on screen goes on
        learned.banner(learned.warnings(tables.runs_frame([resources.library().summary(run.id)])))
    cloud = form.cloud_field(embeddings.differs, method_title(run.config.method))
    form.take_address()
    _describe(embeddings)
    st.fragment(panel.draw)(run, key, cloud)


def _describe(embeddings: Embeddings) -> None:
    facts = embeddings.facts
    parts = []
    for split in ("train", "validation"):
        rows, all_rows = facts["rows"][split], facts["rows_of_run"][split]
        chosen = "drawn at random with seed 0" if split == "train" else "the first ones"
        how = "" if rows == all_rows else f" of {all_rows:,}, {chosen}"
        parts.append(f"{split}: {rows:,} rows{how}")
    own = facts["metrics"][facts["primary"]]
    parts.append(f"d = {embeddings.train.shape[1]}")
    parts.append(f"the run itself: {facts['primary']} {wording.number(own, 3)}" + _epoch(facts))
    st.caption(wording.plain(" · ".join(parts)) + " · transforms are fitted on train, numbers are of validation")
    for note in facts["notes"]:
        st.caption(f":material/info: {wording.plain(note)}")
    if facts["kind"] == "regression":
        st.caption(
            ":material/info: A regression run: its head gives one number. The refitted head is a ridge regression, and the map is "
            "coloured by the label; there are no classes."
        )


def _epoch(facts: Any) -> str:
    return "" if facts["epoch"] is None else f" after epoch {facts['epoch']}"


def _data_fingerprint(run_id: str) -> str:
    """Of the rows that the run read, from its `started` event; empty for a run that has none."""
    started = resources.library().events_of_kind(run_id, Started, limit=1)
    return started[0].data_fingerprint if started else ""
