"""Fields for models: bundled ones, this machine's hub cache, or a directory."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from dashboard.shared import forms, reading, resources, wording
from isoviz.errors import AccessError, InputError, IsoVizError
from isoviz.hub import offline
from isoviz.models import cache, hub, sources
from isoviz.models.cache import CachedModel
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import HeadKind

HELP = (
    "A bundled model, a local directory with config.json, model.safetensors and a tokenizer, or a hub id, "
    "which may end in @ and a branch, tag or commit."
)
PLACEHOLDER = "Choose, or type a directory or hub id and press Enter"
_SHOWN = 8
"""Most unusable models listed by name."""


def options() -> list[str]:
    """Options: bundled models, usable models in the hub cache, and models of earlier runs."""
    cached = [model.name for model in _cached() if model.problem is None]
    used = sorted({facet.model for facet in resources.store().facets()})
    return list(dict.fromkeys([*sources.bundled(), *cached, *used]))


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


def finder(field: str, *, several: bool) -> None:
    """The models in the hub cache; a click puts one into the widget with the key `field`."""
    with st.expander("Models in this machine's hub cache", icon=":material/search:"):
        _here(field, several)


def _here(field: str, several: bool) -> None:
    cached = _cached()
    usable = {one.name: one for one in cached if one.problem is None}
    if not cached:
        st.caption("The hub cache of this machine contains no models. Downloaded models appear here.")
        return
    _pick(
        "Hub cache",
        field,
        several,
        {name: f"{name} · {wording.size(one.size)} · {one.family}" for name, one in usable.items()},
        f"{len(usable)} models, most recently used first",
    )
    _unusable({one.name: one.problem for one in cached if one.problem})


# ---------------------------------------------------------------------------------------------------- parts


def _pick(label: str, field: str, several: bool, labels: dict[str, str], placeholder: str) -> None:
    """A list that puts the selected model into the field."""
    key = f"{field}.{label.split()[0].lower()}"
    st.selectbox(
        label,
        list(labels),
        index=None,
        format_func=lambda name: labels.get(name, name),
        key=key,
        placeholder=placeholder,
        on_change=_use_picked,
        args=(field, several, key),
    )


def _use_picked(field: str, several: bool, key: str) -> None:
    name = st.session_state.get(key)
    st.session_state[key] = None
    if name:
        _put(field, several, name)


def _put(field: str, several: bool, name: str) -> None:
    current = st.session_state.get(field) or []
    st.session_state[field] = list(dict.fromkeys([*current, name])) if several else name


def _unusable(problems: dict[str, str | None]) -> None:
    for name, problem in list(problems.items())[:_SHOWN]:
        label = re.sub(r"(@[0-9a-f]{10})[0-9a-f]{30}$", r"\1…", name)
        st.caption(f":material/block: {wording.plain(f'{label} {problem}')}")
    if len(problems) > _SHOWN:
        st.caption(f"{len(problems) - _SHOWN} more cannot be used.")


def _is_folder(name: str) -> bool:
    """Whether the name is a directory, or a path without read access, which `_resolved` reports."""
    try:
        return sources.folder_of(name) is not None
    except InputError:
        return True


def _is_cached(name: str) -> bool:
    """Whether the model is in the hub cache."""
    parsed = hub.parse(name)
    return parsed is not None and cache.find(*parsed) is not None


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
def _cached() -> list[CachedModel]:
    return cache.models()
