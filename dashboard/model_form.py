"""Choosing models, the same on every page: bundled, this machine's hub cache, a directory, or the hub with a search."""

from __future__ import annotations

import re
from collections.abc import Sequence

import streamlit as st

from dashboard import actions, bundled_models, forms, reading, resources, wording
from isoviz.errors import InputError
from isoviz.hub import ask_again, offline
from isoviz.models import cache, hub, sources
from isoviz.models.cache import CachedModel
from isoviz.models.hub import Match
from isoviz.models.published import PUBLISHED
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import HeadKind

HERE, PAPERS, FOLDER, HUB = "On this machine", "In the papers", "Directory", "Hub search"
HELP = (
    "A bundled model, a local directory with config.json, model.safetensors and a tokenizer, or a hub id, "
    "which may end in @ and a branch, tag or commit."
)
PLACEHOLDER = "Choose, or type a directory or hub id and press Enter"
_SHOWN = 8
"""Models that cannot be used are named up to here."""


def options() -> list[str]:
    """Names to offer: bundled models, usable ones of the hub cache, and those of earlier runs."""
    here = [one.name for one in _cached() if one.problem is None]
    used = sorted({facet.model for facet in resources.store().facets()})
    return list(dict.fromkeys([*sources.bundled(), *here, *used]))


def tell(name: str, heads: Sequence[HeadKind] = ()) -> ModelSource | None:
    """Say where a model lies, or why it cannot serve, right here; the model, if it can.

    Args:
        heads: what it shall be fine-tuned with; none if it is only looked at.
    """
    source, problem = look(name, tuple(heads))
    if source is None:
        forms.error_beside(problem)
        return None
    if source.kind != "bundled":
        size = wording.size(source.size)
        words = {
            "local": f"local directory, {size}",
            "cached": f"in this machine's hub cache, {size}",
            "hub": f"on the hub, {size} to download",
        }[source.kind]
        commit = f", commit {source.revision[:10]}" if source.revision else ""
        st.caption(f":material/check_circle: {wording.plain(f'{name}: {words}{commit}')}")
    return source


def weights(source: ModelSource, allow_random: bool, heads: Sequence[HeadKind] = ()) -> bool:
    """Say here whether a model's weights fit its configuration; whether it can serve. Nothing is known of one still on the hub.

    Args:
        allow_random: go on where they do not.
        heads: as for `tell`.
    """
    if source.kind in ("bundled", "hub"):
        return True
    found, problem = _compared(source.location, source.fingerprint, tuple(heads), source)
    if problem is None and found and allow_random:
        st.caption(f":material/casino: {wording.plain(f'{source.name}: random weights: {found}.')}")
    elif problem or found:
        advice = "Check config.json against the weights file, or switch on “Use random weights”."
        words = f"'{source.name}' does not fit its own checkpoint: {found}. {advice}"
        forms.error_beside(problem or words)
        return False
    return True


def look(name: str, heads: tuple[HeadKind, ...] = ()) -> tuple[ModelSource | None, str | None]:
    """A model, or why it cannot serve. What the hub said is remembered for a while; what lies here is looked at each time."""
    if name in sources.bundled() or _is_folder(name):
        return _resolved(name, heads)
    if (reason := actions.why_not()) and not _is_cached(name):
        return None, f"'{name}' is not on this machine. {reason}"
    return _remembered(name, heads, offline())


def forget() -> None:
    """A model of the hub may be on this machine now."""
    _remembered.clear()
    _cached.clear()


def finder(field: str, *, several: bool) -> None:
    """Ways to find a model that is not among the options; a click puts it into the widget with the key `field`."""
    with st.expander("Find a model", icon=":material/search:"):
        place = st.segmented_control(
            "Where",
            [HERE, PAPERS, FOLDER, HUB],
            default=HERE,
            required=True,
            key=f"{field}.where",
            persist_state="session",
        )
        if place == FOLDER:
            _folder(field, several)
        elif place == PAPERS:
            _published(field, several)
        elif place == HUB:
            _hub(field, several)
        else:
            _here(field, several)


# ---------------------------------------------------------------------------------------------------- three places


def _here(field: str, several: bool) -> None:
    bundled_models.describe()
    cached = _cached()
    usable = {one.name: one for one in cached if one.problem is None}
    if not cached:
        st.caption("The hub cache of this machine holds no model. Downloaded models are kept and listed here.")
        return
    _pick(
        "Hub cache",
        field,
        several,
        {name: f"{name} · {wording.size(one.size)} · {one.family}" for name, one in usable.items()},
        f"{len(usable)} models, the last used first",
    )
    _unusable({one.name: one.problem for one in cached if one.problem})


def _published(field: str, several: bool) -> None:
    labels = {one.name: one.label for one in PUBLISHED}
    _pick("Models that the papers fine-tune", field, several, labels, f"{len(labels)} models")
    if reason := offline():
        st.caption(f"Models outside this machine's hub cache cannot be downloaded now: {wording.plain(reason)}.")


def _folder(field: str, several: bool) -> None:
    key = f"{field}.folder"
    with st.form(f"{key}_form", border=False):
        st.text_input(
            "Directory that the server can read",
            key=key,
            placeholder="/path/to/model",
            help="With config.json, model.safetensors (in one part or several) and a tokenizer.",
        )
        st.form_submit_button(_verb(several), on_click=_use_folder, args=(field, several))
    forms.error_beside(st.session_state.get(f"{key}_problem"))


