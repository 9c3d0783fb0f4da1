"""A run's model in evaluation mode: predictions for the task's metrics, point clouds for the isotropy."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from isoviz.events import Stepped
from isoviz.methods.protocol import Frozen, Method
from isoviz.metrics.streaming import CovarianceAccumulator
from isoviz.models.adapter import HeadedModel
from isoviz.tasks import outcomes
from isoviz.training import processes
from isoviz.training.batches import Collator, Encoded, EpochBatches, fixed_batches
from isoviz.training.heads import Head, Report

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isoviz.config import RunConfig
    from isoviz.tasks.protocol import TaskData

ONE_TOKEN = "one random token of each row"
"""How the `head` and `pooled` clouds are sampled if the output layer reads every token."""
_HELD_TOKENS, _HELD_BYTES = 2_048, 64 * 2**20
"""Most points buffered before summing."""

Batch = dict[str, Tensor]


class Buffered:
    """Running sums in d dimensions that add buffered points in bulk, because each addition costs d² for any number of points."""

    def __init__(self, d: int, most: float = _HELD_TOKENS) -> None:
        self._sums = CovarianceAccumulator(d)
        self._most = most
        self._held: list[Tensor] = []

    def add(self, points: Tensor) -> None:
        """Add (n, d) points of one batch."""
        self._held.append(points)
        if sum(map(len, self._held)) >= self._most:
            self.total()

    def total(self) -> CovarianceAccumulator:
        """The sums over all points so far."""
        if self._held:
            self._sums.update(torch.cat(self._held))
            self._held.clear()
        return self._sums


class EncodedSplits:
    """Training and validation rows of one run.

    Attributes:
        train_count: number of training rows; with windows over long rows, `train` has more items.
        train, validation: the encoded items.
        frame: the validation rows.
        extra: further validation splits by name (MNLI's mismatched genres), which are scored but not measured: rows and items.
        guess: the metrics of the task's simple guess.
        order: decides the batches of an epoch.
        loader: the training batches.
        large: items per batch for evaluation, divided by `shrunk` if memory is short.
    """

    def __init__(
        self,
        data: TaskData,
        head: Head,
        config: RunConfig,
        part: tuple[int, int] = (0, 1),
        shrunk: int = 1,
        report: Report = lambda done, total: None,
    ) -> None:
        self.frame = data.validation
        self.train_count = len(data.train)
        self.guess = outcomes.guess(head.task, data.train, self.frame)
        self.train, self.validation = head.encode(data.train, report), head.encode(self.frame, report)
        self.extra = {name: (frame, head.encode(frame, report)) for name, frame in data.extra.items()}
        self.seed, self.part = config.seed, part
        self.collator = Collator(head.tokenizer.pad_token_id)
        self.large = max(1, (config.batch_size if head.per_token else max(config.batch_size, 64)) // shrunk)
        self.order = EpochBatches(
            self.train.lengths, config.batch_size, config.seed, config.batching == "bucketed", part, head.together
        )
        self.loader: DataLoader[dict[str, Tensor]] = DataLoader(
            self.train, batch_sampler=self.order, collate_fn=self.collator, generator=torch.Generator()
        )

    def part_of(self, encoded: Encoded, items: np.ndarray | None = None) -> DataLoader[dict[str, Tensor]]:
        """This process's part of all items, or of the given ones, in batches for evaluation."""
        return fixed_batches(encoded, self.collator, self.large, items, self.part)

    def sample(self, tokens: int | None) -> DataLoader[dict[str, Tensor]]:
        """This process's part of training items with about `tokens` tokens (None: all): sampled by the run's seed, then sorted by
        length."""
        items = None
        if tokens is not None:
            points = self.train.points
            items = np.random.default_rng((self.seed, 1)).permutation(len(points))
            items = items[: int(np.searchsorted(np.cumsum(points[items]), tokens)) + 1]
        return self.part_of(self.train, items)


@dataclass
class Pass:
    """The result of one pass over the validation rows.

    Attributes:
        loss: mean task loss over the rows.
        predictions: the head's prediction for each item, in order.
        pooled, head: (p, h) one vector of each probe row before and after the method, in row order.
        drawn: how these vectors were sampled if a row has several; otherwise "".
        layers: the probe rows' unpadded tokens, of each layer.
        cloud_seconds: additional seconds for collecting the clouds.
    """

    loss: float
    predictions: list[Any]
    pooled: np.ndarray
    head: np.ndarray
    drawn: str
    layers: list[CovarianceAccumulator]
    cloud_seconds: float


@dataclass(frozen=True)
class Evaluator:
    """Reads a run's rows through its model, without gradient. Each process reads its part.

    Attributes:
        model, head, rows: of the run.
        accelerator: the device and the precision.
        check: called between batches; raises to abort (after a request to stop).
    """

    model: HeadedModel
    head: Head
    rows: EncodedSplits
    accelerator: Accelerator
    check: Callable[[], None]

    def batches(self, batches: Iterable[Batch]) -> Iterator[tuple[Tensor, Batch]]:
        """The numbers of the items of each batch, and its inputs on the device."""
        self.model.eval()
        for batch in batches:
            self.check()
            items = batch.pop("item")
            if self.head.together > 1:  # sorted by length, so no rows
                del batch["labels"]
            yield items, {name: value.to(self.accelerator.device) for name, value in batch.items()}

    def validate(self, probe_rows: int) -> Pass:
        """Predict all validation items, equal texts of embeddings once; collect clouds of the first items of the first `probe_rows` rows.

        If the output layer reads every token, the `pooled` and `head` clouds have one token per row, sampled by seed and row,
        because neighbouring tokens are not independent points.
        """
        model, encoded = self.model, self.rows.validation
        most = min(_HELD_TOKENS, _HELD_BYTES / (4 * model.width * model.num_layers))
        layers = [Buffered(model.width, most) for _ in range(model.num_layers)]
        probed = encoded.firsts(probe_rows)
        first = encoded.originals(probed) if self.head.together > 1 else np.arange(len(encoded))
        items_read = np.unique(first)
        shares = np.random.default_rng((self.rows.seed, 2)).random(len(encoded))
        predictions: list[tuple[int, Any]] = []
        vectors: list[tuple[np.ndarray, ...]] = []
        loss, labels, cloud_seconds = 0.0, 0, 0.0
        with torch.inference_mode():
            for numbers, batch in self.batches(self.rows.part_of(encoded, items_read)):
                items = numbers.numpy()
                with self.accelerator.autocast():
                    outputs = model(**batch)
                    predictions += zip(items.tolist(), self.head.predict(model, outputs, batch), strict=True)
                if self.head.together == 1:
                    loss += float(outputs.terms["task"]) * outputs.count
                    labels += outputs.count
                began = time.perf_counter()
                probe, mask = probed[items], outputs.reps.attention_mask
                places = np.arange(len(items))
                if model.per_token:
                    counts = mask.sum(dim=1).cpu().numpy()
                    places = np.cumsum(counts) - counts + (shares[items] * counts).astype(np.int64)
                positions = torch.from_numpy(places[probe]).to(mask.device)
                layers_read = (outputs.reps.pooled[positions].float(), outputs.head[positions].float())
                vectors.append((items[probe], *(value.cpu().numpy() for value in layers_read)))
                keep = mask.bool() & torch.from_numpy(probe).to(mask.device)[:, None]
                for layer, hidden in zip(layers, outputs.reps.hidden_states, strict=True):
                    layer.add(hidden[keep].float())
                cloud_seconds += time.perf_counter() - began
        results = processes.gather((loss, labels, vectors))
        in_order = self._in_order(predictions)
        in_order = [in_order[place] for place in np.searchsorted(items_read, first)]
        if self.head.together == 1:
            mean_loss = sum(result[0] for result in results) / sum(result[1] for result in results)
        else:
            mean_loss = self.head.loss(model, encoded, in_order)
        clouds: list[CovarianceAccumulator] = []
        if math.isfinite(mean_loss):  # otherwise there are no clouds, and the caller ends the run
            began = time.perf_counter()
            clouds = [layer.total().reduce(processes.gather) for layer in layers]
            cloud_seconds += time.perf_counter() - began
        parts = [part for result in results for part in result[2]]
        numbered, pooled, head = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(numbered, kind="stable")
        return Pass(
            loss=mean_loss,
            predictions=in_order,
            pooled=pooled[order],
            head=head[order],
            drawn=ONE_TOKEN if model.per_token else "the first text of each row" if self.head.together > 1 else "",
            layers=clouds,
            cloud_seconds=cloud_seconds,
        )

    def extra_metrics(self) -> dict[str, float | None]:
        """`METRIC_SPLIT` → value, for every metric of the task on every further validation split."""
        values: dict[str, float | None] = {}
        for name, (frame, encoded) in self.rows.extra.items():
            predictions: list[tuple[int, Any]] = []
            with torch.inference_mode():
                for items, batch in self.batches(self.rows.part_of(encoded)):
                    with self.accelerator.autocast():
                        predicted = self.head.predict(self.model, self.model(**batch), batch)
                    predictions += zip(items.tolist(), predicted, strict=True)
            answers = self.head.answers(frame, encoded, self._in_order(predictions))
            values |= {f"{metric}_{name}": value for metric, value in self.head.evaluate(frame, answers).items()}
        return values

    def _in_order(self, predictions: list[tuple[int, Any]]) -> list[Any]:
        pairs = (pair for part in processes.gather(predictions) for pair in part)
        return [value for _, value in sorted(pairs, key=itemgetter(0))]


# ---- a second stage ---------------------------------------------------------------------------------------------


def fit_frozen(
    evaluator: Evaluator, method: Method, report: Callable[[Stepped], None], *, step: int, epoch: int, most_steps: int
) -> int:
    """Run the method's `fit_frozen` on the vectors of all training rows; returns how many steps it took.

    Deterministic by the run's seed alone, so that every process, and a resumed run, does the same.

    Args:
        report: called with every step.
        step, epoch: finished before the stage.
        most_steps: at most how many steps it takes.
    """
    pooled, labels = _vectors(evaluator)
    began = time.perf_counter()
    steps, rows = 0, 0

    def report_step(losses: dict[str, float], count: int, learning_rate: float) -> None:
        nonlocal steps, rows
        steps, rows = steps + 1, rows + count
        seconds = time.perf_counter() - began
        report(
            Stepped(
                step=step + steps,
                epoch=epoch + steps / most_steps,
                losses=losses,
                learning_rate=learning_rate,
                samples_per_second=rows / seconds,
                eta_seconds=max(0, most_steps - steps) * seconds / steps,
            )
        )

    def metric(logits: Tensor, truth: Tensor) -> float:
        value = evaluator.head.primary_of(logits, truth)
        return -math.inf if value is None else value

    model, seed = evaluator.model, evaluator.rows.seed
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        check = evaluator.check
        method.fit_frozen(Frozen(pooled, labels, model.output, model.task_loss, metric, generator, report_step, check))
    return steps


def _vectors(evaluator: Evaluator) -> tuple[Tensor, Tensor]:
    """(n, h) float32 pooled vectors in evaluation mode and (n,) labels, in row order, on this process's device."""
    device, read = evaluator.accelerator.device, []
    for rows, batch in evaluator.batches(evaluator.rows.sample(None)):
        labels = batch.pop("labels").cpu()
        with torch.no_grad(), evaluator.accelerator.autocast():
            read.append((rows, evaluator.model.represent(**batch).pooled.float().cpu(), labels))
    parts = [part for process_vectors in processes.gather(read) for part in process_vectors]
    rows, pooled, labels = (torch.cat(column) for column in zip(*parts, strict=True))
    order = rows.argsort()
    return pooled[order].to(device), labels[order].to(device)
