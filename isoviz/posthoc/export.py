"""Exports a fitted affine chain for use without IsoViz: two arrays with six lines of numpy, or a sentence-transformers
model."""

from __future__ import annotations

import io
import json
import tempfile
import warnings
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

import isoviz
from isoviz.errors import InputError
from isoviz.models.sources import ModelSource
from isoviz.models.views import Pooling
from isoviz.posthoc.protocol import Affine

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

TOLERANCE: Final = 1e-5
"""Largest allowed deviation of an exported model's vectors from IsoViz's, as a share of the longest vector."""
_CANCELS: Final = 10.0
_SAME_LENGTH: Final = 0.01
"""Share of the longest vector by which equal lengths differ after rounding."""
_FAR: Final = 3.0
"""Distance between the means of two sets of a model's vectors, in units of their spread, that other texts may explain."""
PROBES: Final = (
    "A short text.", "The committee read the second report, which took longer than the first.", "42", "où est la gare ?",
    "Whitening makes every direction vary as much as every other one; whether that helps depends on the task.",
)  # fmt: skip
_MODES: Final = {"cls": "cls", "mean": "mean", "last": "lasttoken"}
_NUMPY: Final = """```python
import numpy as np
from safetensors.numpy import load_file

transform = load_file("transform.safetensors")
vectors = np.load("vectors.npy")  # ({d} numbers each)
np.save("image.npy", vectors @ transform["W"] + transform["b"])
```"""
_LIBRARY: Final = """```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("path/to/this/folder")
vectors = model.encode(["a text", "another"])  # {d} numbers each
```"""


class MismatchWarning(UserWarning):
    """The rows that a chain is fitted on are probably not vectors of the exported model."""


@dataclass(frozen=True)
class Effect:
    """A measured change on rows outside the fit set.

    Attributes:
        name: of the measure.
        before, after: without and with the chain.
        low, high: ends of the 95 % interval of the difference; None if there is no interval.
        rows: the rows measured, in words: "500 validation rows".
    """

    name: str
    before: float | None
    after: float | None
    low: float | None = None
    high: float | None = None
    rows: str = ""

    @property
    def words(self) -> str:
        """`accuracy: 0.8120 → 0.8240 (difference 0.0020 to 0.0220 at 95 %), 500 validation rows`."""
        values = " → ".join("undefined" if value is None else f"{value:.4f}" for value in (self.before, self.after))
        ends = "" if self.low is None else f" (difference {self.low:.4f} to {self.high:.4f} at 95 %)"
        return f"{self.name}: {values}{ends}{self.rows and f', {self.rows}'}"


@dataclass(frozen=True)
class Origin:
    """The origin of a chain, included in every export.

    Attributes:
        chain: as text (`isoviz.whatif.chains`).
        data: name of the fit set.
        key: content key of the fit set.
        rows: number of rows in the fit set.
        split: the selection of these rows: "train", "of 300, drawn with seed 0".
        vectors: how the vectors were computed: model, pooling, prompt.
        effects: measured on rows outside the fit set.
        warning: why the fit set is probably not the exported model's, from `mismatch`; may be "".
        verdicts: whether the chain helps, one sentence per use of the vectors, of the held-back rows once these are checked.
    """

    chain: str
    data: str
    key: str
    rows: int
    split: str
    vectors: str = ""
    effects: tuple[Effect, ...] = field(default=())
    warning: str = ""
    verdicts: tuple[str, ...] = field(default=())

    @property
    def words(self) -> str:
        """Markdown: one line per fact."""
        lines = [f"Chain: `{self.chain}`", f"Fitted on: {self.data}, {self.rows:,} rows ({self.split}), key {self.key}"]
        lines += [f"Vectors: {self.vectors}"] if self.vectors else []
        lines += [f"Verdict: {verdict}" for verdict in self.verdicts]
        lines += [f"Measured: {effect.words}" for effect in self.effects] or ["Effect: not measured"]
        lines += [f"Warning: {self.warning}"] if self.warning else []
        return "\n".join(f"- {line}" for line in lines)

    def as_json(self) -> dict[str, Any]:
        """The fields and the versions of the libraries used."""
        names = ("numpy", "safetensors", "torch", "transformers", "sentence-transformers")
        return {**asdict(self), "isoviz": isoviz.__version__, "versions": {name: version(name) for name in names}}


def require_affine(chain: Any) -> Affine:
    """The map of a fitted transform; InputError (field `chain`) for one that is not affine."""
    affine: Affine | None = chain.affine()
    if affine is None:
        steps = [step.slug for step in getattr(chain, "steps", (chain,)) if step.affine() is None]
        raise InputError.at(
            "chain",
            f"{', '.join(steps)} is not affine, so the chain cannot be written as a matrix or a Dense module",
            "Leave that step out, or use `isoviz transform`.",
        )
    return affine


