"""What the Explore page looks at: model, task, data, split and rows, checked and given the key of their content; then the layer
and pooling of each view."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import actions, examples, forms, menu, model_form, reading, resources, vectors_form, wording
from dashboard.data_form import FROM_FOLDER, FROM_HUB, Stamp, folder_field, stamp
from dashboard.steady import steady
from isoviz import tasks
from isoviz.config import RunConfig
from isoviz.errors import InputError, ModelError
from isoviz.exploring import encoders, own, results
from isoviz.exploring.request import FEWEST_ROWS, MOST_ROWS, SPLITS, Rows, ViewRequest, key_of
from isoviz.exploring.results import ViewResult
from isoviz.metrics.record import CloudRecord
from isoviz.models import sentences
from isoviz.models.sentences import SentenceModules
from isoviz.models.sources import ModelSource
from isoviz.tasks.protocol import Task
from isoviz.vectors.taking import Taken

PREFIX = "explore_"
"""Of every widget key of this page: keys are query parameters too, and pages share those."""

MOST_VIEWS = 4

DEFAULT_ROWS = 500
A_TASK, MY_TEXTS, MY_VECTORS = "A task", "My texts", "My vectors"
_AT_ONCE = 1_000
"""Own texts up to which the bundled model begins without a button: it takes seconds."""
_PLACES = {
    "truncate-dim": "sentence",
    "prompt": "sentence",
    "model": "model",
    "data": "data",
    "split": "split",
    "max_rows": "rows",
}
"""Field of an engine error → the field on screen below which it is told."""


@dataclass
class Filled:
    """What the form of one view holds.

    Attributes:
        prefix: of the keys of everything that belongs to this view.
        at: `A_TASK`, `MY_TEXTS` or `MY_VECTORS`.
        request: what to look at; None while a field has to be fixed.
        key: of its content.
        rows_in_split: rows that there are.
        taken: the person's own texts or vectors, if it is of such.
        at_once: whether it is computed without a button.
        places: field on screen → where to tell what is wrong with it.
    """

    prefix: str = PREFIX
    at: str = A_TASK
    request: ViewRequest | None = None
    key: str | None = None
    rows_in_split: int = 0
    taken: Taken | None = None
    at_once: bool = False
    places: dict[str, DeltaGenerator] = field(default_factory=dict)

    def place_of(self, error_field: str | None) -> DeltaGenerator | None:
        """Where an error about this field of the request belongs; None if that is no field of the form."""
        return self.places.get(_PLACES.get(error_field or "", ""))


@steady
def draw_all() -> list[Filled]:
    """The forms of all views that are compared, the first one's first."""
    title = st.empty()  # of the first view, once it is known whether it is the only one
    first = draw()
    count = int(
        st.segmented_control(
            "Side by side",
            list(range(1, MOST_VIEWS + 1)),
            default=1,
            required=True,
            key=PREFIX + "views",
            bind="query-params",
            on_change=_copy_first,
            help="Compare up to four models, tasks, splits, layers or poolings on the same axes.",
        )
    )
    if count > 1:
        title.markdown("**View 1**")
    filled = [first]
    for number in range(2, count + 1):
        with st.container(border=True):
            st.markdown(f"**View {number}**")
            filled.append(draw(prefix_of(number)))
    return filled


def _copy_first() -> None:
    """A view that is added begins as a copy of the first, so that one thing can be changed."""
    slug = st.session_state.get(PREFIX + "task")
    of_data = [f"from.{slug}", f"data.{slug}", f"direction.{slug}", f"hub_asked_{slug}"]
    for number in range(2, int(st.session_state[PREFIX + "views"] or 1) + 1):
        for name in ("at", "model", "task", "split", "rows", "prompt", "truncate", *of_data):
            if prefix_of(number) + name not in st.session_state and PREFIX + name in st.session_state:
                st.session_state[prefix_of(number) + name] = st.session_state[PREFIX + name]
        for name in own.TASKS:
            if prefix_of(number) + name not in st.query_params and PREFIX + name in st.query_params:
                st.query_params[prefix_of(number) + name] = st.query_params[PREFIX + name]


def prefix_of(number: int) -> str:
    """Of the keys of a view, counted from 1."""
    return PREFIX if number == 1 else f"explore{number}_"


@steady
def draw(prefix: str = PREFIX) -> Filled:
    """Draw all fields of one view and read them."""
    filled = Filled(prefix)
    at = st.segmented_control(
        "Look at",
        [A_TASK, MY_TEXTS, MY_VECTORS],
        default=A_TASK,
        required=True,
        key=prefix + "at",
        bind="query-params",
        help="The rows of a task, your own texts, or your own vectors.",
    )
    filled.at = str(at)
    if at == MY_VECTORS:
        _draw_vectors(filled)
    else:
        _draw_encoded(filled, own_texts=at == MY_TEXTS)
    return filled


