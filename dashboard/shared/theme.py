"""Colours, symbols and figure layout of all screens, in light and dark mode.

Each colour has a contrast of 3:1 on white and on near-black, so it works in both modes. Under the three common forms of colour
blindness (simulated), the first five remain clearly different and all nine distinguishable. Nine colours in such a narrow range of
brightness are close, so every method also has a symbol and a dash. Unlisted methods get all three by `_spare_index`, so a new
method needs no entry here.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from isoviz import methods

if TYPE_CHECKING:
    import plotly.graph_objects as go

_STYLES: dict[str, tuple[str, str, str]] = {
    "baseline": ("#7f8691", "circle", "dot"),
    "istar": ("#4968f6", "diamond", "solid"),
    "isobn": ("#c51711", "square", "dash"),
    "cosreg": ("#1eab48", "triangle-up", "dashdot"),
    "batchnorm": ("#994ebe", "pentagon", "longdash"),
    "isolayer": ("#d15dc8", "star", "solid"),
    "spectrum_pol": ("#dd7809", "cross", "dash"),
    "spectrum_exp": ("#9d5455", "x", "dashdot"),
    "flow": ("#0c6888", "hexagram", "longdash"),
}
"""Method → colour, Plotly marker symbol, Plotly line style."""
METHOD_COLOURS = {slug: colour for slug, (colour, _, _) in _STYLES.items()}
METHOD_SYMBOLS = {slug: symbol for slug, (_, symbol, _) in _STYLES.items()}

_SPARE = {
    "#8783ff": "triangle-down",
    "#ba1d8f": "star-diamond",
    "#f6489f": "bowtie",
    "#b26764": "star-triangle-down",
    "#c45b01": "triangle-left",
    "#cb01e2": "star-square",
    "#a60aca": "hourglass",
    "#6986b0": "triangle-right",
}
"""Colours and symbols of methods that are not in `_STYLES`. Each colour maximises the distance (OKLab, with and without the three
common forms of colour blindness) to the nine above and to the previous ones."""
SPARE_COLOURS, SPARE_SYMBOLS = tuple(_SPARE), tuple(_SPARE.values())

DASHES: tuple[str, ...] = ("solid", "dash", "dashdot", "longdash", "dot", "longdashdot")
LEVEL_DASHES: tuple[str, ...] = ("dot", "dash", "dashdot", "longdash")
"""Dashes of level lines."""

NEUTRAL = METHOD_COLOURS["baseline"]
"""Grey for items that belong to no particular method."""
MARK = METHOD_COLOURS["spectrum_pol"]
"""Orange for highlights over bars: a mean, a rogue dimension."""

PALETTE: tuple[str, ...] = tuple(colour for slug, colour in METHOD_COLOURS.items() if slug != "baseline")
"""Colours of series that are not methods (loss terms, layers, …)."""

STRENGTH_SCALE: list[list[float | str]] = [[0.0, "#2f5be0"], [0.5, "#9aa0aa"], [1.0, "#d9730d"]]
"""λ as colour: negative blue, zero grey, positive orange. Grey in the middle shows on both backgrounds."""

POINT_SCALES: dict[str, list[list[float | str]]] = {
    "light": [[0.0, "#440154"], [0.25, "#45317c"], [0.5, "#37598c"], [0.75, "#287c8e"], [1.0, "#24a485"]],
    "dark": [[0.0, "#26838e"], [0.25, "#26a684"], [0.5, "#50c269"], [0.75, "#a3da37"], [1.0, "#fde725"]],
}
"""Colour scales of points by mode: the part of Viridis with a contrast of 3:1 on the background. The browser selects the scale,
because only it knows the mode."""

CELL_SCALES: dict[str, list[list[float | str]]] = {
    "light": [[0.0, "#440154"], [0.33, "#45317c"], [0.67, "#37598c"], [1.0, "#287c8e"]],
    "dark": [[0.0, "#26a684"], [0.33, "#50c269"], [0.67, "#a3da37"], [1.0, "#fde725"]],
}
"""Colour scales of cells with text, which is white in light mode and black in dark mode, with a contrast of 4.5:1."""

POINT_PALETTES: dict[str, list[str]] = {
    "light": ["#4944fb", "#da4211", "#1a4d4a", "#640796", "#a834c1", "#842900", "#571210", "#307f65", "#676e79"],
    "dark": ["#7488ff", "#f83929", "#4cf089", "#b163b7", "#d0a0bd", "#ed9700", "#d26b7e", "#09bcff", "#a3a9b3"],
}
"""Colours of classes of points by mode; the last is for all other values. Points are translucent: at 75 % opacity each colour has a
contrast of 3:1 on its background, which no colour has on both. Chosen to maximise the smallest distance (OKLab) between any two,
with and without the three common forms of colour blindness."""

CHART_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}
"""Plotly's toolbar buttons of finished figures, in addition to saving."""

