"""Explore's background jobs: views, sentences, UMAP maps.

A view's first figures are published before its last numbers: `isoviz.exploring.results.find` returns them while the job runs.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz.errors import InputError
from isoviz.exploring import encoders, maps, results, user_sets
from isoviz.exploring.request import Rows, ViewRequest, key_of, rows_of
from isoviz.jobs import queue
from isoviz.jobs.kinds import ENCODERS, GIB, Job, JobKind, Pool
from isoviz.jobs.results import ResultStore
from isoviz.jobs.worker import ENCODER_MODULES, import_modules

QUESTIONS: Final = ResultStore("questions", lambda: GIB // 4, most=400)
"""Cache of results for input on the page: small and short-lived, because it contains users' sentences."""
PREPARE: Final = f"{__name__}:prepare"
"""The function that warms up a prepared worker for jobs that use an encoder."""
_IDLE_SECONDS: Final = 600.0


def _compute_view(job: Job) -> None:
    from isoviz.exploring import measuring, vector_view

    request = ViewRequest(**job.request)
    if request.task == user_sets.VECTORS:
        facts, arrays = vector_view.compute(request, job.report, job.publish)
        job.publish(facts, arrays)
        return
    key = ""

    def show(facts: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        nonlocal key
        key = key or _current_key(request, facts)  # may read the rows
        job.publish(facts, arrays, key)

    facts, arrays = measuring.compute(request, job.report, show)
    job.publish(facts, arrays, key or _current_key(request, facts))


def _current_key(request: ViewRequest, facts: dict[str, Any]) -> str:
    """The view's key, which may differ from the requested one: a hub model gets another key once it is downloaded."""
    if request.direction:  # keys always use the task's first direction
        rows = rows_of(request.task, request.data)
    else:
        rows = Rows(facts["data_fingerprint"], {request.split: facts["rows_in_split"]})
    return key_of(request, encoders.resolve(request.model), rows)


def _embed_sentences(job: Job) -> None:
    request = job.request
    job.report(0, 2, "loading the model")
    direction, allow_random = request.get("direction"), bool(request.get("allow_random"))
    model = job.memory.get(
        (request["fingerprint"], direction), lambda: encoders.load(request["model"], direction, allow_random)
    )
    job.report(1, 2, "reading the sentences")
    embedded = model.embed(
        request["texts"],
        request["layer"],
        request["pooling"],
        request["max_length"],
        prompt=request.get("prompt"),
        truncate=request.get("truncate"),
    )
    job.publish({"tokens": list(embedded.tokens)}, {"points": embedded.points, "texts": embedded.texts})


def _lay_out(job: Job) -> None:
    request, inputs = job.request, job.inputs()
    view = results.find(request["view"])
    if view is None:
        raise InputError("this view is no longer cached", advice="Compute it again.")
    layer, pooling, settings = request["layer"], request["pooling"], maps.MapRequest(**request["map"])
    settings.check()

    def fit() -> Any:
        points = view.points(layer, pooling)
        return maps.fit_umap(points[maps.sampled(len(points), settings)], settings, job.report)

    fitted = job.memory.get((request["view"], settings.key(layer, pooling)), fit)
    if "points" in inputs:
        job.report(99, 100, "placing the sentences")
        coordinates = fitted.transform(inputs["points"])
    else:
        coordinates = fitted.embedding_
    job.publish({}, {"coordinates": np.asarray(coordinates, dtype=np.float32)})


VIEW: Final = JobKind(
    name="view",
    room=__name__,
    work=_compute_view,
    results=results.STORE,
    pool=ENCODERS,
    prepare=PREPARE,
    memory_field="max_rows",
    memory_advice="Take fewer rows, or close other programs that use memory.",
)
"""Jobs for a `ViewRequest`, with the key from `isoviz.exploring.request.key_of`."""

SENTENCES: Final = JobKind(
    name="sentences",
    room=__name__,
    work=_embed_sentences,
    results=QUESTIONS,
    pool=Pool("sentences"),
    prepare=PREPARE,
    warm_seconds=_IDLE_SECONDS,
)
"""`{"model", "fingerprint", "layer", "pooling", "max_length", "direction", "prompt", "truncate", "texts": columns}`; the
result has the arrays of `isoviz.exploring.encoders.Embedded`, and `tokens`. Its process keeps the model loaded for the next sentences."""

MAP: Final = JobKind(
    name="map",
    room=__name__,
    work=_lay_out,
    results=QUESTIONS,
    pool=Pool("maps"),  # two UMAPs never run at the same time
    warm_seconds=_IDLE_SECONDS,
    remembers=3,
    memory_advice="Take fewer points, or close other programs that use memory.",
)
"""`{"view": key, "layer", "pooling", "map": a MapRequest}`, with `points` (m, d) as input to place them in that map;
the result has `coordinates`. Its process caches fitted maps and refits them if needed."""


def obtain(request: ViewRequest) -> results.ViewResult:
    """The view of a request, computed if it is not cached; waits for the result. For notebooks; pages poll instead.

    Raises:
        IsoVizError: an invalid setting, the job's error, or it took longer than an hour.
    """

    def key_now() -> str:  # a hub model's key changes once it is downloaded
        source = None if request.task == user_sets.VECTORS else encoders.resolve(request.model)
        return key_of(request, source, rows_of(request.task, request.data))

    request.check()
    queue.start(VIEW, key_now(), request.as_json())
    deadline = time.monotonic() + 3600.0
    while True:
        key = key_now()
        state = queue.look(VIEW, key)
        view = results.find(key) if state.status == "done" else None
        if view is not None:
            return view
        if state.in_trouble:
            raise InputError(state.message, field=state.field, advice=state.advice)
        if time.monotonic() > deadline:
            raise InputError("the view took longer than an hour")
        queue.dispatch()
        time.sleep(0.2)


def prepare() -> None:
    """Warm up a prepared worker: import the modules for encoders, and run slow first calls once."""
    from isoviz import tasks

    extraction = (
        "pyarrow.parquet",
        "isoviz.models.extract",
        "isoviz.models.profile",
        "isoviz.exploring.measuring",
    )
    import_modules((*ENCODER_MODULES, *extraction, "isoviz.jobs.answering"))
    tasks.load(tasks.get("demo/acceptability"))
    encoders.load("demo/tiny-bert").embed([["the cat sleeps"]], layer=1, pooling="cls", max_length=8)
    print("ready", flush=True)
