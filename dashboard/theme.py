"""Colours, symbols and figure layout: one look for every screen, the same in light and dark mode.

A colour here reaches a contrast of 3:1 on white and on near-black, so one value serves both modes. Under the three
common forms of colour blindness (simulated) the first five stay well apart and all nine distinguishable; because nine
colours in so narrow a band of brightness are crowded, every method also has its own symbol and dash. A method that is not
listed here gets all three by a rule (`_spare_place`), so a new method needs no line in this file.
"""

from __future__ import annotations

import zlib
from typing import Any

from isoviz import methods

METHOD_COLOURS: dict[str, str] = {
    "baseline": "#7f8691",
    "istar": "#4968f6",
    "isobn": "#c51711",
    "cosreg": "#1eab48",
    "batchnorm": "#994ebe",
    "isolayer": "#d15dc8",
    "spectrum_pol": "#dd7809",
    "spectrum_exp": "#9d5455",
    "flow": "#0c6888",
}
"""The colour of a method, everywhere."""

METHOD_SYMBOLS: dict[str, str] = {
    "baseline": "circle",
    "istar": "diamond",
    "isobn": "square",
    "cosreg": "triangle-up",
    "batchnorm": "pentagon",
    "isolayer": "star",
    "spectrum_pol": "cross",
    "spectrum_exp": "x",
    "flow": "hexagram",
}
"""Plotly's name of a method's marker."""

METHOD_DASHES: dict[str, str] = {
    "baseline": "dot",
    "istar": "solid",
    "isobn": "dash",
    "cosreg": "dashdot",
    "batchnorm": "longdash",
    "isolayer": "solid",
    "spectrum_pol": "dash",
    "spectrum_exp": "dashdot",
    "flow": "longdash",
}

SPARE_COLOURS: tuple[str, ...] = (
    *("#8783ff", "#ba1d8f", "#f6489f", "#b26764", "#c45b01", "#cb01e2", "#a60aca", "#6986b0"),
)
"""Colours of methods that are not in `METHOD_COLOURS`. Each was searched as the colour in the band of brightness that lies
farthest (OKLab, as it is and under the three common forms of colour blindness) from the nine above and those before it."""

SPARE_SYMBOLS: tuple[str, ...] = (
    *(
        "triangle-down",
        "star-diamond",
        "bowtie",
        "star-triangle-down",
        "triangle-left",
        "star-square",
        "hourglass",
        "triangle-right",
    ),
)
"""Markers of the same methods, in the same order."""

DASHES: tuple[str, ...] = ("solid", "dash", "dashdot", "longdash", "dot", "longdashdot")
LEVEL_DASHES: tuple[str, ...] = ("dot", "dash", "dashdot", "longdash")
"""Dashes of level lines, in this order."""

NEUTRAL = METHOD_COLOURS["baseline"]
"""The grey of what stands for no method, or for any."""
MARK = METHOD_COLOURS["spectrum_pol"]
"""The orange of what stands out over bars: a mean, an outlier."""

PALETTE: tuple[str, ...] = tuple(colour for slug, colour in METHOD_COLOURS.items() if slug != "baseline")
"""For series that are not methods (loss terms, layers, ...), in this order."""

STRENGTH_SCALE: list[list[float | str]] = [[0.0, "#2f5be0"], [0.5, "#9aa0aa"], [1.0, "#d9730d"]]
"""λ as colour: negative blue, zero grey, positive orange. Grey in the middle shows on both backgrounds."""

POINT_SCALES: dict[str, list[list[float | str]]] = {
    "light": [[0.0, "#440154"], [0.25, "#45317c"], [0.5, "#37598c"], [0.75, "#287c8e"], [1.0, "#24a485"]],
    "dark": [[0.0, "#26838e"], [0.25, "#26a684"], [0.5, "#50c269"], [0.75, "#a3da37"], [1.0, "#fde725"]],
}
"""Numbers as the colours of points, by the page's mode: the part of Viridis that reaches 3:1 on its background from end to end.
Only the browser knows the mode for certain, so it chooses."""

