"""The form of Explore: model, task, data, split and rows of each view, checked and keyed by content; and the panes that show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator

from dashboard.inputs import model_form, vectors_form
from dashboard.inputs.data_form import data_field
from dashboard.shared import downloads, examples, forms, reading, wording
from dashboard.shared.stable import stable
from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import ModelError
from isoviz.exploring import encoders, results, user_sets
from isoviz.exploring.request import FEWEST_ROWS, MOST_ROWS, SPLITS, Rows, ViewRequest, key_of
from isoviz.exploring.results import ViewResult
from isoviz.metrics.record import CloudRecord
from isoviz.models import sentences
from isoviz.models.sentences import SentenceModules
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import Task
from isoviz.vectors.intake import SetSummary

PREFIX = "explore_"
"""Prefix of this page's widget keys. Keys are also query parameters, which all pages share."""

MOST_VIEWS = 4

DEFAULT_ROWS = 500
A_TASK, MY_TEXTS, MY_VECTORS = "A task", "My texts", "My vectors"


@dataclass
class ViewForm:
    """The values of one view's form.

    Attributes:
        prefix: prefix of this view's widget keys.
        source: `A_TASK`, `MY_TEXTS` or `MY_VECTORS`.
        request: the view to compute; None while a field is invalid.
        key: key of the view's content.
        own_set: the user's texts or vectors, if the view shows those.
        automatic: computed without a button.
        error_slots: field of the request → where its error appears.
    """

    prefix: str = PREFIX
    source: str = A_TASK
    request: ViewRequest | None = None
    key: str | None = None
    own_set: SetSummary | None = None
    automatic: bool = False
    error_slots: dict[str, DeltaGenerator] = field(default_factory=dict)


@stable
def draw_all() -> list[ViewForm]:
    """Draw the forms of all views, in order."""
    title = st.empty()  # title of the first view, drawn once the number of views is known
    first = draw()
    count = forms.choice(
        "Side by side",
        list(range(1, MOST_VIEWS + 1)),
        PREFIX + "views",
        "Compare up to four models, tasks, splits, layers or poolings on the same axes.",
        on_change=_copy_first,
    )
    if count > 1:
        title.markdown("**View 1**")
    form = [first]
    for number in range(2, count + 1):
        with st.container(border=True):
            st.markdown(f"**View {number}**")
            form.append(draw(prefix_of(number)))
    return form


def _copy_first() -> None:
    """Start an added view as a copy of the first, so that the user can change one field."""
    slug = st.session_state.get(PREFIX + "task")
    of_data = [f"from.{slug}", f"data.{slug}", f"direction.{slug}", f"hub_asked_{slug}"]
    for number in range(2, int(st.session_state[PREFIX + "views"] or 1) + 1):
        for name in ("at", "model", "task", "split", "rows", "prompt", "truncate", "dtype", *of_data):
            if prefix_of(number) + name not in st.session_state and PREFIX + name in st.session_state:
                st.session_state[prefix_of(number) + name] = st.session_state[PREFIX + name]
        for name in user_sets.TASKS:
            if prefix_of(number) + name not in st.query_params and PREFIX + name in st.query_params:
                st.query_params[prefix_of(number) + name] = st.query_params[PREFIX + name]


def prefix_of(number: int) -> str:
    """Prefix of the widget keys of a view, counted from 1."""
    return PREFIX if number == 1 else f"explore{number}_"


@stable
def draw(prefix: str = PREFIX) -> ViewForm:
    """Draw all fields of one view and read them."""
    form = ViewForm(prefix)
    hint = "The rows of a task, your own texts, or your own vectors."
    form.source = forms.choice("Look at", [A_TASK, MY_TEXTS, MY_VECTORS], prefix + "at", hint)
    if form.source != MY_VECTORS:
        _draw_encoded(form, own_texts=form.source == MY_TEXTS)
    elif own_set := vectors_form.draw(prefix, "vectors"):
        _fill(form, None, own_set, ViewRequest("", user_sets.VECTORS, own_set.key, user_sets.ALL_ROWS))
    return form


