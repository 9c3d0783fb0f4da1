"""A view on the page with the cloud of it that is looked at, what its files are called, and a figure of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from dashboard import wording
from dashboard.components.figure import draw
from dashboard.explore import plots
from dashboard.explore.form import Filled
from isoviz.exploring.results import ViewResult


@dataclass(frozen=True)
class Shown:
    """One of the views on the page, with the cloud of it that is looked at.

    Attributes:
        number: counted from 1.
        of: how many views there are.
    """

    number: int
    of: int
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
    def entry(self) -> dict[str, Any]:
        """The numbers of its cloud."""
        return self.view.entry(self.layer, self.pooling)

    @property
    def cloud(self) -> str:
        """Layer, pooling, n and d in words."""
        return f"layer {self.layer}, {self.pooling}, n = {wording.number(self.entry['n'])}, d = {self.entry['d']}"

    @property
    def source(self) -> str:
        """Model, task and split in words."""
        assert self.filled.request is not None
        request = self.filled.request
        direction = [f"read as {request.direction}"] if request.direction else []
        return " · ".join([request.model, request.task, request.split, *direction])

    @property
    def about(self) -> str:
        """Which cloud it is, in a line that stands by itself, as in a saved picture."""
        n, d = wording.number(self.entry["n"]), self.entry["d"]
        return f"{self.source} · layer {self.layer} · {self.pooling} · n = {n}, d = {d}"


def file_name(one: Shown) -> str:
    """Of what is downloaded of a view, without its ending."""
    assert one.filled.request is not None
    request = one.filled.request
    parts = (part.replace("/", "-").replace(":", "-").strip("-.~") for part in (request.model, request.task))
    return "-".join(("explore", *parts, request.split))


def cloud_file(one: Shown, what: str) -> str:
    """Of what is downloaded of the cloud that a view shows, without its ending; views of the same cloud are told apart."""
    again = f"-view{one.number}" if one.number > 1 else ""
    return f"{file_name(one)}-{what}-layer{one.layer}-{one.pooling}{again}"


def view_names(numbers: list[int]) -> str:
    """`View 2`, `Views 1, 3`."""
    return f"View{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def plot(one: Shown, name: str, figure: go.Figure, words: str, *, about: str = "") -> None:
    if one.of > 1:
        plots.compact(figure)
        words = f"View {one.number}: {words}"
    draw(
        figure,
        key=one.prefix + name,
        words=words,
        name=cloud_file(one, name.replace("_", "-")),
        about=about or one.about,
    )
