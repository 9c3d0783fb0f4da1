"""Where What-if starts: a finished run, whose embeddings are computed once; or a demo set, an upload, or texts through an encoder."""

from __future__ import annotations

import contextlib

import streamlit as st

from dashboard.inputs import set_choice, set_sections, vectors_form
from dashboard.shared import actions, choosing, forms, job_progress, menu, resources, run_lists, tables, wording
from dashboard.whatif import form, frontier_panel, panel
from dashboard.whatif.form import PREFIX
from isoviz.errors import InputError, StoreError
from isoviz.events import Started
from isoviz.jobs import queue
from isoviz.readouts.division import Division
from isoviz.runs.examples import is_example
from isoviz.runs.naming import method_title
from isoviz.runs.rows import RunRow
from isoviz.vectors import demo_sets
from isoviz.whatif.embeddings import ENCODING, Embeddings, load
from isoviz.whatif.engine import engine_of
from isoviz.whatif.request import KINDS, EncodingRequest, can_serve, request_for

RUN = "A finished run"
VECTORS = menu.WHATIF_OWN["whatif_from"]


def from_vectors() -> bool:
    """Field: start with vectors instead of a run. A run in the address selects runs."""
    selected = st.segmented_control(
        "Start with",
        [RUN, VECTORS],
        default=VECTORS if vectors_form.has_set(PREFIX) and form.RUN not in st.query_params else RUN,
        required=True,
        key=PREFIX + "from",
        bind="query-params",
        help="A run brings its rows, labels and trained head. Vectors or texts need no run.",
        label_visibility="collapsed",
    )
    return selected == VECTORS


def draw_vectors() -> None:
    """The page for vectors or texts."""
    key = set_choice.key_field(PREFIX, menu.OWN_SET if vectors_form.has_set(PREFIX) else demo_sets.RETRIEVAL)
    if key is None:
        return
    try:
        engine = engine_of(key)
    except KeyError:
        forms.show_error("These vectors are no longer on this server. Load them again.")
        return
    except InputError as error:
        forms.show_error(forms.sentence(error))
        return
    form.follow_address()
    division = engine.source
    assert isinstance(division, Division)
    facts = division.vectors.facts
    parts = [f"{division.vectors.n:,} vectors, d = {division.vectors.d}"]
    if "model" in facts:
        vectors_text = (
            "its own sentence vectors" if facts["pooling"] == "sentence" else f"mean of tokens, layer {facts['layer']}"
        )
        parts.insert(0, f"{facts['model']}, {vectors_text}")
    rest = "" if division.crossed else division.rest
    st.caption(wording.plain(f"{' · '.join(parts)} · {division.words} {rest}"))
    for note in division.notes:
        st.caption(f":material/info: {wording.plain(note)}")
    st.fragment(panel.draw)(None, key)
    frontier_panel.draw(key)
    set_sections.draw(key, PREFIX)


# ------------------------------------------------------------------------------------------------------ a finished run


def draw_run() -> None:
    """The page for a finished run, or the empty state if there is none."""
    library = resources.library()
    shipped = library.examples
    runs = library.list(status="finished", limit=form.RUNS_OFFERED)
    runs += [shipped.get(run_id) for run_id in reversed(shipped.about["embeddings"])] if shipped else []
    requested = st.query_params.get(form.RUN)
    usable = [run for run in runs if can_serve(run.config) or run.id == requested]
    if runs and not usable:
        st.caption(
            f"What-if supports {' and '.join(KINDS)} runs, whose head reads one vector per row. The finished runs here have other "
            "tasks."
        )
    if not usable:
        if requested is not None:
            forms.show_error("The run in this link does not exist or has not finished.")
        choosing.empty_state(
            "What-if shows how a transform would change a finished run's embeddings and the accuracy of its trained head. Move "
            "a slider, and both update instantly. The *60-second demo* trains runs to try it on. *Vectors or texts*, above, "
            "needs no run.",
            "demo",
            "Start with the 60-second demo",
        )
        return
    run = form.run_field(usable)
    key = None if run is None else _embeddings_of(run)
    if run is not None and key is not None:
        _draw_panel(run, key)


def _embeddings_of(run: RunRow) -> str | None:
    """The key of the run's embeddings once they are cached; until then, draws the button, progress or error."""
    store = resources.library()
    if is_example(run.id):
        if store.examples is not None and run.id in store.examples.with_embeddings:
            return run.id
        forms.show_error(
            "This example ships without its embeddings. Choose another run, or open it and press Run again."
        )
        return None
    try:
        request = request_for(run, store.folder_of(run.id), _data_fingerprint(run.id))
    except InputError as error:
        forms.show_error(forms.sentence(error))
        return None
    state = queue.look(ENCODING, request.key)
    if state.status == "done":
        return request.key
    if job_progress.follow(ENCODING, state, key=PREFIX + "stop") and state.under_way:
        return None
    if state.field != "run":  # an unusable run cannot be fixed by another pass
        _offer(request, again=state.status != "none")
    return None


def _offer(request: EncodingRequest, *, again: bool) -> None:
    resources.expect_jobs()
    with st.container(border=True):
        st.markdown("## First, the run's embeddings")
        st.markdown(
            f"Runs up to {request.rows:,} training and {request.rows:,} validation rows through the run's saved weights. "
            "This takes seconds for the bundled model, or minutes for a large one without a GPU. The result is cached."
        )
        label = "Compute again" if again else "Compute the embeddings"
        pressed = actions.button(label, key=PREFIX + "read", type="primary", icon=":material/download_for_offline:")
        if pressed and actions.perform(resources.service().start_job, ENCODING, request.key, request.as_json()):
            st.rerun()


def _draw_panel(run: RunRow, key: str) -> None:
    """The run's embeddings and the panel; a move of a slider redraws only the panel."""
    try:
        embeddings = load(key)
    except KeyError:  # just evicted from the cache
        st.rerun()
    with contextlib.suppress(StoreError):  # the run was deleted: keep the page working
        run_lists.show_warnings(run_lists.warnings(tables.runs_frame([resources.library().summary(run.id)])))
    cloud = form.cloud_field(embeddings.differs, method_title(run.config.method))
    form.follow_address()
    _describe(embeddings)
    st.fragment(panel.draw)(run, key, cloud)


def _describe(embeddings: Embeddings) -> None:
    facts = embeddings.facts
    parts = []
    for split in ("train", "validation"):
        rows, all_rows = facts["rows"][split], facts["rows_of_run"][split]
        selection = "drawn at random with seed 0" if split == "train" else "the first ones"
        sample = "" if rows == all_rows else f" of {all_rows:,}, {selection}"
        parts.append(f"{split}: {rows:,} rows{sample}")
    own_metric = facts["metrics"][facts["primary"]]
    parts.append(f"d = {embeddings.train.shape[1]}")
    epoch = "" if facts["epoch"] is None else f" after epoch {facts['epoch']}"
    parts.append(f"the run itself: {facts['primary']} {wording.number(own_metric, 3)}" + epoch)
    st.caption(wording.plain(" · ".join(parts)) + " · transforms are fitted on train, numbers are of validation")
    for note in facts["notes"]:
        st.caption(f":material/info: {wording.plain(note)}")


def _data_fingerprint(run_id: str) -> str:
    """Fingerprint of the run's rows, from its `started` event; empty if missing."""
    started = resources.library().events_of_kind(run_id, Started, limit=1)
    return started[0].data_fingerprint if started else ""