def as_numpy(affine: Affine, origin: Origin) -> bytes:
    """A zip archive: `transform.safetensors` with W (d, d') and b (d',) in float64, `README.md` and `origin.json`."""
    from safetensors.numpy import save

    arrays = save({"W": np.ascontiguousarray(affine.matrix), "b": np.ascontiguousarray(affine.offset)})
    d, width = affine.matrix.shape
    readme = f"# Transform of {d} to {width} dimensions\n\n{_NUMPY.format(d=d)}\n\n{origin.words}\n"
    return _zipped(
        {
            "transform.safetensors": arrays,
            "README.md": readme.encode(),
            "origin.json": json.dumps(origin.as_json(), indent=1).encode(),
        }
    )


def as_sentence_transformer(
    affine: Affine,
    origin: Origin,
    source: ModelSource,
    folder: Path,
    *,
    pooling: Pooling,
    layer: int | None = None,
    prompt: str | None = None,
    truncate: int | None = None,
    max_length: int | None = None,
    rows: NDArray[np.floating] | None = None,
) -> float:
    """Write a sentence-transformers model whose `encode` returns `isoviz.models.extract.encode` followed by the chain.

    The chain becomes a Dense module after all modules that produced the fit set's vectors, including Normalize. Every export is
    loaded and its vectors compared before it is returned.

    Args:
        source: a model on this machine.
        folder: an empty or a new folder.
        layer: the layer to pool; None for the last. The exported model omits later layers.
        pooling, prompt, truncate, max_length: as in `isoviz.models.extract.encode` for the fit set.
        rows: (n, d) the fit set, if it may come from elsewhere; a `MismatchWarning` reports a `mismatch`.

    Returns:
        The largest deviation from the expected vectors, as a share of the longest vector.

    Raises:
        InputError: sentence-transformers lacks this pooling, or the exported model gives different vectors.
    """
    from isoviz.models.extract import layer_views

    if pooling not in ("sentence", *_MODES):
        allowed = ", ".join(("sentence", *_MODES))
        raise InputError.at("pooling", f"'{pooling}' is not a sentence-transformers pooling (allowed: {allowed})")
    views = layer_views(
        source,
        [list(PROBES)],
        poolings=[pooling],
        layers="last" if layer is None else [layer],
        max_length=max_length,
        prompt=prompt,
        truncate=truncate,
    )
    points = views.points(views.depth if layer is None else layer, pooling).astype(np.float64)
    if points.shape[1] != len(affine.matrix):
        raise InputError.at(
            "chain", f"it was fitted on {len(affine.matrix)} dimensions, '{source.name}' gives {points.shape[1]}"
        )
    if rows is not None and (problem := mismatch(points, rows)):
        origin = replace(origin, warning=problem)
        warnings.warn(problem, MismatchWarning, stacklevel=2)
    expected = affine.of_points(points)
    model = _bare(source, pooling, max_length, layer) if pooling != "sentence" else _with_modules(source, max_length)
    if pooling == "sentence":
        truncate = truncate or model.truncate_dim
        model.default_prompt_name = prompt or model.default_prompt_name
    append_dense(model, affine, points, truncate)
    return save(model, folder, origin, expected, PROBES)


def mismatch(points: NDArray[np.floating], rows: NDArray[np.floating]) -> str:
    """Why rows (n, d) probably do not come from the model that gives `points` (m, d) for sample texts; "" if they may.

    Catches vectors that were normalised, truncated or scaled differently, and those of a strongly anisotropic other model.
    Without the texts, it does not distinguish models whose vectors have equal lengths and means near 0.
    """
    lengths, own = np.linalg.norm(rows, axis=1), float(np.median(np.linalg.norm(points, axis=1)))
    low, high = float(lengths.min()), float(lengths.max())
    advice = "Check that the same model, pooling, prompt and number of dimensions made these vectors"
    slack = high - low + _SAME_LENGTH * high
    if not low - slack <= own <= high + slack:
        return (
            f"the rows the chain is fitted on have lengths {low:.3g} to {high:.3g}, but this model's vectors of {len(points)} "
            f"sample texts have a median length of {own:.3g}. {advice}, and that nothing normalised them afterwards."
        )
    mean = rows.mean(axis=0, dtype=np.float64)
    spread = float(np.sqrt(max(np.mean(lengths.astype(np.float64) ** 2) - mean @ mean, 0.0)))
    distance = float(np.linalg.norm(points.mean(axis=0) - mean))
    if distance > _FAR * spread:
        return (
            f"the mean of this model's vectors of {len(points)} sample texts is {distance:.3g} away from the mean of the rows the "
            f"chain is fitted on, which spread by only {spread:.3g} around it. {advice}."
        )
    return ""


