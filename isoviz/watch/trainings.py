"""A watched training as a file of JSON lines: `Watch(store=…)` writes it, the app reads it."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from isoviz.errors import InputError, input_error, shortened
from isoviz.home import home, make_private
from isoviz.input_validation import MOST_JSON
from isoviz.watch.collapse import Kind

SUFFIX: Final = ".jsonl"
FOLDER: Final = "ISOVIZ_WATCHED"
"""Environment variable: the folder of `isoviz app FOLDER`."""
NEWEST: Final = 50
"""Files of a folder that are read, the last changed first."""
SILENT_AFTER: Final = 3600.0
"""Seconds without a line after which a training may have been killed, if no five of its intervals take longer."""
_FIRST_LINE: Final = 2**16
LONGEST: Final = 500
Text = Annotated[str, Field(max_length=LONGEST)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class _Line(BaseModel):
    """time: seconds since 1970."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)
    time: float = Field(default_factory=time.time, ge=0, lt=2**33)


class Started(_Line):
    """The first line. `layer` names the module that is read, with its class; `kinds`, `alike`, `few` and `false_alarm_rate` are
    the settings of `CollapseTest`; `warmup` and `measure_every` count steps, `window` vectors."""

    kind: Literal["started"] = "started"
    name: Text
    model: Text
    layer: Text
    pooling: Text
    window: Count
    measure_every: Count
    warmup: Count
    kinds: tuple[Kind, ...]
    alike: float
    few: float
    false_alarm_rate: float
    versions: dict[Text, Text]


class Measured(_Line):
    """Measures of the last n vectors of d dimensions (`isoviz.watch.measures_of`). `unjudged`: steps up to this one without two
    usable vectors."""

    kind: Literal["measured"] = "measured"
    step: Count
    n: Count
    d: Count
    values: dict[Text, float]
    missing: dict[Text, Text]
    unjudged: Count = 0


class Noted(_Line):
    """What the watch could not see."""

    kind: Literal["noted"] = "noted"
    step: Count
    sentence: Text


class Collapsed(_Line):
    """The fields of `isoviz.watch.Alarm`."""

    kind: Literal["collapsed"] = "collapsed"
    step: Count
    collapse: Kind
    sentence: Text
    estimate: float
    false_alarm_rate: float


class Ended(_Line):
    """The last line; missing if the process was killed."""

    kind: Literal["ended"] = "ended"
    step: Count


Line = Annotated[Started | Measured | Noted | Collapsed | Ended, Field(discriminator="kind")]
_LINE: Final[TypeAdapter[Any]] = TypeAdapter(Line)
L = TypeVar("L", bound=_Line)


def default_folder() -> Path:
    """Of `Watch(store=True)`; the app shows it, too."""
    return home() / "watched"


class Record:
    """The file of one training, while it trains. Two trainings never share a file: a number is added to a name in use.

    Args:
        place: a file that ends in `.jsonl`, or a folder, in which the file is named by time and training.

    Raises:
        InputError: it cannot be written; field `store`.
    """

    def __init__(self, place: Path, started: Started) -> None:
        self.step = 0
        self._process = os.getpid()
        when = time.strftime("%Y-%m-%d_%H%M%S", time.localtime(started.time))
        named = place.suffix == SUFFIX
        folder, stem = (place.parent, place.stem) if named else (place, f"{when}_{started.name}")
        stem = stem if named else re.sub(r"[^\w-]+", "-", stem)[:80]
        try:
            if place == default_folder():
                make_private(folder)
            folder.mkdir(parents=True, exist_ok=True)
            for number in itertools.count(1):
                self.file = folder / f"{stem}{f'-{number}' if number > 1 else ''}{SUFFIX}"
                try:
                    with self.file.open("x", encoding="utf-8") as stream:  # atomic, also between processes
                        stream.write(started.model_dump_json() + "\n")
                    return
                except FileExistsError:
                    continue
        except OSError as error:
            message = f"store: '{shortened(str(place))}' cannot be written: {error.strerror}"
            raise InputError(message, field="store") from None

    def write(self, line: _Line) -> None:
        """Append a line. Raises OSError."""
        with self.file.open("a", encoding="utf-8") as stream:
            stream.write(line.model_dump_json() + "\n")

    def end(self) -> None:
        """Append the last line; not in a process forked from the training's, nor to a file deleted since."""
        with contextlib.suppress(OSError):
            if os.getpid() == self._process and self.file.exists():
                self.write(Ended(step=self.step))


@dataclass(frozen=True)
class Training:
    """A watched training, as far as its file goes; `lines` begins with `Started`."""

    file: Path
    lines: tuple[_Line, ...]

    @property
    def started(self) -> Started:
        return self.all_of(Started)[0]

    @property
    def collapse(self) -> Collapsed | None:
        return next(iter(self.all_of(Collapsed)), None)

    @property
    def unjudged(self) -> int:
        """Steps up to the last measures in which nothing could be judged, if that is all since the measures before; else 0."""
        last = self.all_of(Measured)[-1:]
        return last[0].unjudged if last and last[0].unjudged >= self.started.measure_every else 0

    @property
    def step(self) -> int:
        """The last step that a line names."""
        return max((getattr(line, "step", 0) for line in self.lines), default=0)

    def all_of(self, kind: type[L]) -> list[L]:
        return [line for line in self.lines if isinstance(line, kind)]

    def state(self, now: float | None = None) -> Literal["training", "ended", "silent"]:
        """`silent`: neither ended nor a line for long, as after a kill.

        Args:
            now: seconds since 1970; None for the clock.
        """
        if isinstance(self.lines[-1], Ended):
            return "ended"
        times = [line.time for line in self.lines]
        longest = max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)
        since = (time.time() if now is None else now) - times[-1]
        return "silent" if since > max(SILENT_AFTER, 5 * longest) else "training"


def files_in(folder: Path) -> list[Path]:
    """The newest files of JSON lines in a folder; empty if there is no folder."""
    dated = []
    for path in folder.glob(f"*{SUFFIX}"):
        try:
            if path.is_file():  # reading a pipe would never end
                dated.append((path.stat().st_mtime, path))
        except OSError:  # deleted since, or a link to nowhere
            continue
    return [path for _, path in sorted(dated, reverse=True)[:NEWEST]]


def read(path: Path) -> Training:
    """The training of a file. A damaged last line is left out, because it may be half written.

    Raises:
        InputError: no file, not a watched training, too large, or another damaged line; field `watched`.
    """
    try:
        about = path.stat()
        return _read(path, about.st_mtime_ns, about.st_size)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror}", field="watched") from None


@functools.lru_cache(maxsize=NEWEST + 14)
def _read(path: Path, changed: int, size: int) -> Training:
    del changed
    name = shortened(path.name)
    if size > MOST_JSON:
        raise InputError(f"{name} is larger than {MOST_JSON / 2**20:.0f} MiB", field="watched")
    with path.open("rb") as file:
        try:
            first = Started.model_validate_json(file.readline(_FIRST_LINE))
        except ValidationError:
            raise InputError(f"{name} is not a watched training: see its first line", field="watched") from None
        texts = file.read(MOST_JSON).splitlines()
    lines: list[_Line] = [first]
    for number, text in enumerate(texts, start=2):
        try:
            line = _LINE.validate_json(text)
        except ValidationError as error:
            if number == len(texts) + 1:
                break
            raise InputError(f"{name}, line {number}: {input_error(error, depth=3)}", field="watched") from None
        lines.append(line)
    return Training(path, tuple(lines))
