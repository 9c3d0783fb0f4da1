"""Encoders by name: those of `isoviz.models.sources`, and `run:ID` for the encoder of a finished run."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from isoviz import allowed_paths, devices
from isoviz.errors import ModelError, StoreError
from isoviz.models import prefixes, sources
from isoviz.models.sources import ModelSource
from isoviz.models.views import Pooling
from isoviz.training.weights import FILE, fingerprint, newest

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

    from isoviz.models.adapter import HeadedModel
    from isoviz.models.encoder import Encoder
    from isoviz.runs.rows import RunRow
    from isoviz.runs.store import Store

RUN: Final = "run:"
_BATCH: Final = 64


@dataclass(frozen=True)
class Embedded:
    """Texts as points.

    Attributes:
        points: (m, d) float32: one per text, or one per token of each.
        texts: (m,) int64, index of each point's text.
        tokens: each point's token for pooling `tokens`, else empty.
    """

    points: NDArray[np.float32]
    texts: NDArray[np.int64]
    tokens: tuple[str, ...]


def resolve(name: str, store: Store | None = None) -> ModelSource:
    """Find an encoder. A run's encoder has the location of its initial model, but its own fingerprint.

    Args:
        store: store of the runs; None for this machine's store.

    Raises:
        ModelError: the model does not exist; for a run: it does not exist, has not finished, or has no weights.
    """
    if not name.startswith(RUN):
        return sources.resolve(name)
    row, weights = _finished(name, store)
    with allowed_paths.unrestricted():
        base = sources.resolve(row.config.model)
    return ModelSource(name, "local", base.location, fingerprint(weights))


@dataclass(frozen=True)
class FinishedRun:
    """The saved model of a finished run: encoder, method and head, in evaluation mode.

    Attributes:
        task: slug of the task of its head.
        scores_rows: its head gives every row a vector of scores, as for classification and regression.
        before: the prefixes of the first and the second text in training.
    """

    model: HeadedModel
    tokenizer: PreTrainedTokenizerBase
    task: str
    scores_rows: bool
    before: tuple[str, str] = ("", "")

    def logits(self, texts: Sequence[Sequence[str]], max_length: int) -> NDArray[np.float32]:
        """(n, labels): logits of the head for one or two columns of n texts, which already have their prefixes."""
        return self._forward(texts, max_length, "logits")

    def head_points(self, texts: Sequence[Sequence[str]], max_length: int) -> NDArray[np.float32]:
        """(n, h): input of the output layer for each text, after the method; for heads with `scores_rows`."""
        return self._forward(texts, max_length, "head")

    def _forward(self, texts: Sequence[Sequence[str]], max_length: int, output_name: str) -> NDArray[np.float32]:
        import torch

        def compute(device: torch.device) -> NDArray[np.float32]:
            model, parts = self.model.to(device), []
            for start in range(0, len(texts[0]), _BATCH):
                batch = _batch(self.tokenizer, [column[start : start + _BATCH] for column in texts], max_length)
                batch = {name: value.to(device) for name, value in batch.items()}
                with torch.inference_mode():
                    parts.append(getattr(model(**batch), output_name).float().cpu().numpy())
            return np.concatenate(parts)

        return devices.where_free(compute)


@contextlib.contextmanager
def opened(name: str) -> Iterator[tuple[ModelSource, FinishedRun | None]]:
    """The encoder as a source for `layer_views`; for a run, also the complete model with its head. Imports torch for a run."""
    if not name.startswith(RUN):
        yield sources.resolve(name), None
        return
    run = load_run(name)
    with tempfile.TemporaryDirectory(prefix="isoviz-encoder-") as folder:
        if run.model.kind == "embedding":
            from isoviz.models import folding

            folding.save_embedder(run.model, run.tokenizer, Path(folder), run.before)
        else:
            encoder: Any = run.model.network.base_model  # without the head, whose width depends on the task
            encoder.save_pretrained(folder)
            run.tokenizer.save_pretrained(folder)
        yield ModelSource(name, "local", folder, resolve(name).fingerprint), run


@dataclass(frozen=True)
class Reader:
    """A loaded model that embeds texts in the same way as its views; `before` as in `FinishedRun`."""

    encoder: Encoder
    before: tuple[str, str] = ("", "")
    source: ModelSource | None = None

    @functools.cached_property
    def sentence_model(self) -> SentenceTransformer:
        """The same model with its modules, for pooling `sentence`."""
        from isoviz.models import sentences

        assert self.source is not None
        return sentences.load(self.source)

    def embed(
        self,
        texts: Sequence[Sequence[str]],
        layer: int,
        pooling: Pooling,
        max_length: int,
        *,
        prompt: str | None = None,
        truncate: int | None = None,
    ) -> Embedded:
        """Like `isoviz.models.extract.embed` for one or two columns of texts, with a loaded model."""
        if pooling == "sentence":
            from isoviz.models import sentences

            points = sentences.vectors(
                self.sentence_model, texts[0], prompt=prompt, truncate=truncate, max_length=max_length
            )
            return Embedded(points, np.arange(len(points)), ())
        batch = _batch(self.encoder.tokenizer, prefixed(texts, self.before), max_length)
        from isoviz.models import extract

        states, _ = self.encoder(batch)
        hidden, keep = states[layer].float(), batch["attention_mask"].bool()
        every = np.arange(len(hidden))
        if pooling != "tokens":
            return Embedded(extract.pooled_rows(hidden, keep, pooling).numpy(), every, ())
        token_texts = self.encoder.tokenizer.convert_ids_to_tokens(batch["input_ids"][keep].tolist())
        return Embedded(hidden[keep].numpy(), np.repeat(every, keep.sum(dim=1).numpy()), tuple(map(str, token_texts)))


def load(name: str, direction: str | None = None, allow_random: bool = False) -> Reader:
    """Load a model by name to embed texts, for a translation task in `direction`. Imports torch.

    Args:
        allow_random: accept a checkpoint that does not fit the model.
    """
    from isoviz.models import encoder

    with opened(name) as (source, run):
        loaded = encoder.load(source, direction=direction, allow_random=allow_random)
        return Reader(loaded, run.before, None) if run else Reader(loaded, source=source)


def prefixed(texts: Sequence[Sequence[str]], before: tuple[str, str]) -> list[list[str]]:
    """One or two columns of texts with these prefixes."""
    columns = zip(texts, before, strict=False)
    return [[f"{prefix} {text}" for text in column] if prefix else list(column) for column, prefix in columns]


def load_run(name: str, store: Store | None = None) -> FinishedRun:
    """The saved model of a finished run. Imports torch. Raises like `resolve`."""
    from isoviz.training.reload import reload

    row, weights = _finished(name, store)
    model, head = reload(row.config, weights)
    before = prefixes.split_prefix(row.config.prefix)
    return FinishedRun(model, head.tokenizer, row.config.task, head.task.rules.per_row, before)


def _batch(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Sequence[str]], max_length: int) -> dict[str, Any]:
    columns = [list(column) for column in texts]
    return dict(
        tokenizer(
            *columns, truncation=True, max_length=max_length, padding=True, padding_side="right", return_tensors="pt"
        )
    )


def has_weights(run_id: str, store: Store) -> bool:
    """Whether the weights of a finished run are on this machine."""
    return _weights(store.path_of(run_id)) is not None


def _finished(name: str, store: Store | None) -> tuple[RunRow, Path]:
    from isoviz.runs.store import Store

    run_id = name.removeprefix(RUN)
    with contextlib.closing(Store()) if store is None else contextlib.nullcontext(store) as opened_store:
        try:
            row = opened_store.get(run_id)
            weights = _weights(opened_store.folder_of(run_id))
        except StoreError:
            raise ModelError(f"model: run not found: '{run_id}'", field="model") from None
    if row.status != "finished":
        raise ModelError(f"model: run '{row.id}' is {row.status}; only a finished run can be analysed", field="model")
    if weights is None:
        raise ModelError(f"model: the weights of run '{row.id}' are not on this machine", field="model")
    return row, weights


def _weights(run_dir: Path) -> Path | None:
    checkpoint = newest(run_dir)
    return checkpoint if checkpoint is not None and (checkpoint / FILE).is_file() else None
