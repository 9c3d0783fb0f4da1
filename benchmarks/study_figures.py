"""Draws the recorded studies: `docs/data/NAME.json` becomes pictures in `docs/images`, and its numbers go into `docs/findings.md`.

    python -m isoviz study run istar-figure-2 --scale full --out docs/data
    python benchmarks/study_figures.py [--data docs/data] [--out docs]

Nothing is computed here, so that a picture and a page never hold a number that is not on record. The pictures are those of the Papers
page, drawn by kaleido in a browser of this machine.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from _report import ROOT, Table, literal, options, write_section
from PIL import Image

from dashboard.papers import drawing
from isoviz import studies
from isoviz.studies import Result
from isoviz.studies.result import Figure, Panel, Verdict

WIDTH = 1800
"""Pixels of a picture."""
TILE = 900
"""Width in pixels at which a panel is laid out; its PNG has twice as many."""


def image(result: Result, figure: Figure) -> str:
    """The file name of a figure's picture."""
    return "-".join(filter(None, [result.provenance.study, figure.name])) + ".png"


def draw(figure: Figure, path: Path) -> None:
    """All panels of a figure side by side, in few colours."""
    alone = len(figure.panels) == 1
    columns = 1 if alone else figure.columns
    pictures = []
    for panel in figure.panels:
        drawn = drawing.panel(panel, alone=alone)
        title = {"text": panel.title.replace("\n", "<br>"), "y": 0.97, "yanchor": "top"}
        drawn.update_layout(title=title, margin={"t": 120, "b": 60, "l": 60})  # the legend is below the title
        drawn.update_layout(height=drawn.layout.height if alone else 640)
        pictures.append(drawn)
    tiles = []
    for content in png(pictures):
        with Image.open(io.BytesIO(content)) as tile:
            share = WIDTH / columns / tile.width
            tiles.append(
                tile.convert("RGB").resize((WIDTH // columns, round(share * tile.height)), Image.Resampling.LANCZOS)
            )
    height = max(tile.height for tile in tiles)
    sheet = Image.new("RGB", (WIDTH, height * -(-len(tiles) // columns)), "white")
    for number, tile in enumerate(tiles):
        sheet.paste(tile, (number % columns * (WIDTH // columns), number // columns * height))
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.quantize(256).save(path, optimize=True)
    print(f"written: {path}")


def png(pictures: list[go.Figure]) -> list[bytes]:
    """Each figure as PNG, by kaleido in a browser of this machine; nothing is fetched."""
    import kaleido

    with tempfile.TemporaryDirectory(prefix="isoviz-figures-") as folder:
        files = [Path(folder) / f"{index}.png" for index in range(len(pictures))]
        orders = [
            {
                "fig": _on_white(picture),
                "path": str(file),
                "opts": {"format": "png", "width": TILE, "height": picture.layout.height, "scale": 2},
            }
            for picture, file in zip(pictures, files, strict=True)
        ]
        # without mathjax, which would be loaded from another host
        kaleido.write_fig_from_object_sync(orders, kopts={"mathjax": False})
        return [file.read_bytes() for file in files]


def _on_white(picture: go.Figure) -> dict[str, Any]:
    spec: dict[str, Any] = picture.to_plotly_json()
    spec["layout"].pop("template", None)
    spec["layout"] |= {
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
        "font": {"color": "#18222d", "family": "sans-serif"},
    }
    return spec


def page(result: Result) -> str:
    """The recorded numbers of one study as Markdown, under its plot."""
    record = result.provenance
    study = studies.get(record.study)
    tables = [Table(table.title, table.header, table.lines(), table.notes) for table in result.tables]
    tables = tables or [_of_lines(result.title, panel) for figure in result.figures for panel in figure.panels]
    references = [label for figure in result.figures for panel in figure.panels for label in panel.references]
    numbers = references + [
        f"printed {number.published:g}, here {number.reproduced:.5f}: {number.what} ({number.where})"
        + (f"; what differs is {number.differs}" if number.differs else "")
        for number in result.published
        if number.reproduced is not None and not result.tables  # which show the printed numbers beside ours
    ]
    command = " ".join(["isoviz study run", record.study, "--scale", record.scale, *record.inputs])
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return "\n\n".join(
        [
            f"### {literal(study.title)}",
            literal(f"{study.paper.short}, {study.place}. {study.summary}"),
            *(f"![{literal(figure.title)}](images/{image(result, figure)})" for figure in result.figures),
            *(table.markdown() for table in tables),
            *([_bullets(numbers)] if numbers else []),
            *(
                ["What our numbers say of the paper's claims:", _bullets(map(_verdict, result.verdicts))]
                if result.verdicts
                else []
            ),
            "What the paper leaves open or contradicts:",
            _bullets(study.open_points),
            literal(" ".join(result.notes)),
            f"`{command}`; seed {record.seed}, {record.finished[:10]}, {record.seconds:.0f} s; {versions}.",
        ]
    )


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.outcome.capitalize()}: “{verdict.claim}” {verdict.sentence}"


def _of_lines(title: str, panel: Panel) -> Table:
    """The measured lines of a panel as columns."""
    drawn = [trace for trace in panel.traces if trace.get("showlegend") is not False]
    table = Table(title, [panel.plot["layout"]["xaxis"]["title"]["text"], *(trace["name"] for trace in drawn)])
    for size in sorted({value for trace in drawn for value in trace["x"]}):
        table.rows.append([f"{size:,.0f}", *(_cell(trace, size) for trace in drawn)])
    return table


def _bullets(points: Iterable[str]) -> str:
    return "\n".join(f"- {literal(point)}" for point in points)


def _cell(trace: dict[str, Any], size: float) -> str:
    if size not in trace["x"]:
        return "—"
    at = trace["x"].index(size)
    spread = f" ± {trace['error_y']['array'][at]:.4f}" if "error_y" in trace else ""
    return f"{trace['y'][at]:.4f}{spread}"


def main() -> int:
    """Draw every record of the folder; 1 where there is none."""
    parser = options(__doc__, out="findings.md")
    parser.add_argument(
        "--data", type=Path, default=ROOT / "docs" / "data", metavar="DIR", help="where the records are"
    )
    chosen = parser.parse_args()
    out = chosen.out or ROOT / "docs"
    records = [chosen.data / f"{slug}.json" for slug in studies.catalogue()]
    files_found = [record for record in records if record.is_file()]
    if not files_found:
        print(
            f"nothing drawn: no record in {chosen.data}; run `python -m isoviz study run NAME --scale full --out DIR`"
        )
        return 1
    for record in files_found:
        result = Result.model_validate_json(record.read_text(encoding="utf-8"))
        for figure in result.figures:
            draw(figure, out / "images" / image(result, figure))
        write_section(out / "findings.md", record.stem, page(result))
        print(f"written: the section '{record.stem}' of {out / 'studies.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