def _draw_vectors(filled: Filled) -> None:
    taken = vectors_form.draw(filled.prefix, "vectors")
    if taken is not None:
        _fill(filled, None, taken, ViewRequest("", own.VECTORS, taken.key, own.EVERY))


def _draw_encoded(filled: Filled, *, own_texts: bool) -> None:
    """The fields of a model on a task's rows, or on own texts."""
    prefix = filled.prefix
    model_column, task_column, split_column, rows_column = st.columns([7, 0.1, 0.1, 2] if own_texts else [4, 3, 2, 2])
    with model_column:
        model = _model_field(prefix)
        filled.places["model"] = st.container()
    slug, split = own.TEXTS, own.EVERY
    if not own_texts:
        with task_column:
            slug = _task_field(prefix)
        with split_column:
            split = str(st.selectbox("Split", SPLITS, key=prefix + "split", bind="query-params"))
            filled.places["split"] = st.container()
    with rows_column:
        rows = st.number_input(
            "Rows",
            min_value=FEWEST_ROWS,
            max_value=MOST_ROWS,
            # Streamlit warns of a default beside a value that was set, as `_copy_first` does
            value="min" if prefix != PREFIX and prefix + "rows" in st.session_state else DEFAULT_ROWS,
            step=100,
            key=prefix + "rows",
            bind="query-params",
            help="Reads the first rows of the split. IsoScore needs about five points per dimension; more rows take longer.",
        )
        filled.places["rows"] = st.container()
    with filled.places["model"]:
        source = _source(model)
        modules = _modules(source, slug)
        allow_random = _random_field(prefix, source)
        if source is not None and not model_form.weights(source, allow_random):
            source = None
    model_form.finder(prefix + "model", several=False)
    if own_texts:
        taken = vectors_form.draw(prefix, "texts")
        prompt, truncate = _sentence_fields(modules, filled)
        if taken is not None and source is not None:
            request = ViewRequest(
                model, slug, taken.key, split, int(rows), allow_random=allow_random, prompt=prompt, truncate=truncate
            )
            _fill(filled, source, taken, request)
        return
    st.caption(wording.plain(_told(tasks.get(slug))))
    folder, ready = (None, True) if tasks.get(slug).generated else _data_field(tasks.get(slug), filled)
    direction = _direction_field(tasks.get(slug), prefix)
    if source is None or not ready:
        return
    rows_read, problem = _rows(slug, folder, stamp(folder) if folder else ())
    if rows_read is None:
        with filled.place_of("data") or st.container():
            forms.error_beside(problem)
        return
    request = ViewRequest(model, slug, folder, split, int(rows), direction=direction, allow_random=allow_random)
    try:
        request.check()
    except InputError as error:
        with filled.place_of(error.field) or st.container():
            forms.error_beside(forms.sentence(error))
        return
    filled.request = request
    key = key_of(request, source, rows_read)
    # a view of one's own comes first
    filled.key = key if results.find(key) is not None else examples.view_of(request) or key
    filled.rows_in_split = rows_read.counts[split]


def _fill(filled: Filled, source: ModelSource | None, taken: Taken, request: ViewRequest) -> None:
    """Complete the form of a view of a person's own."""
    filled.request, filled.taken, filled.rows_in_split = request, taken, taken.n
    filled.key = key_of(request, source, Rows(taken.key, {own.EVERY: taken.n}))
    read = min(request.max_rows, taken.n)
    filled.at_once = source is None or (source.kind == "bundled" and read <= _AT_ONCE)
    st.page_link(
        menu.WHATIF,
        label="Transform in What-if",
        icon=":material/tune:",
        query_params=menu.whatif_own(taken.key, "" if request.model.startswith(encoders.RUN) else request.model),
    )


def forget_hub_models() -> None:
    """A model of the hub may be on this machine now."""
    model_form.forget()


def _model_field(prefix: str) -> str:
    store = resources.store()
    finished = store.summaries(status="finished", limit=200, kinds=())
    runs = [encoders.RUN + run.id for run in finished if encoders.has_weights(run.id, store)]
    chosen = st.selectbox(
        "Model",
        [*model_form.options(), *runs],
        accept_new_options=True,
        key=prefix + "model",
        bind="query-params",
        placeholder=model_form.PLACEHOLDER,
        help=f"{model_form.HELP} Or run:ID, the encoder of a finished run.",
    )
    return (chosen or "").strip()


