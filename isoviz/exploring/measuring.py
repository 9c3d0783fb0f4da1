"""The content of a view: all measures of all layers and poolings, and the arrays of its figures."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

import isoviz
from isoviz import metrics, tasks
from isoviz.errors import InputError, IsoVizError
from isoviz.exploring import encoders, outputs, points, shrinkage, user_sets
from isoviz.exploring.request import FORMAT, ViewRequest
from isoviz.exploring.results import RANDOM, array_name
from isoviz.metrics.cloud import draw
from isoviz.metrics.measuring import applicable
from isoviz.metrics.protocol import QUICK
from isoviz.metrics.record import PENDING, CloudRecord, Reading
from isoviz.metrics.sample import Sample
from isoviz.metrics.spectrum import cumulative_shares
from isoviz.models.views import Pooling, Views

EV_KEPT: Final = 200
COSINE_POINTS: Final = 1_000
"""Most points for pairwise cosines: half a million pairs."""
COSINE_BINS: Final = 200
"""Number of bins of equal width over [−1, 1]."""
CLOUD_POINTS: Final = 20_000
CLOUD_BYTES: Final = 384 * 2**20
"""Most bytes of the stored clouds of rows, all layers together; clouds of tokens may take a third of that."""
_FLOAT16_MAX: Final = 6e4

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.tasks.protocol import Task

Tell = Callable[[int, int, str], None]
Records = list[CloudRecord]
Computed = tuple[dict[str, Any], dict[str, NDArray[Any]]]

# Shares of the time for a small encoder on two cores. A large encoder spends more on reading, where the bar is then slower.
_READING, _MEASURING, _PICTURES, _NEIGHBOURS, _TRAINING = (0, 350), (350, 430), (430, 500), (500, 800), (800, 1000)
_TOTAL: Final = 1000
OUTPUT: Final = "output matrix"
TO_COME: Final = Reading(undefined=PENDING)
_PENDING_OUTPUT: Final = {"reason": "it is still being measured"}
_PENDING_SHRINKAGE: Final = {"reason": "it is still being computed, from training tokens"}


def slow_metrics() -> list[str]:
    """Slugs of metrics computed after the first figures."""
    return [metric.slug for metric in applicable("rows") if metric.cost not in QUICK]


def pending() -> list[str]:
    """Measures computed after the first figures, in order."""
    return [*slow_metrics(), OUTPUT, shrinkage.MEASURE]


def compute(
    request: ViewRequest, tell: Tell, show: Callable[[dict[str, Any], dict[str, NDArray[Any]]], None] | None = None
) -> Computed:
    """The facts for `profile.json` and the arrays by name, see `arrays_of`.

    Args:
        tell: called with `done`, `total` and the current activity; `done` never decreases.
        show: called with all arrays and facts, of which those under `pending` follow: first metrics over pairs of points (quadratic
            time), the output matrix (possibly a whole vocabulary) and IsoScore* (needs training rows); then only IsoScore*.

    Raises:
        IsoVizError: an error in the user's terms, with the field of the request.
    """
    request.check()
    began = time.monotonic()
    tell(0, _TOTAL, "reading the data")
    task = user_sets.task_of(request.task)
    encoders.resolve(request.model)
    frames, fingerprint = _rows(request, task)
    frame = frames[request.split].iloc[: request.max_rows]
    tell(0, _TOTAL, "loading the model")

    from isoviz.models.adapter import load_tokenizer
    from isoviz.models.extract import layer_views
    from isoviz.models.profile import completed, profile

    with encoders.opened(request.model) as (encoder, run):
        read_layers = functools.partial(
            layer_views,
            encoder,
            max_length=request.max_length,
            seed=request.seed,
            direction=task.checked_direction(request.direction) or None,
            allow_random=request.allow_random,
            dtype=request.dtype,  # type: ignore[arg-type]  # checked there
        )
        texts = _texts(frame, task, run)
        try:  # the cloud `head` exists only in fine-tuning, so only hidden states
            views = read_layers(
                texts,
                poolings="states",
                prompt=request.prompt,
                truncate=request.truncate,
                progress=_part(tell, _READING, "rows"),
            )
        except IsoVizError as error:
            if error.field != "max_eval":  # the command line's name of the number of rows
                raise
            message = str(error).replace("max_eval", "max_rows", 1)
            raise InputError(message, field="max_rows", advice=error.advice) from None
        tokenizer = load_tokenizer(encoder)
        scored = run is not None and run.task == request.task and run.scores_rows
        logits = run.logits(texts, request.max_length) if run is not None and scored else None
        read = time.monotonic()
        measuring = _part(tell, _MEASURING, "clouds")
        records = profile(views, split=request.split, seed=request.seed, costs=QUICK, progress=measuring)
        if random := [note for note in views.warnings if note.startswith(RANDOM)]:  # noted with every number
            records = [record.model_copy(update={"notes": (*random, *record.notes)}) for record in records]
        arrays = arrays_of(views, seed=request.seed, progress=_part(tell, _PICTURES, "clouds"))
        token_texts = tokenizer.convert_ids_to_tokens(views.tokens[views.depth].ids.tolist())
        table = points.rows(frame, task, views.lengths, logits)
        arrays |= points_of(views, table, list(map(str, token_texts)), request.seed)
        source = encoders.resolve(request.model)  # a hub model is downloaded now
        facts = {
            "format": FORMAT,
            "isoviz": isoviz.__version__,
            "request": request.as_json(),
            "model_fingerprint": source.fingerprint,
            "model_revision": source.revision,
            "data_fingerprint": fingerprint,
            "rows": views.rows,
            "rows_in_split": len(frames[request.split]),
            "depth": views.depth,
            "max_length": views.max_length,
            "truncated": views.truncated,
            "device": views.device,
            "warnings": list(views.warnings),
            "cosine_points": COSINE_POINTS,
            "token_sample": len(token_texts),
            "reading_seconds": round(read - began, 3),
        }
        if show:
            early = [record.with_readings(dict.fromkeys(slow_metrics(), TO_COME)) for record in records]
            early = shrinkage.without(early, _PENDING_SHRINKAGE["reason"])
            show(with_records(facts, early, _PENDING_OUTPUT, _PENDING_SHRINKAGE, read, pending()), arrays)
        report_pairs = _part(tell, _NEIGHBOURS, "clouds")
        complete_records = []
        for done, record in enumerate(records, start=1):
            complete_records.append(completed(record, views, seed=request.seed))
            report_pairs(done, len(records), "comparing pairs of points")
        activity = "measuring the output matrix"
        output = outputs.of(
            source, run, lambda done, total: tell(_TRAINING[0], _TOTAL, f"{activity}, {done:,} of {total:,} rows")
        )
        if show:
            early = shrinkage.without(complete_records, _PENDING_SHRINKAGE["reason"])
            show(with_records(facts, early, output, _PENDING_SHRINKAGE, read, [shrinkage.MEASURE]), arrays)
        of_training = _part(tell, _TRAINING, "rows")

        def training_tokens(numbers: NDArray[np.int64]) -> Views:
            return read_layers(
                _texts(frames["train"].iloc[numbers], task, run),
                poolings=("tokens",),
                max_tokens_per_layer=1,  # only running sums are needed
                prompts=0,
                progress=lambda done, total, _: of_training(done, total, "reading training texts for IsoScore*"),
            )

        target = (
            shrinkage.target(request, len(frames["train"]), views, training_tokens)
            if "train" in frames
            else "your own texts have no training split for its Σ_S"
        )
    if isinstance(target, str):
        complete_records, layers, of_target = shrinkage.without(complete_records, target), None, {"reason": target}
    else:
        layers, of_target = shrinkage.together(views, target, split=request.split), target.facts
        complete_records = shrinkage.scored(complete_records, views, target)
    tell(_TOTAL, _TOTAL, "keeping the numbers")
    return with_records(facts, complete_records, output, of_target, read, layers=layers), arrays


def with_records(
    facts: dict[str, Any],
    records: Records,
    output: dict[str, Any],
    shrinkage: dict[str, Any],
    since: float,
    pending: Sequence[str] = (),
    *,
    layers: CloudRecord | None = None,
) -> dict[str, Any]:
    """The facts of a view with what has been measured `since` then; `pending`: what follows."""
    measured = {
        "entries": [record.model_dump(mode="json") for record in records],
        "output": output,
        "shrinkage": shrinkage,
        "layers": layers.model_dump(mode="json") if layers else None,
        "measuring_seconds": round(time.monotonic() - since, 3),
    }
    return {**facts, **measured, **({"pending": list(pending)} if pending else {})}


def _rows(request: ViewRequest, task: Task) -> tuple[dict[str, pd.DataFrame], str]:
    """Split → rows, and the fingerprint of all rows."""
    if user_sets.is_user_set(request.task):
        return {user_sets.ALL_ROWS: user_sets.rows_of(user_sets.load_set(request.task, request.data))}, str(
            request.data
        )
    rows = tasks.load(task, request.data, request.direction)
    return {"train": rows.train, "validation": rows.validation}, rows.fingerprint


def _texts(frame: pd.DataFrame, task: Task, run: encoders.FinishedRun | None) -> list[list[str]]:
    """The text columns for the encoder, with the prefixes from its training."""
    columns = [frame[column].tolist() for column in task.inputs]
    return encoders.prefixed(columns, run.before) if run is not None else columns


def arrays_of(views: Views, *, seed: int = 0, progress: Tell | None = None) -> dict[str, NDArray[Any]]:
    """Arrays for the figures of each cloud, by `array_name`.

    Per layer and pooling: `ev` (k,) float64, k <= `EV_KEPT`, nan where undefined; `sigma` (d,) population standard
    deviations and `mean` (d,), float32; `cosine` (`COSINE_BINS`,) int64, counts of the cosines of distinct pairs; of tokens also
    `prompts` (k,) float64, the prompt entropy of k texts. For the last
    layer also `correlation` (d, d) uint8, |ρ| · 255 in the `order` (d,) int32 that places correlated dimensions side by side.
    """
    arrays: dict[str, NDArray[Any]] = {}
    keys: list[tuple[int, Pooling]] = [*views.clouds, *((layer, "tokens") for layer in views.tokens)]
    for done, (layer, pooling) in enumerate(keys):
        tokens = views.tokens.get(layer) if pooling == "tokens" else None
        cloud = views.points(layer, pooling)
        sums = tokens.stream.sample() if tokens is not None else None
        values = figures_of(cloud, sums, with_matrix=layer == views.depth, seed=seed)
        if tokens is not None:
            values["prompts"] = tokens.entropies
        arrays |= {array_name(layer, pooling, name): array for name, array in values.items()}
        if progress:
            progress(done + 1, len(keys), "drawing up figures")
    return arrays


def figures_of(
    cloud: NDArray[Any], sums: Sample | None = None, *, with_matrix: bool = False, seed: int = 0
) -> dict[str, NDArray[Any]]:
    """The arrays of one cloud (n, d), see `arrays_of`. `sums`, from more points than the cloud, are used if given."""
    sample = Sample(cloud) if sums is None else sums
    count, spectrum = min(EV_KEPT, *(cloud.shape if sums is None else (sample.d,))), sample.eigenvalues
    values: dict[str, NDArray[Any]] = {
        "ev": np.full(count, np.nan) if spectrum is None else cumulative_shares(spectrum, count),
        "sigma": sample.std.astype(np.float32),
        "mean": sample.mean.astype(np.float32),
        "cosine": cosine_counts(cloud, seed=seed),
    }
    if with_matrix:
        matrix = np.asarray(metrics.abs_correlation(cloud))
        order = np.asarray(metrics.correlation_order(matrix))
        values["order"] = order.astype(np.int32)
        values["correlation"] = np.rint(matrix[np.ix_(order, order)] * 255).astype(np.uint8)
    return values


def points_of(views: Views, table: pd.DataFrame, token_texts: list[str], seed: int = 0) -> dict[str, NDArray[Any]]:
    """The clouds, and tables that describe their points.

    Per layer and pooling `cloud` (m, d) float16 (float32 if a number is too large for that), under `array_name`. At most
    `CLOUD_POINTS` rows, and at most `CLOUD_BYTES`, are sampled with the seed, the same rows in every layer. `points.ROWS` and
    `points.TOKENS` describe the points, in the same order.

    Args:
        table: from `isoviz.exploring.points.rows`, one line per row.
        token_texts: (m,) the sampled tokens of a layer.
    """
    per_row = 2 * sum(cloud.shape[1] for cloud in views.clouds.values())
    rows = draw(views.rows, min(CLOUD_POINTS, max(1, CLOUD_BYTES // per_row)), seed)
    per_token = 2 * sum(view.sample.shape[1] for view in views.tokens.values())
    sampled_tokens = draw(len(token_texts), max(1, CLOUD_BYTES // 3 // per_token), seed)
    arrays = {array_name(*key, "cloud"): small(cloud[rows]) for key, cloud in views.clouds.items()}
    for layer, view in views.tokens.items():
        arrays[array_name(layer, "tokens", "cloud")] = small(view.sample[sampled_tokens])
    groups = views.tokens[views.depth].groups[sampled_tokens]
    of_tokens = table.iloc[groups].reset_index(drop=True)
    of_tokens.insert(0, "token", [token_texts[place] for place in sampled_tokens])
    arrays[points.ROWS] = points.packed(table.iloc[rows].reset_index(drop=True))
    arrays[points.TOKENS] = points.packed(of_tokens)
    return arrays


def small(cloud: NDArray[Any]) -> NDArray[Any]:
    """The cloud as float16, or as float32 if a number is too large for that."""
    return cloud.astype(np.float16 if np.abs(cloud).max() <= _FLOAT16_MAX else np.float32)


def cosine_counts(cloud: NDArray[Any], *, seed: int = 0) -> NDArray[np.int64]:
    """Histogram of the cosines of distinct pairs, (`COSINE_BINS`,): all pairs of at most `COSINE_POINTS` points, sampled with
    the seed, without zero vectors; the last bin includes 1."""
    x = np.asarray(cloud)
    x = x[draw(len(x), COSINE_POINTS, seed)].astype(np.float64)
    biggest = np.abs(x).max(axis=1)
    x = x[biggest > 0] / biggest[biggest > 0][:, None]  # scale first, so that squares neither overflow nor underflow
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    above = np.triu_indices(len(unit), k=1)
    cosines = np.clip((unit @ unit.T)[above], -1.0, 1.0)
    counts, _ = np.histogram(cosines, bins=COSINE_BINS, range=(-1.0, 1.0))
    return counts.astype(np.int64)


def _part(tell: Tell, share: tuple[int, int], units: str) -> Tell:
    """Map the progress of one part of the work to the total progress."""
    start, end = share

    def report(done: int, total: int, text: str) -> None:
        count = f", {done} of {total} {units}" if done else ""
        tell(start + (end - start) * done // max(1, total), _TOTAL, text + count)

    return report
