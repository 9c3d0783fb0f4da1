"""Draws the recorded studies: `docs/data/NAME.json` becomes pictures in `docs/images`, and its numbers go into `docs/studies.md`.

A figure with matrices becomes a PNG, any other one an SVG.

    python -m isoviz study run istar-figure-2 --scale full --out docs/data
    python benchmarks/study_figures.py [--data docs/data] [--out docs]

Nothing is computed here, so that a picture and a page never hold a number that is not on record.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from _report import ROOT, Table, literal, write_section

from isoviz import studies
from isoviz.studies import Result
from isoviz.studies.result import Figure, Panel, Verdict

# distinct to colour-blind readers (Okabe & Ito 2008)
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
PNG_STEPS = 31  # of each channel; black, white and the shades between keep their places
DASHES = ("-", "--", "-.", ":")
MARKS = ("o", "s", "^", "v", "P", "X", "*")


def pyplot() -> Any:
    """matplotlib with the house's card; a sentence on how to get it where it is missing."""
    try:
        import matplotlib
    except ImportError:
        raise SystemExit("matplotlib is missing: pip install -r benchmarks/requirements.txt") from None
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.family": "sans-serif",
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "svg.fonttype": "path",  # the same on a machine without the font
            "svg.hashsalt": "isoviz",  # the same file from the same numbers
        }
    )
    return plt


def save(figure: Any, path: Path) -> None:
    """By the name's ending: SVG without the date, or PNG in few colours; an unchanged figure is an unchanged file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".png":
        _save_png(figure, path)
    else:
        figure.savefig(path, format="svg", metadata={"Date": None})
    pyplot().close(figure)
    print(f"written: {path}")


def _save_png(figure: Any, path: Path) -> None:
    """With a palette where the colours, rounded to `PNG_STEPS`, are few enough for one."""
    from io import BytesIO

    import numpy as np
    from PIL import Image

    stream = BytesIO()
    figure.savefig(stream, format="png", dpi=160)
    pixels = np.asarray(Image.open(stream).convert("RGB"), dtype=np.float64)
    rounded = np.rint(np.rint(pixels / 255 * PNG_STEPS) * 255 / PNG_STEPS).astype(np.uint32)
    packed = (rounded[..., 0] << 16) | (rounded[..., 1] << 8) | rounded[..., 2]
    colours, index = np.unique(packed, return_inverse=True)
    if len(colours) > 256:
        Image.fromarray(rounded.astype(np.uint8)).save(path, optimize=True)
        return
    image = Image.fromarray(index.reshape(packed.shape).astype(np.uint8))
    image.putpalette([channel for colour in colours.tolist() for channel in colour.to_bytes(3, "big")])
    image.save(path, optimize=True)


def image(result: Result, figure: Figure) -> str:
    """The file name of a figure's picture."""
    name = "-".join(filter(None, [result.provenance.study, figure.name]))
    return f"{name}.png" if any(panel.kind == "matrix" for panel in figure.panels) else f"{name}.svg"


def draw(figure: Figure, path: Path) -> None:
    """All panels of a figure; several panels share a legend, in the first one."""
    plt = pyplot()
    if len(figure.panels) == 1:
        drawn, axis = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
        _panel(axis, figure.panels[0])
        _limits(axis, figure.panels[0])
        axis.set_title("\n".join(filter(None, [figure.title, figure.panels[0].title])), fontsize=10, loc="left")
        if figure.panels[0].kind in ("lines", "points"):
            axis.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
        save(drawn, path)
        return
    rows = -(-len(figure.panels) // figure.columns)
    size = (0.5 + 2.9 * figure.columns, 0.6 + 2.6 * rows)
    shared = figure.panels[0].kind in ("lines", "bars") and len({panel.y_axis.label for panel in figure.panels}) == 1
    drawn, axes = plt.subplots(
        rows, figure.columns, figsize=size, layout="constrained", squeeze=False, sharex=shared, sharey=shared
    )
    drawn.suptitle(figure.title, fontsize=11)
    for number, axis in enumerate(axes.flat):
        if number >= len(figure.panels):
            axis.set_axis_off()
            continue
        panel = figure.panels[number]
        _panel(axis, panel)
        axis.set_title(panel.title, fontsize=7.5, loc="left")
        if panel.kind == "lines" and number == 0:
            axis.legend(fontsize=7, frameon=False, loc="lower right")
        if panel.kind == "points" and number == 0:
            drawn.legend(*axis.get_legend_handles_labels(), fontsize=7, frameon=False, loc="outside right center")
    if shared:
        for axis, panel in zip(axes.flat, figure.panels, strict=False):
            _limits(axis, panel)  # only now: an open end is that of the longest bar of all panels
            axis.label_outer()
    if figure.panels[0].kind == "matrix":
        drawn.colorbar(axes.flat[0].images[0], ax=axes, shrink=0.5, aspect=30)
    save(drawn, path)


def _panel(axis: Any, panel: Panel) -> None:
    {"lines": _lines, "bars": _bars, "points": _points, "matrix": _matrix}[panel.kind](axis, panel)
    axis.set_xlabel(panel.x_axis.label)
    axis.set_ylabel(panel.y_axis.label)


def _limits(axis: Any, panel: Panel) -> None:
    if panel.kind == "lines":  # bars are at powers of ten, with one more bin for zero
        axis.set_xlim(panel.x_axis.low, panel.x_axis.high)
    if panel.kind != "matrix":
        axis.set_ylim(panel.y_axis.low, panel.y_axis.high)


def _lines(axis: Any, panel: Panel) -> None:
    """Measured and added series with their spread, expectations as thin lines, references dashed."""
    groups = list(dict.fromkeys(series.group for series in panel.series if series.role != "expected"))
    for series in panel.series:
        order = groups.index(series.group)
        # lines that the paper lacks are black, at any position in the legend
        colour = "black" if series.role == "added" else COLOURS[order % (len(COLOURS) - 1)]
        if series.role == "expected":
            axis.plot(series.x, series.y, color=colour, linewidth=0.7, zorder=1)
            continue
        if series.low and series.high:
            axis.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
        if series.low is None:  # a curve rather than estimates at a few places
            dashes = DASHES[order % len(DASHES)]
            axis.plot(series.x, series.y, color=colour, linewidth=1.6, linestyle=dashes, label=series.name)
            continue
        width, style = (2.0, "-") if series.role == "added" else (0, "")
        mark = MARKS[order % len(MARKS)]
        axis.plot(
            series.x,
            series.y,
            color=colour,
            marker=mark,
            markersize=5,
            linewidth=width,
            linestyle=style,
            label=series.name,
        )
    for reference in panel.references:
        line = axis.axhline if reference.axis == "y" else axis.axvline
        style = "--" if reference.axis == "y" else ":"
        line(reference.value, color="#555555", linestyle=style, linewidth=1, label=reference.label, zorder=0)
    if panel.x_axis.log:
        ticks = sorted({value for series in panel.series for value in series.x})
        axis.set_xscale("log")
        axis.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], rotation=45)
        axis.minorticks_off()
    if panel.y_axis.log:
        axis.set_yscale("log")