def _source(name: str) -> ModelSource | None:
    """Where the model lies; None, and why it cannot be used, if it cannot."""
    if not name:
        forms.error_beside("Choose a model.")
        return None
    return _of_run(name) if name.startswith(encoders.RUN) else model_form.tell(name)


def _modules(source: ModelSource | None, slug: str) -> SentenceModules | None:
    """Say what a sentence-transformers model does after its transformer, or why that cannot be read; the modules, if they can."""
    if source is None or source.kind == "hub" or source.name.startswith(encoders.RUN):
        return None
    try:
        modules = sentences.describe(Path(source.location))
    except ModelError as error:
        st.caption(f":material/warning: {wording.plain(forms.sentence(error))}")
        return None
    if modules is None:
        return None
    if len(own.task_of(slug).inputs) > 1:
        st.caption("Pooling `sentence` is not available here: it embeds one text, and this task has pairs.")
        return None
    prompt = f", prompt “{modules.default_prompt}”" if modules.default_prompt else ""
    st.caption(f"Pooling `sentence`: {wording.plain(modules.words + prompt)}")
    return modules


@steady
def _sentence_fields(modules: SentenceModules | None, filled: Filled) -> tuple[str | None, int | None]:
    """Prompt and dimensions of pooling `sentence`, of models that have it; None for the model's own default."""
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
            key=filled.prefix + "prompt",
            bind="query-params",
            help="The model puts this text before each of yours, for pooling `sentence`.",
        )
    truncate = right.number_input(
        "Dimensions kept",
        min_value=1,
        value=None,
        placeholder=f"{modules.truncate}" if modules.truncate else "All",
        key=filled.prefix + "truncate",
        bind="query-params",
        help="Keeps the first dimensions of each sentence vector. Meant for Matryoshka models.",
    )
    filled.places["sentence"] = st.container()
    return prompt if prompt != modules.default_prompt else None, truncate


@steady
def _random_field(prefix: str, source: ModelSource | None) -> bool:
    """Whether to go on where the weights do not fit; asked of models that may not."""
    if source is None or source.kind in ("bundled", "hub") or source.name.startswith(encoders.RUN):
        return False
    field = RunConfig.model_fields["allow_random"]
    name = prefix + "allow_random"
    help_text = wording.plain(field.description or "")
    return bool(st.toggle(field.title or name, key=name, bind="query-params", help=help_text))


def _of_run(name: str) -> ModelSource | None:
    store = resources.store()
    try:
        source = encoders.resolve(name, store)
    except InputError as error:
        forms.error_beside(forms.sentence(error))
        return None
    row = store.get(name.removeprefix(encoders.RUN))
    words = f"{wording.run_title(row)}: {row.config.model} after {row.config.task}"
    st.caption(f":material/check_circle: {wording.plain(words)}")
    return source


def _task_field(prefix: str) -> str:
    known = tasks.catalogue()
    return str(st.selectbox("Task", list(known), key=prefix + "task", bind="query-params"))


def _told(task: Task) -> str:
    """What the task is, and which of its texts are looked at where it is not all."""
    return task.description if task.inputs == task.columns else f"{task.description} Read here: the source texts."


@steady
def _data_field(task: Task, filled: Filled) -> tuple[str | None, bool]:
    """Where the rows of a task that reads files come from: (folder or None for the hub, whether that was said)."""
    with st.container(border=True):
        columns = ", ".join(task.file_columns)
        st.markdown(f"**Data for {wording.plain(task.title)}**")
        st.caption(wording.plain(f"Columns: {columns}. Licence: {task.licence}"))
        origin = st.segmented_control(
            "Rows come from",
            [FROM_FOLDER, *([FROM_HUB] if task.hub else [])],
            default=FROM_FOLDER,
            required=True,
            key=f"{filled.prefix}from.{task.slug}",
            bind="query-params",
        )
        folder = (
            None if origin == FROM_HUB else folder_field(f"{filled.prefix}data.{task.slug}", " Train takes uploads.")
        )
        ready = _asked_hub(task, filled.prefix) if origin == FROM_HUB else folder is not None
        filled.places["data"] = st.container()
    return folder, ready


def _direction_field(task: Task, prefix: str) -> str | None:
    """Which language is read of a translation task; None for its first direction, and for tasks that have none."""
    if not task.directions:
        return None
    chosen = st.segmented_control(
        "Direction",
        task.directions,
        default=task.directions[0],
        required=True,
        key=f"{prefix}direction.{task.slug}",
        bind="query-params",
        help="From the first language to the second, by their codes. The texts of the first are what the encoder reads.",
    )
    return None if chosen == task.directions[0] else chosen