def append_dense(
    model: SentenceTransformer, affine: Affine, points: NDArray[np.float64], truncate: int | None = None
) -> None:
    """Append an affine map to a model's modules.

    The library computes xA + b in single precision. If b is long relative to the images, digits cancel. Another module then
    subtracts a centre c first, and the map becomes (x − c)A + (cA + b).

    Args:
        points: (n, d) sample vectors of the model; they give the length of the images, and their mean is c.
        truncate: number of the model's dimensions that the map reads.
    """
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    def dense(matrix: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
        model.append(
            Dense(
                matrix.shape[0],
                matrix.shape[1],
                activation_function=torch.nn.Identity(),
                init_weight=torch.from_numpy(matrix.T.copy()).float(),
                init_bias=torch.from_numpy(bias.copy()).float(),
            )
        )

    model.truncate_dim = None
    width = model.get_embedding_dimension()
    assert width is not None
    selection = np.eye(width)[:, : truncate or width]
    images, offset = affine.of_points(points), affine.offset
    if np.linalg.norm(offset) > _CANCELS * np.linalg.norm(images, axis=1).max():
        centre = points.mean(axis=0).astype(np.float32).astype(np.float64)
        dense(selection, -centre)
        selection, offset = np.eye(len(centre)), affine.of_points(centre)
    dense(selection @ affine.matrix, offset)


def save(
    model: SentenceTransformer, folder: Path, origin: Origin, expected: NDArray[np.float64], probes: Sequence[str]
) -> float:
    """Write a model with its README, load it again, and compare its vectors of the probes with (n, d') `expected`.

    Returns and raises like `as_sentence_transformer`.
    """
    from sentence_transformers import SentenceTransformer

    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".isoviz-export-") as place:
        unchecked = Path(place) / folder.name
        model.save(str(unchecked), create_model_card=False)
        loaded = SentenceTransformer(str(unchecked), device="cpu", local_files_only=True)
        share = _deviation(loaded.encode(list(probes), show_progress_bar=False), expected)
        if not share <= TOLERANCE:
            raise InputError.at(
                "export",
                f"sentence-transformers and IsoViz give different vectors for this model (deviation {share:.1e})",
                "Export the matrix instead.",
            )
        _describe(unchecked, origin, expected.shape[1], len(probes), share)
        unchecked.rename(folder)
    return share


def _deviation(vectors: NDArray[Any], expected: NDArray[np.float64]) -> float:
    """The largest difference between two entries, as a share of the longest vector."""
    if vectors.shape != expected.shape:
        return float("inf")
    return float(np.abs(vectors - expected).max() / max(np.linalg.norm(expected, axis=1).max(), np.finfo(float).tiny))


def _describe(folder: Path, origin: Origin, width: int, texts: int, share: float) -> None:
    head = "---\nlibrary_name: sentence-transformers\npipeline_tag: sentence-similarity\n---\n"
    checked = f"- Checked: {texts} texts, largest deviation {share:.0e} of the longest vector"
    readme = f"{head}# Embedding model with a transform\n\n{_LIBRARY.format(d=width)}\n\n{origin.words}\n{checked}\n"
    (folder / "README.md").write_text(readme, encoding="utf-8")
    (folder / "origin.json").write_text(
        json.dumps({**origin.as_json(), "deviation": share}, indent=1), encoding="utf-8"
    )


def zipped_model(write: Any) -> bytes:
    """The files that `write(folder)` creates, as a zip archive."""
    with tempfile.TemporaryDirectory(prefix="isoviz-export-") as place:
        folder = Path(place) / "model"
        write(folder)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return _zipped({path.relative_to(folder).as_posix(): path.read_bytes() for path in files})


def bare_transformer(
    location: str, pooling: Pooling, max_length: int | None, layer: int | None = None
) -> SentenceTransformer:
    """A model folder without a module list, with one of the library's poolings and right padding as in
    `isoviz.models.extract`."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling as PoolingModule
    from sentence_transformers.sentence_transformer.modules import Transformer

    transformer = Transformer(
        location,
        model_kwargs={"use_safetensors": True, "dtype": torch.float32, "local_files_only": True},
        processor_kwargs={"padding_side": "right", "local_files_only": True},
        config_kwargs={"local_files_only": True} | ({} if layer is None else {"num_hidden_layers": layer}),
    )
    if transformer.tokenizer.pad_token is None:  # masked out anyway
        transformer.tokenizer.pad_token = transformer.tokenizer.eos_token
    if max_length is not None:
        transformer.max_seq_length = max_length
    module = PoolingModule(transformer.get_embedding_dimension(), _MODES[pooling])
    return SentenceTransformer(modules=[transformer, module], device="cpu")


def _bare(source: ModelSource, pooling: Pooling, max_length: int | None, layer: int | None) -> SentenceTransformer:
    from isoviz.models import encoder
    from isoviz.models.loading import reading

    loaded = encoder.load(source)  # refuses weights that do not fit
    limit = min(max_length or 10**6, loaded.longest or 512)
    with reading(source):
        return bare_transformer(source.location, pooling, limit, layer)


def _with_modules(source: ModelSource, max_length: int | None) -> SentenceTransformer:
    from isoviz.models import sentences

    model = sentences.load(source)
    if max_length is not None:
        model.max_seq_length = min(max_length, model.max_seq_length or max_length)
    return model


def _zipped(files: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()