def _draw_encoded(form: ViewForm, *, own_texts: bool) -> None:
    """Fields of a model on a task's rows or on the user's texts."""
    prefix = form.prefix
    model_column, task_column, split_column, rows_column = st.columns([7, 0.1, 0.1, 2] if own_texts else [4, 3, 2, 2])
    with model_column:
        model = _model_field(prefix)
        form.error_slots["model"] = st.container()
    slug, split = user_sets.TEXTS, user_sets.ALL_ROWS
    if not own_texts:
        with task_column:
            slug = str(st.selectbox("Task", list(tasks.catalogue()), key=prefix + "task", bind="query-params"))
        with split_column:
            split = str(st.selectbox("Split", SPLITS, key=prefix + "split", bind="query-params"))
            form.error_slots["split"] = st.container()
    with rows_column:
        rows = st.number_input(
            "Rows",
            min_value=FEWEST_ROWS,
            max_value=MOST_ROWS,
            # Streamlit warns if a widget has a default and a value set by `_copy_first`
            value="min" if prefix != PREFIX and prefix + "rows" in st.session_state else DEFAULT_ROWS,
            step=100,
            key=prefix + "rows",
            bind="query-params",
            help="Reads the first rows of the split. IsoScore needs about five points per dimension; more rows take longer.",
        )
        form.error_slots["max_rows"] = st.container()
    with form.error_slots["model"]:
        source = model_form.show_encoder(model)
        modules = _modules(source, slug)
        allow_random = _random_field(prefix, source)
        choices: dict[str, Any] = {"allow_random": allow_random, "dtype": model_form.weights_field(prefix, source)}
        if source is not None and not model_form.weights(source, allow_random):
            source = None
    if own_texts:
        own_set = vectors_form.draw(prefix, "texts")
        prompt, truncate = _sentence_fields(modules, form)
        if own_set is not None and source is not None:
            request = ViewRequest(
                model, slug, own_set.key, split, int(rows), prompt=prompt, truncate=truncate, **choices
            )
            _fill(form, source, own_set, request)
        return
    task = tasks.get(slug)
    note = "" if task.inputs == task.columns else f"Read here: {task.inputs[0]}."
    data = data_field(task, prefix, check=False, note=note)
    form.error_slots["data"] = st.container()
    if source is None or not data.ready:
        return
    with st.spinner("Reading the rows …"):
        counted, error = reading.remembered(data.data, reading.counted, slug, data.data)
    direction = data.direction if data.direction not in task.directions[:1] else None
    request = ViewRequest(model, slug, data.data, split, int(rows), direction=direction, **choices)
    if error is None:
        _, error = reading.answer(request.check)
    if counted is None or error is not None:
        with form.error_slots.get(error.field or "" if error else "", form.error_slots["data"]):
            forms.show_error(error)
        return
    rows_read = Rows(*counted)
    form.request = request
    key = key_of(request, source, rows_read)
    # views of the user's own data come first
    form.key = key if results.find(key) is not None else examples.view_of(request) or key


def _fill(form: ViewForm, source: ModelSource | None, own_set: SetSummary, request: ViewRequest) -> None:
    """Complete the form of a view of the user's own data."""
    form.request, form.own_set = request, own_set
    form.key = key_of(request, source, Rows(own_set.key, {user_sets.ALL_ROWS: own_set.n}))
    form.automatic = source is None  # texts wait for the button, because the visitor chooses their encoder


def _model_field(prefix: str) -> str:
    selected = st.selectbox(
        "Model",
        model_form.encoders_offered(),
        accept_new_options=True,
        key=prefix + "model",
        bind="query-params",
        placeholder=model_form.PLACEHOLDER,
        help=model_form.ENCODER_HELP,
    )
    return (selected or "").strip()


def _modules(source: ModelSource | None, slug: str) -> SentenceModules | None:
    """Show what a sentence-transformers model does after its transformer, or why that cannot be read; return its modules."""
    if source is None or source.kind == "hub" or source.name.startswith(encoders.RUN):
        return None
    try:
        modules = sentences.describe(Path(source.location))
    except ModelError as error:
        st.caption(f":material/warning: {wording.plain(forms.sentence(error))}")
        return None
    if modules is None:
        return None
    if len(user_sets.task_of(slug).inputs) > 1:
        st.caption("Pooling `sentence` is not available here: it embeds one text, and this task has pairs.")
        return None
    prompt = f", prompt “{modules.default_prompt}”" if modules.default_prompt else ""
    st.caption(f"Pooling `sentence`: {wording.plain(modules.words + prompt)}")
    return modules


@stable
def _sentence_fields(modules: SentenceModules | None, form: ViewForm) -> tuple[str | None, int | None]:
    """Fields for the prompt and dimensions of pooling `sentence`; None for the model's default."""
    if modules is None:
        return None, None
    prompt = None
    left, right = st.columns(2)
    if any(modules.prompts.values()):
        names = list(modules.prompts)
        prompt = left.selectbox(
            "Prompt",
            names,
            index=names.index(modules.default_prompt) if modules.default_prompt in names else None,
            placeholder="No prompt",
            key=form.prefix + "prompt",
            bind="query-params",
            help="The model puts this text before each of yours, for pooling `sentence`.",
        )
    truncate = right.number_input(
        "Dimensions kept",
        min_value=1,
        value=None,
        placeholder=f"{modules.truncate}" if modules.truncate else "All",
        key=form.prefix + "truncate",
        bind="query-params",
        help="Keeps the first dimensions of each sentence vector. Meant for Matryoshka models.",
    )
    form.error_slots |= dict.fromkeys(("prompt", "truncate-dim"), st.container())
    return prompt if prompt != modules.default_prompt else None, truncate


