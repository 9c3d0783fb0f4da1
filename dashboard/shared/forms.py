"""Widgets for the fields of `Params` and `RunConfig`, which define allowed values and help texts.

The engine checks every value again, and errors appear below their field. Number fields of methods accept lists ("-1, 0, 1"):
each value becomes a run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import streamlit as st
from pydantic.fields import FieldInfo

from dashboard.shared import wording
from isoviz import methods
from isoviz.config import RunConfig
from isoviz.errors import InputError, IsoVizError
from isoviz.parameters import bounds, bounds_text, choices_of, extra, sweep_title
from isoviz.runs import launch
from isoviz.runs.naming import parameter_label

PREFIX = "train_"
"""Prefix of the form's widget keys. Keys are also query parameters, which all pages share."""

SETTINGS = tuple(
    name
    for name in RunConfig.model_fields
    # own and direction belong to the task's data
    if name not in {"version", "model", "task", "data", "own", "direction", "method", "params", "seed"}
)
"""The common training settings, in the order of `RunConfig`."""

MAX_SEEDS = 200

T = TypeVar("T")
LabelVisibility = Literal["visible", "hidden", "collapsed"]


@dataclass(frozen=True)
class Answer:
    """Result of a field: the accepted values, or the error."""

    values: tuple[Any, ...] = ()
    error: str | None = None


def key(name: str) -> str:
    """The widget key of a field (`seeds`, `epochs`, `istar.lam`)."""
    return PREFIX + name


# ---------------------------------------------------------------------------------------------------- parsing input


def split_values(text: str | None) -> list[str]:
    """`"−1, 0; 1"` → `["-1", "0", "1"]`; a typographic minus is a minus."""
    return [part for part in re.split(r"[\s,;]+", (text or "").replace("−", "-")) if part]


def parse_seeds(text: str | None) -> list[int]:
    """`"0 1 2"` or `"0-4"`; `InputError` says what is allowed."""
    allowed = "allowed: whole numbers such as 0 1 2, or a range such as 0-4"
    seeds: list[int] = []
    for part in split_values(text):
        match = re.fullmatch(r"(\d{1,10})(?:(?:-|\.\.)(\d{1,10}))?", part)
        if match is None:
            raise InputError(f"seed: '{part}' is not a seed ({allowed})", field="seed")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= MAX_SEEDS:
            raise InputError(f"seed: '{part}' is not a range of 1 to {MAX_SEEDS} seeds ({allowed})", field="seed")
        seeds += range(first, last + 1)
    if not seeds:
        raise InputError(f"seed: enter at least one ({allowed})", field="seed")
    for seed in seeds:
        RunConfig.checked(seed=seed)
    return list(dict.fromkeys(seeds))


def check_param(slug: str, name: str, raw: Sequence[Any]) -> Answer:
    """The values of one parameter, each checked by the method."""
    if not raw:
        return Answer(error="Enter at least one value.")
    accepted: list[Any] = []
    for value in raw:
        try:
            accepted.append(methods.check_params(slug, {name: value})[name])
        except InputError as error:
            field = methods.get(slug).Params.model_fields[name]
            return Answer(tuple(accepted), sentence(error, bounds_text(field)))
    return Answer(tuple(dict.fromkeys(accepted)))


def check_setting(name: str, raw: Any) -> Answer:
    """The value of one common setting, checked by `RunConfig`. An empty field becomes None if that is allowed."""
    value = raw.strip().replace("−", "-") if isinstance(raw, str) else raw
    if value in ("", None):
        if name == "learning_rate" or RunConfig.model_fields[name].default is None:
            return Answer((None,))
        return Answer(error="Give a value.")
    try:
        if name == "accelerate_config":
            launch.checked_file(value)
        return Answer((getattr(RunConfig.checked(**{name: value}), name),))
    except InputError as error:
        return Answer(error=sentence(error, bounds_text(RunConfig.model_fields[name])))


def sentence(error: IsoVizError, allowed: str = "") -> str:
    """An engine error as a sentence below its field: without the field's name, with the allowed values."""
    text = str(error).removeprefix(f"{error.field}: ") if error.field else str(error)
    if re.match(r"[a-z]+ ", text):  # starts with a word, not with a file name or quoted value
        text = text[:1].upper() + text[1:]
    return f"{text}. Allowed: {allowed}." if allowed and "allowed" not in text.lower() else f"{text}."


# ---------------------------------------------------------------------------------------------------- drawing