def _bars(axis: Any, panel: Panel) -> None:
    """Bars over powers of ten; values of zero have a separate hatched bin on the left."""
    for order, series in enumerate(panel.series):
        places = [math.log10(x) for x in series.x]
        width = places[1] - places[0] if len(places) > 1 else 1.0
        colour = COLOURS[order % len(COLOURS)]
        axis.bar(places, series.y, width=width, color=colour, edgecolor="white", linewidth=0.2)
        first = math.floor(places[0])
        zero = first - 2
        if series.at_zero is not None:
            axis.bar([zero], [series.at_zero], width=0.8, color=colour, hatch="///", edgecolor="white")
        decades = range(first, math.ceil(places[-1]) + 1, 2)
        axis.set_xticks([zero, *decades], ["0", *(f"$10^{{{decade}}}$" for decade in decades)])


def _points(axis: Any, panel: Panel) -> None:
    """Each series as one point with its spreads, coloured by its value on a scale with 0 in the middle."""
    plt = pyplot()
    most = max((abs(series.value) for series in panel.series if series.value is not None), default=1.0) or 1.0
    for order, series in enumerate(panel.series):
        colour = COLOURS[order % len(COLOURS)]
        if series.value is not None:
            colour = "#555555" if series.value == 0 else plt.get_cmap("coolwarm")(0.5 + series.value / most / 2)
        x_error = (
            [[series.x[0] - series.x_low[0]], [series.x_high[0] - series.x[0]]]
            if series.x_low and series.x_high
            else None
        )
        y_error = (
            [[series.y[0] - series.low[0]], [series.high[0] - series.y[0]]] if series.low and series.high else None
        )
        axis.errorbar(series.x, series.y, xerr=x_error, yerr=y_error, color=colour, marker="o", markersize=5, linestyle="",
                      label=series.name)  # fmt: skip


def _matrix(axis: Any, panel: Panel) -> None:
    assert panel.matrix is not None
    axis.imshow(panel.matrix.array(), cmap="Blues", vmin=0, vmax=1, interpolation="auto")
    axis.set_xticks([])
    axis.set_yticks([])


def page(result: Result) -> str:
    """The recorded numbers of one study as Markdown, under its plot."""
    record = result.provenance
    study = studies.get(record.study)
    tables = [Table(table.title, table.header, table.lines(), table.notes) for table in result.tables]
    tables = tables or [_of_lines(result.title, panel) for figure in result.figures for panel in figure.panels]
    references = [line.label for figure in result.figures for panel in figure.panels for line in panel.references]
    numbers = references + [
        f"printed {number.published:g}, here {number.reproduced:.5f}: {number.what} ({number.where})"
        + (f"; what differs is {number.differs}" if number.differs else "")
        for number in result.published
        if number.reproduced is not None and not result.tables  # which show the printed numbers beside ours
    ]
    command = " ".join(["python -m isoviz study run", record.study, "--scale", record.scale, *record.inputs])
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
    """The measured series of a panel as columns."""
    drawn = [series for series in panel.series if series.role != "expected"]
    table = Table(title, [panel.x_axis.label, *(series.name for series in drawn)])
    for size in sorted({value for series in drawn for value in series.x}):
        table.rows.append([f"{size:,.0f}", *(_cell(series, size) for series in drawn)])
    table.notes += sorted({f"{series.spread}." for series in drawn if series.spread})
    return table


def _bullets(points: Iterable[str]) -> str:
    return "\n".join(f"- {literal(point)}" for point in points)


def _cell(series: Any, size: float) -> str:
    if size not in series.x:
        return "—"
    at = series.x.index(size)
    spread = f" ± {(series.high[at] - series.low[at]) / 2:.4f}" if series.low and series.high else ""
    return f"{series.y[at]:.4f}{spread}"


def main() -> int:
    """Draw every record of the folder; 1 where there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, default=ROOT / "docs" / "data", metavar="DIR", help="where the records are"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "docs", metavar="DIR", help="where page and images go")
    chosen = parser.parse_args()
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
            draw(figure, chosen.out / "images" / image(result, figure))
        write_section(chosen.out / "studies.md", record.stem, page(result))
        print(f"written: the section '{record.stem}' of {chosen.out / 'studies.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
