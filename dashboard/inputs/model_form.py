"""Fields for models: bundled ones, this machine's hub cache, or a directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import streamlit as st

from dashboard.shared import forms, reading, resources, wording
from dashboard.shared.stable import stable
from isoviz.config import RunConfig
from isoviz.errors import AccessError, InputError, IsoVizError
from isoviz.exploring import encoders
from isoviz.hub import offline
from isoviz.models import hub, sources
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import HeadKind

HELP = (
    "A bundled model, a local directory with config.json, model.safetensors and a tokenizer, or a hub id, "
    "which may end in @ and a branch, tag or commit."
)
ENCODER_HELP = f"{HELP} Or run:ID, the encoder of a finished run."
PLACEHOLDER = "Choose, or type a directory or hub id and press Enter"


def options() -> list[str]:
    """Options: bundled models, usable models in the hub cache, and models of earlier runs."""
    used = sorted({facet.model for facet in resources.store().facets()})
    return list(dict.fromkeys([*sources.bundled(), *_cached(), *used]))


def encoders_offered() -> list[str]:
    """The same, and the encoders of finished runs."""
    store = resources.store()
    finished = store.summaries(status="finished", limit=200)
    return [*options(), *(encoders.RUN + run.id for run in finished if encoders.has_weights(run.id, store))]


def show_encoder(name: str) -> ModelSource | None:
    """Like `show_source` for analysis, also of `run:ID`."""
    if not name:
        forms.show_error("Choose a model.")
        return None
    if not name.startswith(encoders.RUN):
        return show_source(name)
    store = resources.store()
    try:
        source = encoders.resolve(name, store)
    except InputError as error:
        forms.show_error(forms.sentence(error))
        return None
    row = store.get(name.removeprefix(encoders.RUN))
    words = f"{wording.run_title(row)}: {row.config.model} after {row.config.task}"
    st.caption(f":material/check_circle: {wording.plain(words)}")
    return source


@stable
def weights_field(prefix: str, source: ModelSource | None) -> str:
    """Number format of the weights; bundled models are too small for a choice."""
    if source is None or source.kind == "bundled" or source.name.startswith(encoders.RUN):
        return "auto"
    options = get_args(RunConfig.model_fields["dtype"].annotation)
    hint = "Number format. auto: as stored on a GPU, float32 on the CPU. The 16-bit formats take half the memory of float32."
    return str(forms.choice("Weights", options, prefix + "dtype", hint))


def show_source(name: str, heads: Sequence[HeadKind] = ()) -> ModelSource | None:
    """Show where a model comes from, or why it cannot be used; returns its source if usable.

    Args:
        heads: heads for fine-tuning; empty for analysis only.
    """
    source, error = resolve(name, tuple(heads))
    if source is None:
        forms.show_error(error)
        return None
    if source.kind != "bundled":
        size = wording.size(source.size)
        descriptions = {
            "local": f"local directory, {size}",
            "cached": f"in this machine's hub cache, {size}",
            "hub": f"on the hub, {size} to download",
        }[source.kind]
        commit = f", commit {source.revision[:10]}" if source.revision else ""
        st.caption(f":material/check_circle: {wording.plain(f'{name}: {descriptions}{commit}')}")
    return source


def weights(source: ModelSource, allow_random: bool, heads: Sequence[HeadKind] = ()) -> bool:
    """Show whether a model's weights fit its configuration; returns whether it is usable. Models still on the hub are not checked.

    Args:
        allow_random: accept weights that do not fit.
        heads: as for `show_source`.
    """
    if source.kind in ("bundled", "hub"):
        return True
    difference, error = _compared(source.location, source.fingerprint, tuple(heads), source)
    if difference and not allow_random:
        advice = "Check config.json against the weights file, or switch on “Use random weights”."
        error = InputError(f"'{source.name}' does not fit its own checkpoint: {difference}", advice=advice)
    elif difference:
        st.caption(f":material/casino: {wording.plain(f'{source.name}: random weights: {difference}.')}")
    forms.show_error(error)
    return error is None


def resolve(name: str, heads: tuple[HeadKind, ...] = ()) -> tuple[ModelSource | None, IsoVizError | None]:
    """A model's source, or the error. The hub's responses are cached for a while; local models are checked every time."""
    if name in sources.bundled() or _is_folder(name):
        return reading.answer(_resolved, name, heads)
    if (refusal := resources.service().refusal()) and not _is_cached(name):
        return None, AccessError(f"'{name}' is not on this machine. {refusal}", advice=refusal.advice)
    return _resolved_cached(name, heads, offline())


def forget() -> None:
    """Clear the caches: a hub model may have been downloaded."""
    _resolved_cached.clear()
    _cached.clear()


def _is_folder(name: str) -> bool:
    """Whether the name is a directory, or a path without read access, which `_resolved` reports."""
    try:
        return sources.folder_of(name) is not None
    except InputError:
        return True


def _is_cached(name: str) -> bool:
    """Whether the model is in the hub cache."""
    parsed = hub.parse(name)
    return parsed is not None and hub.find(*parsed) is not None


def _resolved(name: str, heads: tuple[HeadKind, ...] = ()) -> ModelSource:
    source = sources.resolve(name)
    for head in heads:
        sources.resolve(name, head)
    return source


@st.cache_data(show_spinner="Finding the model …", ttl=120, max_entries=64)
def _resolved_cached(
    name: str, heads: tuple[HeadKind, ...], offline: str | None
) -> tuple[ModelSource | None, InputError | None]:
    del offline  # part of the cache key: offline results are not valid online
    return reading.answer(_resolved, name, heads)


@st.cache_data(show_spinner="Comparing the weights with config.json …", max_entries=64)
def _compared(
    location: str, fingerprint: str, heads: tuple[HeadKind, ...], _source: ModelSource
) -> tuple[str | None, InputError | None]:
    """The difference between weights and configuration, or the error; cached until a file of the model changes."""
    del location, fingerprint
    return reading.answer(reading.mismatch, _source, heads)


@st.cache_data(show_spinner=False, ttl=60, max_entries=1)
def _cached() -> list[str]:
    return hub.cached()