_STATUS: dict[str, tuple[str, str]] = {
    "queued": ("gray", "schedule"),
    "running": ("blue", "play_circle"),
    "finished": ("green", "check_circle"),
    "stopped": ("orange", "stop_circle"),
    "failed": ("red", "error"),
    "diverged": ("red", "trending_up"),
    "lost": ("violet", "link_off"),
}


def method_colour(slug: str) -> str:
    """The method's colour."""
    return METHOD_COLOURS.get(slug) or SPARE_COLOURS[_spare_index(slug)]


def method_symbol(slug: str, index: int = 0) -> str:
    """Plotly's name of the method's symbol; combinations have open symbols.

    Args:
        index: index among several lines of the method; every second line has the open (or filled) symbol.
    """
    symbol = METHOD_SYMBOLS.get(slug) or SPARE_SYMBOLS[_spare_index(slug)]
    return f"{symbol}-open" if (slug.count("+") > 0) ^ (index % 2 > 0) else symbol


def method_dash(slug: str, index: int = 0) -> str:
    """Plotly's name of the method's line style; `index`: index among several lines of the method."""
    dash = _STYLES[slug][2] if slug in _STYLES else DASHES[_spare_index(slug) % len(DASHES)]
    return DASHES[(DASHES.index(dash) + index) % len(DASHES)]


def _spare_index(slug: str) -> int:
    """Index of an unlisted method's spare colour and symbol: derived from its name, unless another installed method has it."""
    taken: dict[str, int] = {}
    for other in sorted(set(methods.catalogue()) - set(METHOD_COLOURS)):
        place = _index_by_name(other)
        while place in taken.values() and len(taken) < len(SPARE_COLOURS):
            place = (place + 1) % len(SPARE_COLOURS)
        taken[other] = place
    return taken.get(slug, _index_by_name(slug))


def _index_by_name(slug: str) -> int:
    return zlib.crc32(slug.encode()) % len(SPARE_COLOURS)


def status_badge(status: str) -> str:
    """A run's status as Streamlit Markdown: coloured badge with an icon, so that colour is not the only cue."""
    colour, icon = _STATUS.get(status, ("gray", "help"))
    return f":{colour}-badge[:material/{icon}: {status}]"


def figure_layout(**more: Any) -> dict[str, Any]:
    """Plotly layout shared by all figures: transparent, faint grid, legend above the figure, room for titles.

    Without text colours: the component sets them for the current mode.
    """
    axis = {"gridcolor": "rgba(127,134,145,0.22)", "zerolinecolor": "rgba(127,134,145,0.45)", "automargin": True}
    layout: dict[str, Any] = {
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 8, "t": 36, "b": 8},
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "title": {"text": ""}},
        "hoverlabel": {"align": "left"},
        "xaxis": axis,
        "yaxis": axis,
        "uirevision": "keep",
    }
    for key, value in more.items():
        base = axis if key.startswith(("xaxis", "yaxis")) else layout.get(key)  # yaxis2 as well
        layout[key] = {**base, **value} if isinstance(base, dict) and isinstance(value, dict) else value
    return layout


def titled(figure: go.Figure, x: str, y: str, **more: Any) -> go.Figure:
    """The figure with these axis titles, a legend, and `figure_layout(**more)`."""
    return figure.update_layout(
        figure_layout(**{"xaxis_title": x, "yaxis_title": y, "height": 320, "showlegend": True, **more})
    )


def error_bars(
    middles: Iterable[float | None], ends: Iterable[tuple[float | None, float | None] | None]
) -> dict[str, Any]:
    """Plotly's error bars from values with intervals; none where one of them is undefined."""
    known = [
        (high - middle, middle - low) if None not in (middle, low, high) else (None, None)  # type: ignore[operator]
        for middle, (low, high) in ((middle, end or (None, None)) for middle, end in zip(middles, ends, strict=True))
    ]
    up, down = ([pair[side] for pair in known] for side in (0, 1))
    return {"type": "data", "symmetric": False, "array": up, "arrayminus": down, "thickness": 1.2, "width": 4}


def method_swatch(slug: str) -> str:
    """A small square in the method's colour, as SVG."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">'
        f'<rect x="1" y="1" width="14" height="14" rx="4" fill="{method_colour(slug)}"/></svg>'
    )