CELL_SCALES: dict[str, list[list[float | str]]] = {
    "light": [[0.0, "#440154"], [0.33, "#45317c"], [0.67, "#37598c"], [1.0, "#287c8e"]],
    "dark": [[0.0, "#26a684"], [0.33, "#50c269"], [0.67, "#a3da37"], [1.0, "#fde725"]],
}
"""The same for cells with a number in them, white in the light mode and black in the dark one: it reaches 4.5:1 on every colour."""

POINT_PALETTES: dict[str, list[str]] = {
    "light": ["#4944fb", "#da4211", "#1a4d4a", "#640796", "#a834c1", "#842900", "#571210", "#307f65", "#676e79"],
    "dark": ["#7488ff", "#f83929", "#4cf089", "#b163b7", "#d0a0bd", "#ed9700", "#d26b7e", "#09bcff", "#a3a9b3"],
}
"""Classes as the colours of points, by the page's mode, the last for values without a colour of their own. Points let through what
is behind them: even at three quarters of their strength each reaches 3:1 on its background, which no colour does on both. Found by
a search for the largest least distance (OKLab) between any two, as they are and under the three common forms of colour blindness."""

CHART_CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"],
}
"""Plotly's buttons beside every finished figure, besides those that save it."""

_STATUS: dict[str, tuple[str, str]] = {
    "queued": ("gray", "schedule"),
    "running": ("blue", "play_circle"),
    "finished": ("green", "check_circle"),
    "stopped": ("orange", "stop_circle"),
    "failed": ("red", "error"),
    "diverged": ("red", "trending_up"),
    "lost": ("violet", "link_off"),
    "unreadable": ("red", "broken_image"),
}


def method_colour(slug: str) -> str:
    """The method's colour."""
    return METHOD_COLOURS.get(slug) or SPARE_COLOURS[_spare_place(slug)]


def method_symbol(slug: str, place: int = 0) -> str:
    """Plotly's name of the method's marker; combinations have open ones.

    Args:
        place: which of several lines of the same method; every second one has the open (or the filled) marker.
    """
    symbol = METHOD_SYMBOLS.get(slug) or SPARE_SYMBOLS[_spare_place(slug)]
    return f"{symbol}-open" if (slug.count("+") > 0) ^ (place % 2 > 0) else symbol


def method_dash(slug: str, place: int = 0) -> str:
    """Plotly's name of the method's line style; `place`: which of several lines of the same method."""
    own = METHOD_DASHES.get(slug) or DASHES[_spare_place(slug) % len(DASHES)]
    return DASHES[(DASHES.index(own) + place) % len(DASHES)]


def _spare_place(slug: str) -> int:
    """Which spare colour and symbol an unlisted method has: by its name alone, unless another installed one has that already."""
    taken: dict[str, int] = {}
    for other in sorted(set(methods.catalogue()) - set(METHOD_COLOURS)):
        place = _named_place(other)
        while place in taken.values() and len(taken) < len(SPARE_COLOURS):
            place = (place + 1) % len(SPARE_COLOURS)
        taken[other] = place
    return taken.get(slug, _named_place(slug))


def _named_place(slug: str) -> int:
    return zlib.crc32(slug.encode()) % len(SPARE_COLOURS)


def status_badge(status: str) -> str:
    """A run's status as Streamlit Markdown: coloured badge with an icon, so that colour is not the only cue."""
    colour, icon = _STATUS.get(status, ("gray", "help"))
    return f":{colour}-badge[:material/{icon}: {status}]"


def is_dark() -> bool:
    """Whether this visitor's page is dark (on the very first run of a session Streamlit may not know yet: light)."""
    import streamlit as st

    return st.context.theme.type == "dark"


def figure_layout(**more: Any) -> dict[str, Any]:
    """Plotly layout shared by all figures: transparent, faint grid, legend above the figure, room for titles.

    Text colours are left out on purpose: the component gives those of the mode that is on.
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


def method_swatch(slug: str) -> str:
    """A small square in the method's colour, as SVG."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="0 0 16 16">'
        f'<rect x="1" y="1" width="14" height="14" rx="4" fill="{method_colour(slug)}"/></svg>'
    )
