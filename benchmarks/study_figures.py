"""Draws the recorded studies: `docs/data/NAME.json` becomes `docs/images/NAME.svg`, and its numbers go into `docs/studies.md`.

    python -m isoviz study run istar-figure-2 --scale full --out docs/data
    python benchmarks/study_figures.py [--data docs/data] [--out docs]

Nothing is computed here, so that a picture and a page never hold a number that is not on record.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _charts import COLOURS, pyplot, save
from _report import Table, literal, write_section

from isoviz import studies
from isoviz.studies import Result

ROOT = Path(__file__).resolve().parent.parent
MARKS = ("o", "s", "^", "v", "P", "X", "*")


def draw(result: Result, path: Path) -> None:
    """Measured and added series with their spread, expectations as thin lines, references dashed."""
    plt = pyplot()
    figure, axis = plt.subplots(figsize=(7.2, 4.6), layout="constrained")
    groups = list(dict.fromkeys(series.group for series in result.series if series.role != "expected"))
    for series in result.series:
        order = groups.index(series.group)
        # what the paper does not have is black, whatever its place in the legend
        colour = "black" if series.role == "added" else COLOURS[order % (len(COLOURS) - 1)]
        if series.role == "expected":
            axis.plot(series.x, series.y, color=colour, linewidth=0.7, zorder=1)
            continue
        if series.low and series.high:
            axis.fill_between(series.x, series.low, series.high, color=colour, alpha=0.18, linewidth=0)
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
    for reference in result.references:
        line = axis.axhline if reference.axis == "y" else axis.axvline
        style = "--" if reference.axis == "y" else ":"
        line(reference.value, color="#555555", linestyle=style, linewidth=1, label=reference.label, zorder=0)
    _scale(axis, result)
    axis.set_title(result.title, fontsize=10, loc="left")
    axis.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(figure, path)


def _scale(axis: Any, result: Result) -> None:
    x, y = result.x_axis, result.y_axis
    axis.set_xlabel(x.label)
    axis.set_ylabel(y.label)
    if x.log:
        ticks = sorted({value for series in result.series for value in series.x})
        axis.set_xscale("log")
        axis.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], rotation=45)
        axis.minorticks_off()
    if y.log:
        axis.set_yscale("log")
    axis.set_xlim(x.low, x.high)
    axis.set_ylim(y.low, y.high)


def page(result: Result) -> str:
    """The recorded numbers of one study as Markdown, under its plot."""
    record = result.provenance
    study = studies.get(record.study)
    drawn = [series for series in result.series if series.role != "expected"]
    sizes = sorted({value for series in drawn for value in series.x})
    table = Table(result.title, [result.x_axis.label, *(series.name for series in drawn)])
    for size in sizes:
        cells = [_cell(series, size) for series in drawn]
        table.rows.append([f"{size:,.0f}", *cells])
    table.notes += sorted({f"{series.spread}." for series in drawn if series.spread})
    numbers = [reference.label for reference in result.references] + [
        f"printed {number.published:g}, here {number.reproduced:.5f}: {number.what} ({number.where})"
        for number in result.published
        if number.reproduced is not None
    ]
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    return "\n\n".join(
        [
            f"### {literal(study.title)}",
            literal(f"{study.paper.short}, {study.place}. {study.summary}"),
            f"![{literal(result.title)}](images/{record.study}.svg)",
            table.markdown(),
            _bullets(numbers),
            "What the paper leaves open or contradicts:",
            _bullets(study.open_points),
            literal(" ".join(result.notes)),
            f"`python -m isoviz study run {record.study} --scale {record.scale}`; seed {record.seed}, "
            f"{record.finished[:10]}, {record.seconds:.0f} s; {versions}.",
        ]
    )


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
    found = [record for record in records if record.is_file()]
    if not found:
        print(
            f"nothing drawn: no record in {chosen.data}; run `python -m isoviz study run NAME --scale full --out DIR`"
        )
        return 1
    for record in found:
        result = Result.model_validate_json(record.read_text(encoding="utf-8"))
        draw(result, chosen.out / "images" / f"{record.stem}.svg")
        write_section(chosen.out / "studies.md", record.stem, page(result))
        print(f"written: the section '{record.stem}' of {chosen.out / 'studies.md'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