def show_error(error: IsoVizError | str | None) -> None:
    """Show an error below its field, with its advice, if any. User text is escaped."""
    if error:
        st.error(wording.plain(error if isinstance(error, str) else sentence(error)), icon=":material/error:")
    if isinstance(error, IsoVizError) and error.advice:
        st.caption(wording.plain(error.advice))


def choice(
    label: str,
    options: Sequence[T],
    key: str,
    help: str | None = None,
    *,
    kept: bool = False,
    on_change: Callable[[], None] | None = None,
    label_visibility: LabelVisibility = "visible",
) -> T:
    """A row of buttons, of which one is always selected; the first by default. The address restores it.

    Args:
        kept: the session keeps the selection while the field is hidden.
    """
    selected: T = st.segmented_control(
        label,
        options,
        default=options[0],
        required=True,
        key=key,
        bind="query-params",
        persist_state="session" if kept else None,
        on_change=on_change,
        help=help,
        label_visibility=label_visibility,
    )
    return selected


def param_help(field: FieldInfo) -> str:
    """Help text of a parameter: what it does, its bounds, its source."""
    limits, source = bounds_text(field), extra(field).get("source")
    bounds_sentence = f"{limits.capitalize()}." if limits and not choices_of(field) else ""
    return wording.plain(
        " ".join(filter(None, (field.description, bounds_sentence, f"Source: {source}." if source else "")))
    )


def param_field(slug: str, name: str) -> Answer:
    """Draw one parameter of a method and read it."""
    field = methods.get(slug).Params.model_fields[name]
    options: dict[str, Any] = {"key": key(f"{slug}.{name}"), "help": param_help(field), "bind": "query-params"}
    if choices := choices_of(field):
        selected = st.pills(
            parameter_label(name, field),
            choices,
            selection_mode="multi",
            default=[field.default],
            format_func=lambda choice: {True: "yes", False: "no"}.get(choice, str(choice)),
            wrap=True,
            **options,
        )
        answer = check_param(slug, name, selected)
    else:
        text = st.text_input(
            parameter_label(name, field),
            value=number_text(field.default),
            placeholder="one value, or several: -1, 0, 1",
            **options,
        )
        answer = check_param(slug, name, split_values(text))
    show_error(answer.error)
    if not choices and (sweep := extra(field).get("sweep")):
        values = ", ".join(number_text(value) for value in sweep)
        st.button(
            f"{sweep_title(field)}: {values}",
            key=f"sweep_{slug}.{name}",
            type="tertiary",
            icon=":material/linear_scale:",
            on_click=st.session_state.__setitem__,
            args=(key(f"{slug}.{name}"), values),
        )
    return answer


def setting_field(name: str) -> Answer:
    """Draw one common training setting and read it."""
    field = RunConfig.model_fields[name]
    label = field.title or name
    options: dict[str, Any] = {"key": key(name), "help": wording.plain(field.description or ""), "bind": "query-params"}
    raw: Any
    if field.annotation is bool:
        raw = st.toggle(label, value=field.default, **options)
    elif choices := choices_of(field):
        raw = st.selectbox(label, choices, index=choices.index(field.default), **options)
    elif field.annotation in (int, int | None):
        raw = whole_number(label, field, field.default, placeholder="all", **options)
    else:
        placeholder = "model default" if name in ("learning_rate", "prefix", "lora_targets") else "off"
        raw = st.text_input(label, value=setting_default(name), placeholder=placeholder, **options)
    answer = check_setting(name, raw)
    show_error(answer.error)
    return answer


def whole_number(label: str, field: FieldInfo, value: int | None, **options: Any) -> int | None:
    """The widget of a whole number within the field's bounds."""
    low, high = (int(bounds(field)[name]) if name in bounds(field) else None for name in ("ge", "le"))
    number: Any = st.number_input(label, low, high, value, step=1, **options)
    return None if number is None else int(number)


def setting_title(name: str) -> str:
    """The label of a common setting; the name of anything else."""
    field = RunConfig.model_fields.get(name)
    return (field.title if field else None) or name


def setting_default(name: str) -> Any:
    """The initial value of a setting's widget (empty for the learning rate: the model decides)."""
    default = RunConfig.model_fields[name].default
    if name == "learning_rate" or (default is None and RunConfig.model_fields[name].annotation == str | None):
        return ""
    return number_text(default) if isinstance(default, float) else default


def number_text(value: Any) -> str:
    """A number as a user would type it."""
    return f"{value:g}" if isinstance(value, float) else str(value)