@stable
def _random_field(prefix: str, source: ModelSource | None) -> bool:
    """Whether to accept random weights; shown only for models whose weights may not fit."""
    if source is None or source.kind in ("bundled", "hub") or source.name.startswith(encoders.RUN):
        return False
    field = RunConfig.model_fields["allow_random"]
    name = prefix + "allow_random"
    help_text = wording.plain(field.description or "")
    return bool(st.toggle(field.title or name, key=name, bind="query-params", help=help_text))


# ----------------------------------------------------------------------------------------------- panes


@dataclass(frozen=True)
class Pane:
    """One of the views side by side on the page, with its selected layer and pooling.

    Attributes:
        number: counted from 1.
        views: number of views on the page.
    """

    number: int
    views: int
    form: ViewForm
    view: ViewResult
    layer: int
    pooling: str

    @property
    def prefix(self) -> str:
        """Prefix of its widget keys."""
        return self.form.prefix

    @property
    def place(self) -> tuple[str, int, str]:
        """View, layer and pooling: identifies the cloud."""
        return self.view.folder.name, self.layer, self.pooling

    @property
    def entry(self) -> CloudRecord:
        """Measures of the selected cloud."""
        return self.view.entry(self.layer, self.pooling)

    def array(self, what: str) -> NDArray[Any] | None:
        """An array of its cloud, see `ViewResult.array`."""
        return self.view.array(self.layer, self.pooling, what)

    @property
    def rogue(self) -> tuple[int, ...]:
        """Its rogue dimensions by mean."""
        return self.entry.dimensions.outliers if self.entry.dimensions else ()

    @property
    def task(self) -> Task:
        """The task of its rows."""
        return user_sets.task_of(self.view.facts["request"]["task"])

    @property
    def layers(self) -> list[int]:
        """Layers available with this pooling."""
        return sorted(
            entry.layer for entry in self.view.entries if entry.pooling == self.pooling and entry.layer is not None
        )

    @property
    def cloud_words(self) -> str:
        """Layer, pooling, n and d as text."""
        return f"{self.where}n = {wording.number(self.entry.n)}, d = {self.entry.d}"

    @property
    def where(self) -> str:
        """`layer 2, mean, `; empty for the user's vectors, which have neither."""
        return "" if self.of_vectors else f"layer {self.layer}, {self.pooling}, "

    @property
    def of_vectors(self) -> bool:
        """Whether these are the user's own vectors: no encoder, no layers."""
        return self.form.request is not None and self.form.request.task == user_sets.VECTORS

    @property
    def source(self) -> str:
        """Model, task and split as text, with a remark if the weights are random."""
        assert self.form.request is not None
        request = self.form.request
        if self.form.own_set is not None:
            return " · ".join(filter(None, [request.model, self.form.own_set.name]))
        direction = [f"read as {request.direction}"] if request.direction else []
        random = ["random weights"] if self.view.random_weights else []
        return " · ".join([request.model, *random, request.task, request.split, *direction])

    @property
    def about(self) -> str:
        """A one-line description of the cloud that is complete by itself, as in a saved picture."""
        return f"{self.source} · {self.cloud_words}"


def file_name(pane: Pane) -> str:
    """File name, without extension, for downloads of a view."""
    assert pane.form.request is not None
    request = pane.form.request
    data = request.task if pane.form.own_set is None else pane.form.own_set.name
    return downloads.file_name("explore", request.model, data, request.split)


def cloud_file(pane: Pane, what: str) -> str:
    """File name, without extension, for downloads of a view's cloud; unique among views of the same cloud."""
    suffix = f"-view{pane.number}" if pane.number > 1 else ""
    return f"{file_name(pane)}-{what}-layer{pane.layer}-{pane.pooling}{suffix}"


def view_names(numbers: Sequence[int]) -> str:
    """`View 2`, `Views 1, 3`."""
    return f"View{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def distinct(views: list[tuple[ViewResult, ViewForm]]) -> Iterator[tuple[tuple[ViewResult, ViewForm], str]]:
    """The first of each group of identical views, with the group's title: `View 2`, `Views 1, 3`."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (view, form) in enumerate(views):
        groups.setdefault((view.folder.name, form.request.model if form.request else ""), []).append(number)
    for numbers in groups.values():
        yield views[numbers[0]], view_names([number + 1 for number in numbers])
