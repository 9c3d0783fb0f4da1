"""For notebooks: vectors on the page without a server, in an iframe, and a run that is trained here, with its events as tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isoviz.commands import dashboard
from isoviz.errors import InputError
from isoviz.tables import arrays
from isoviz.vectors.embedded import embedded_points

if TYPE_CHECKING:
    import pandas as pd

    from isoviz.config import RunConfig
    from isoviz.metrics.cloud import Points
    from isoviz.runs.rows import RunRow


@dataclass(frozen=True)
class LabPage:
    """A page without a server as one HTML document. A notebook shows it where it is the value of a cell.

    Attributes:
        html: the document.
        height: height of the frame in a notebook, in pixels.
    """

    html: str
    height: int

    def save(self, path: str | Path) -> Path:
        """Write the HTML file, and return its path."""
        Path(path).write_text(self.html, encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        return f"LabPage({len(self.html) / 1e6:.1f} MB; .save(path) writes it)"

    def _repr_html_(self) -> str:
        # in a frame without an address, links within the page need the base
        page = self.html.replace("<head>", '<head><base href="about:srcdoc">', 1)
        escaped = page.replace("&", "&amp;").replace("'", "&#39;")
        return f"<iframe srcdoc='{escaped}' style='width: 100%; height: {self.height}px; border: 0'></iframe>"


def show(
    points: Points,
    *,
    labels: Iterable[Any] | None = None,
    texts: Iterable[Any] | None = None,
    name: str = "vectors",
    height: int = 900,
) -> LabPage:
    """The page without a server (docs/static.md) with these vectors inside: map, measures, transforms, ruler, neighbours.

    Works in Jupyter, VS Code, Colab and marimo, without a server and offline.

    Args:
        points: (n, d), at least two rows and two dimensions. Of more rows than the page takes (20,000 × 1,024), it holds a sample
            drawn with seed 0, and says so.
        labels: one per row, for colours; unrelated pairs of the ruler have different ones.
        texts: one per row, for the neighbours.
        name: the title above the vectors.
        height: height of the frame in pixels.

    Raises:
        InputError: another shape, values that are not finite, or another number of labels or texts.
    """
    array = np.asarray(points.detach().cpu().float() if hasattr(points, "detach") else points)
    if array.ndim != 2 or min(array.shape) < 2 or array.dtype.kind not in "fiu":
        got = f"shape {array.shape} of {array.dtype}"
        raise InputError.at("points", f"{got}; expected numbers of the shape (n, d), with n and d at least 2")
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype.itemsize <= 2 else np.float64)
    arrays.check_finite(array, "points")
    columns = {}
    for column, values in (("label", labels), ("text", texts)):
        if values is None:
            continue
        columns[column] = [str(value) for value in values]
        if len(columns[column]) != len(array):
            raise InputError.at(f"{column}s", f"{len(columns[column]):,} for {len(array):,} points")
    vectors = embedded_points(array, name, columns, field="points", sample=True)
    return LabPage(
        dashboard.module("export.standalone").render(start="vectors", vectors=vectors, encoder=False), height
    )


@dataclass(frozen=True)
class Run:
    """A run that was trained here.

    Attributes:
        row: as it ended: `status`, `config`, `result`, `error`, …
        store: where it is kept; None for the default.
    """

    row: RunRow
    store: str | Path | None = None

    @property
    def id(self) -> str:
        """Its id, by which the dashboard and the command line name it."""
        return self.row.id

    @property
    def metrics(self) -> dict[str, float | None]:
        """The task's metrics at the end; empty unless it finished."""
        return dict(self.row.result.metrics) if self.row.result else {}

    def events(self, kind: str) -> pd.DataFrame:
        """Its events of one kind, such as `evaluated`, `measured` or `stepped` (`isoviz.events`): a row each, a column per field.

        Fields of fields have names with dots: `metrics.matthews_correlation`.
        """
        import pandas as pd

        from isoviz.runs.store import Store

        after, found = 0, []
        while page := Store(self.store).events(self.id, after):
            after = page[-1][0]
            found += [event for _, event in page if event["kind"] == kind]
        return pd.json_normalize(found).drop(columns="kind", errors="ignore")


def train(config: RunConfig | Mapping[str, Any], *, store: str | Path | None = None, quiet: bool = False) -> Run:
    """Train one run in this process, as `isoviz train` does, and return it when it has ended.

    Args:
        config: a `RunConfig`, or some of its fields: `{"task": "demo/sentiment", "method": "istar", "params": {"lam": -1}}`.
        store: the folder or database that keeps it; None for the default, which the dashboard shows.
        quiet: no progress line.

    Raises:
        InputError: a value is not allowed.
        KeyboardInterrupt: you interrupted; the run is stopped.
    """
    from isoviz.commands.train import check_models, execute_here
    from isoviz.operations.access.service import of_command_line
    from isoviz.runs import planning
    from isoviz.runs.store import Store

    fields = dict(config) if isinstance(config, Mapping) else config.model_dump(exclude_unset=True)
    model, task, method = (fields.pop(name, planning.RunConfig.model_fields[name].default) for name in _CHOSEN)
    chosen = [(method, fields.pop("params", {}))]
    configs = planning.expand([model], [task], chosen, [fields.pop("seed", 0)], **fields)
    check_models(configs)
    kept = Store(store)
    owner = f"notebook, process {os.getpid()}"
    (run_id,) = of_command_line(kept).launch(configs, new=True, claim=owner)
    return Run(execute_here(kept, run_id, owner, lambda: False, quiet=quiet), store)


_CHOSEN = ("model", "task", "method")