def _asked_hub(task: Task, prefix: str) -> bool:
    name = "/".join(task.hub or ())
    asked = f"{prefix}hub_asked_{task.slug}"
    st.caption(wording.plain(f"{name}: read from this machine's hub cache, or downloaded."))
    if actions.button("Load and check", key=f"{prefix}hub_{task.slug}", icon=":material/cloud_download:"):
        st.session_state[asked] = actions.done(resources.service().require)
    return bool(st.session_state.get(asked))


@st.cache_data(show_spinner="Reading the rows …", max_entries=64, ttl=900)
def _rows(slug: str, folder: str | None, files: Stamp) -> tuple[Rows | None, str | None]:
    """The rows' fingerprint and counts, or why they cannot serve; remembered until a file changes (`files`)."""
    del files
    try:
        return Rows(*reading.counted(slug, folder)), None
    except InputError as error:
        return None, forms.sentence(error)


# ----------------------------------------------------------------------------------------------- the chosen clouds


@dataclass(frozen=True)
class ChosenCloud:
    """One of the views on the page, with the cloud of it that is looked at.

    Attributes:
        number: counted from 1.
        views: how many views there are.
    """

    number: int
    views: int
    filled: Filled
    view: ViewResult
    layer: int
    pooling: str

    @property
    def prefix(self) -> str:
        """Of the keys of its widgets."""
        return self.filled.prefix

    @property
    def place(self) -> tuple[str, int, str]:
        """Key of the view, layer and pooling: which cloud it is."""
        return self.view.folder.name, self.layer, self.pooling

    @property
    def entry(self) -> CloudRecord:
        """The numbers of its cloud."""
        return self.view.entry(self.layer, self.pooling)

    @property
    def layers(self) -> list[int]:
        """Layers that have its pooling."""
        return sorted(
            entry.layer for entry in self.view.entries if entry.pooling == self.pooling and entry.layer is not None
        )

    @property
    def cloud_words(self) -> str:
        """Layer, pooling, n and d in words."""
        return f"{self.where}n = {wording.number(self.entry.n)}, d = {self.entry.d}"

    @property
    def where(self) -> str:
        """`layer 2, mean, `; nothing for own vectors, which have neither."""
        return "" if self.of_vectors else f"layer {self.layer}, {self.pooling}, "

    @property
    def of_vectors(self) -> bool:
        """Whether these are a person's own vectors: no encoder, no layers."""
        return self.filled.request is not None and self.filled.request.task == own.VECTORS

    @property
    def source(self) -> str:
        """Model, task and split in words, and that the weights are random where they are."""
        assert self.filled.request is not None
        request = self.filled.request
        if self.filled.taken is not None:
            return " · ".join(filter(None, [request.model, self.filled.taken.name]))
        direction = [f"read as {request.direction}"] if request.direction else []
        random = ["random weights"] if self.view.random_weights else []
        return " · ".join([request.model, *random, request.task, request.split, *direction])

    @property
    def about(self) -> str:
        """Which cloud it is, in a line that stands by itself, as in a saved picture."""
        n, d = wording.number(self.entry.n), self.entry.d
        cloud = "" if self.of_vectors else f"layer {self.layer} · {self.pooling} · "
        return f"{self.source} · {cloud}n = {n}, d = {d}"


def file_name(one: ChosenCloud) -> str:
    """Of what is downloaded of a view, without its ending."""
    assert one.filled.request is not None
    request = one.filled.request
    named = (request.model, request.task) if one.filled.taken is None else (request.model, one.filled.taken.name)
    parts = (re.sub(r"[^\w.=+-]", "-", part).strip("-.") for part in named if part)
    return "-".join(("explore", *parts, request.split))


def cloud_file(one: ChosenCloud, what: str) -> str:
    """File name, without extension, for downloads of a view's cloud; unique among views of the same cloud."""
    again = f"-view{one.number}" if one.number > 1 else ""
    return f"{file_name(one)}-{what}-layer{one.layer}-{one.pooling}{again}"


def view_names(numbers: list[int]) -> str:
    """`View 2`, `Views 1, 3`."""
    return f"View{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def alike(views: list[tuple[ViewResult, Filled]]) -> Iterator[tuple[tuple[ViewResult, Filled], str]]:
    """The first of all views of the same thing, and what they are called together: `View 2`, `Views 1, 3`."""
    alike: dict[tuple[str, str], list[int]] = {}
    for number, (view, filled) in enumerate(views):
        alike.setdefault((view.folder.name, filled.request.model if filled.request else ""), []).append(number)
    for numbers in alike.values():
        yield views[numbers[0]], view_names([number + 1 for number in numbers])