def _use_folder(field: str, several: bool) -> None:
    key = f"{field}.folder"
    name = str(st.session_state.get(key) or "").strip()
    problem: str | None = f"There is no directory '{name}' that the server can read." if name else "Give a directory."
    if name and _is_folder(name):
        _, problem = _resolved(name, ())
    st.session_state[f"{key}_problem"] = problem
    if problem is None:
        _put(field, several, name)


def _hub(field: str, several: bool) -> None:
    if reason := offline():
        _offline(field, reason)
        return
    asked = f"{field}.asked"
    with st.form(f"{field}.search_form", border=False):
        words, revision = st.columns([3, 2])
        words.text_input("Part of a name", key=f"{field}.search", placeholder="MiniLM")
        revision.text_input(
            "Revision", key=f"{field}.revision", placeholder="main", help="A branch, a tag or a commit of the model."
        )
        if st.form_submit_button("Search", icon=":material/search:", disabled=actions.why_not() is not None):
            st.session_state[asked] = str(st.session_state.get(f"{field}.search") or "").strip()
    text = st.session_state.get(asked)
    if not text:
        return
    matches, problem = _found(text)
    if problem:
        forms.error_beside(problem)
        return
    usable = [one for one in matches if one.problem is None]
    if not matches:
        st.caption(wording.plain(f"The hub has no model whose name contains '{text}'."))
    if usable:
        _pick(
            "Found",
            field,
            several,
            {one.name: _label(one) for one in usable},
            f"{len(usable)} of {len(matches)} can be used",
        )
    _unusable({one.name: one.problem for one in matches if one.problem})


def _offline(field: str, reason: str) -> None:
    st.info(wording.plain(reason[:1].upper() + reason[1:] + "."), icon=":material/cloud_off:")
    st.caption("Bundled models, directories and the hub cache of this machine work without it.")
    if st.button("Ask again", key=f"{field}.again", icon=":material/refresh:"):
        ask_again()
        forget()
        st.rerun()


# ---------------------------------------------------------------------------------------------------- parts


def _pick(label: str, field: str, several: bool, labels: dict[str, str], placeholder: str) -> None:
    """A list from which a model goes into the field as soon as it is chosen."""
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
    revision = str(st.session_state.get(f"{field}.revision") or "").strip() if key.endswith(".found") else ""
    if name:
        _put(field, several, f"{name}@{revision}" if revision else name)


def _put(field: str, several: bool, name: str) -> None:
    held = st.session_state.get(field) or []
    st.session_state[field] = list(dict.fromkeys([*held, name])) if several else name


def _unusable(problems: dict[str, str | None]) -> None:
    for name, problem in list(problems.items())[:_SHOWN]:
        label = re.sub(r"(@[0-9a-f]{10})[0-9a-f]{30}$", r"\1…", name)
        st.caption(f":material/block: {wording.plain(f'{label} {problem}')}")
    if len(problems) > _SHOWN:
        st.caption(f"{len(problems) - _SHOWN} more cannot be used.")


def _verb(several: bool) -> str:
    return "Add it" if several else "Take it"


def _label(one: Match) -> str:
    size = f"{one.parameters / 1e6:,.1f} M parameters" if one.parameters else "size unknown"
    fetched = f"{one.downloads:,} downloads" if one.downloads is not None else ""
    gated = "gated: accept its terms on the hub first" if one.gated else ""
    return " · ".join(filter(None, (one.name, one.family, size, fetched, gated)))


def _is_folder(name: str) -> bool:
    """Whether the name is a directory's, or a path that cannot be read from here, which `_resolved` tells."""
    try:
        return sources.folder_of(name) is not None
    except InputError:
        return True


def _is_cached(name: str) -> bool:
    """Whether the hub need not be asked."""
    parsed = hub.parse(name)
    return parsed is not None and cache.find(*parsed) is not None


def _resolved(name: str, heads: tuple[HeadKind, ...]) -> tuple[ModelSource | None, str | None]:
    try:
        source = sources.resolve(name)
        for head in heads:
            sources.resolve(name, head)
    except InputError as error:
        return None, forms.sentence(error)
    return source, None


@st.cache_data(show_spinner="Looking for the model …", ttl=120, max_entries=64)
def _remembered(name: str, heads: tuple[HeadKind, ...], offline: str | None) -> tuple[ModelSource | None, str | None]:
    del offline  # an answer given without the hub is none once it can be asked
    return _resolved(name, heads)


@st.cache_data(show_spinner="Comparing the weights with config.json …", max_entries=64)
def _compared(
    location: str, fingerprint: str, heads: tuple[HeadKind, ...], _source: ModelSource
) -> tuple[str, str | None]:
    """What differs, or why that cannot be known; remembered until a file of the model changes."""
    del location, fingerprint
    try:
        return reading.mismatch(_source, heads), None
    except InputError as error:
        return "", forms.sentence(error)


@st.cache_data(show_spinner=False, ttl=60, max_entries=1)
def _cached() -> list[CachedModel]:
    return cache.models()


@st.cache_data(show_spinner="Searching the hub …", ttl=300, max_entries=64)
def _found(text: str) -> tuple[list[Match], str | None]:
    try:
        return hub.search(text), None
    except InputError as error:
        return [], forms.sentence(error)
