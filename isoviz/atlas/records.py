"""The record of one encoder on one corpus by one protocol: its ruler, and each layer's measures of isotropy. Read and written."""

from __future__ import annotations

import functools
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from isoviz import demo, input_validation
from isoviz.cosines import Level, Ruler, Threshold
from isoviz.errors import InputError, input_error
from isoviz.home import home

Protocol = Literal["sentence", "mean", "cls", "last"]
"""The pooling of the ruler's vectors. All else is the same for every record of a version."""
VERSION: Final = 1
MAX_LENGTH: Final = 128
"""Tokens read of a text at most."""
MOST_OWN: Final = 200
"""Most records read from the user's folder."""
_NUMBERS: Final = re.compile(r"\[\s+([-+\d.e,\s]+?)\s+\]")


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Encoder(_Part):
    """`name`: bundled name or hub id. `fingerprint`: of configuration and weights. `revision`: the hub's commit, if the weights are from
    there; `weights`: else where they came from, such as a package and its version. `licence`: of the weights."""

    name: str = Field(min_length=1, max_length=120)
    fingerprint: str = Field(pattern="^[0-9a-f]{16}$")
    revision: str | None = None
    weights: str = Field("", max_length=200)
    licence: str = Field("", max_length=80)


class Texts(_Part):
    """The corpus: name, content hash (`isoviz.atlas.corpora.Corpus.digest`), number of texts and of related pairs."""

    name: str = Field(min_length=1, max_length=120)
    digest: str = Field(pattern="^[0-9a-f]{32}$")
    texts: int = Field(ge=10)
    pairs: int = Field(ge=10)


class Layer(_Part):
    """One vector per text from one layer (0: the embedding output).

    Attributes:
        measures: slug of a metric → its value on these n vectors; None if undefined.
        floor, auc, separates, threshold: as in `isoviz.cosines.Ruler`.
    """

    layer: int = Field(ge=0)
    pooling: Protocol
    n: int
    d: int
    measures: dict[str, float | None]
    floor: tuple[Level, ...]
    auc: tuple[float, float, float]
    separates: bool
    threshold: Threshold | None

    @property
    def noise(self) -> Level:
        """The noise floor: 99 % of unrelated pairs lie below."""
        return next(level for level in self.floor if level.share == 0.99)


class Record(_Part):
    """One encoder on one corpus by one protocol.

    Attributes:
        layers: the means over tokens, from the embedding output up, and last the vectors of the ruler, of the last layer.
        notes: what a reader must know, such as words that the encoder does not have.
        made_with: versions.
    """

    version: Literal[1]
    encoder: Encoder
    corpus: Texts
    protocol: Protocol
    layers: tuple[Layer, ...] = Field(min_length=1)
    ruler: Ruler
    notes: tuple[str, ...] = ()
    made_with: dict[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about: of two records with the same key, one is superfluous or wrong."""
        return self.encoder.fingerprint, self.corpus.digest, self.protocol

    @property
    def file_name(self) -> str:
        """From encoder, corpus and protocol; the same everywhere."""
        name = re.sub(r"[^a-z0-9.]+", "-", self.encoder.name.lower()).strip("-.")
        return f"{name}.{self.encoder.fingerprint[:8]}.{self.corpus.digest[:8]}.{self.protocol}.json"

    @property
    def headline(self) -> Layer:
        """The vectors of the ruler."""
        return self.layers[-1]

    def as_text(self) -> str:
        """JSON with a line for each list of numbers."""
        text = json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False)
        return _NUMBERS.sub(lambda found: f"[{' '.join(found[1].split())}]", text) + "\n"

    def table(self) -> list[dict[str, Any]]:
        """A row for each layer, with the columns of the atlas."""
        shared = {"protocol": self.protocol, "corpus": self.corpus.name, "corpus_hash": self.corpus.digest}
        shared |= self.encoder.model_dump(exclude={"name", "revision"})
        rows = []
        for layer in self.layers:
            place = {
                "layer": layer.layer,
                "depth": self.headline.layer,
                "pooling": layer.pooling,
                "n": layer.n,
                "d": layer.d,
            }
            noise = {
                "noise_floor": layer.noise.cosine,
                "noise_floor_low": layer.noise.low,
                "noise_floor_high": layer.noise.high,
            }
            auc = dict(zip(("auc", "auc_low", "auc_high"), layer.auc, strict=True))
            threshold = {"separates": layer.separates, "threshold": layer.threshold and layer.threshold.cosine}
            rows.append(
                {"encoder": self.encoder.name, **place, **noise, **auc, **threshold, **layer.measures, **shared}
            )
        return rows


def rounded(value: Any) -> Any:
    """A document with six significant digits of each number."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return [rounded(part) for part in value] if isinstance(value, (list, tuple)) else value


def read(path: Path, field: str = "records") -> Record:
    """A record's file. Raises `InputError` if it is not one, or of another version."""
    with input_validation.parsing(f"'{path.name}' cannot be read", field):
        text = input_validation.file(path, field).read_text(encoding="utf-8")
        try:
            return Record.model_validate_json(text)
        except ValidationError as error:
            problem = f"{field}: '{path.name}' is no record of version {VERSION}: {input_error(error, depth=6)}"
            raise InputError(problem, field=field) from None


@functools.lru_cache(maxsize=MOST_OWN)
def _read_once(path: Path, changed: int) -> Record:
    return read(path)


def in_folder(folder: Path, field: str = "records") -> list[Record]:
    """All records of a folder. Raises like `read`."""
    if not folder.is_dir():
        raise InputError(f"{field}: no folder '{folder}'", field=field)
    return [read(path, field) for path in sorted(folder.glob("*.json"))]


@functools.cache
def shipped() -> tuple[Record, ...]:
    """The records that come with IsoViz."""
    return tuple(in_folder(demo.ATLAS))


def on_this_server() -> tuple[list[Record], list[str]]:
    """The bundled records and those in the folder `atlas` of ISOVIZ_HOME, which replace bundled ones of the same key; and why files were
    skipped."""
    own, problems = [], []
    for path in islice(sorted((home() / "atlas").glob("*.json")), MOST_OWN):
        try:
            own.append(_read_once(input_validation.file(path, "records"), path.stat().st_mtime_ns))
        except InputError as error:
            problems.append(str(error).removeprefix("records: "))
    return list({record.key: record for record in (*shipped(), *own)}.values()), problems


def write(record: Record, folder: Path) -> Path:
    """Write a record under its own name, and return the file."""
    path = folder / record.file_name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(record.as_text(), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"out: '{folder}' cannot be written to: {input_validation.reason(error)}", field="out"
        ) from None
    return path
