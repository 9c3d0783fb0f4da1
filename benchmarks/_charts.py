"""Plots for the documentation: a white card, readable on a light and on a dark page, in colours that are
distinct to colour-blind readers (Okabe & Ito 2008)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
PNG_STEPS = 31  # of each channel; black, white and the shades between keep their places
HATCHES = ("", "//", "..", "\\\\", "xx", "--", "++")


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


@dataclass(frozen=True)
class Panel:
    """Groups of bars: `values[contender][group]` in milliseconds, None where there is none."""

    title: str
    groups: Sequence[str]
    values: Mapping[str, Sequence[float | None]]


def bars(path: Path, title: str, panels: Sequence[Panel]) -> None:
    """One panel under the other, time on a logarithmic axis, its value on each bar."""
    plt = pyplot()
    height = sum(0.55 + 0.2 * len(panel.groups) * (len(panel.values) + 1) for panel in panels)
    figure, axes = plt.subplots(
        len(panels),
        figsize=(7.2, height + 0.9),
        squeeze=False,
        layout="constrained",
        height_ratios=[len(panel.groups) * (len(panel.values) + 1) + 3 for panel in panels],
    )
    figure.suptitle(title, fontsize=11)
    for axis, panel in zip(axes[:, 0], panels, strict=True):
        _draw(axis, panel)
    save(figure, path)


def _draw(axis: Any, panel: Panel) -> None:
    count = len(panel.values)
    drawn = [value for values in panel.values.values() for value in values if value]
    for order, (name, values) in enumerate(panel.values.items()):
        places = [group * (count + 1) + order for group, value in enumerate(values) if value]
        lengths = [value for value in values if value]
        colour, hatch = COLOURS[order % len(COLOURS)], HATCHES[order % len(HATCHES)]
        axis.barh(places, lengths, height=0.85, color=colour, hatch=hatch, edgecolor="white", label=name)
        for place, length in zip(places, lengths, strict=True):
            axis.text(length * 1.06, place, milliseconds(length), va="center", fontsize=7.5)
    axis.set_xscale("log")
    axis.xaxis.set_minor_formatter("")  # labels between powers of ten would run into each other
    axis.set_xlim(min(drawn) / 2, max(drawn) * 4)
    axis.set_yticks([group * (count + 1) + (count - 1) / 2 for group in range(len(panel.groups))], panel.groups)
    axis.invert_yaxis()
    axis.set_title(panel.title, fontsize=9.5, loc="left")
    axis.set_xlabel("milliseconds, logarithmic (bars start at an arbitrary value: read the labels)", fontsize=8)
    axis.legend(fontsize=7.5, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))


def milliseconds(value: float) -> str:
    """Two to three significant digits, never in powers of ten."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.{2 if value >= 1 else 3}f}"
