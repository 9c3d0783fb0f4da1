"""The palette: contrast on both backgrounds, one colour and one symbol per method; and Streamlit's settings, which users rely on
without seeing them."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dashboard.shared import map_figure, theme

ROOT = Path(__file__).resolve().parents[2]


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: float, other: float) -> float:
    """WCAG's contrast ratio of two luminances."""
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


BLIND = {
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""How they see linear light: Machado, Oliveira and Fernandes (2009), at full strength."""


def oklab(linear: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Ottosson's OKLab of linear light (n, 3): its distances approximate perceived differences."""
    cones = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                      [0.0883024619, 0.2817188376, 0.6299787005]])  # fmt: skip
    axes = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                     [0.0259040371, 0.7827717662, -0.8086757660]])  # fmt: skip
    return np.cbrt(linear @ cones.T) @ axes.T


def distances(palette: Sequence[str]) -> list[np.ndarray]:  # type: ignore[type-arg]
    """(n, n) distances of colours in OKLab, 1 on the diagonal: as they are, then for each form of colour blindness."""
    channels = np.array([[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in palette]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    apart = []
    for eye in (np.eye(3), *BLIND.values()):
        seen = oklab(np.clip(linear @ eye.T, 0, 1))
        apart.append(np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(len(seen)))
    return apart


@pytest.mark.parametrize("colour", [*theme.METHOD_COLOURS.values(), *theme.SPARE_COLOURS])
def test_colour_is_readable_on_white_and_on_near_black(colour: str) -> None:
    assert contrast(luminance(colour), 1) >= 3 and contrast(luminance(colour), luminance("#0e1117")) >= 3


@pytest.mark.parametrize(("mode", "background"), [("light", "#ffffff"), ("dark", "#0f151c")])
def test_points_of_classes_show_on_their_background_and_differ_for_every_eye(mode: str, background: str) -> None:
    palette = theme.POINT_PALETTES[mode]
    assert len(palette) == len(set(palette)) == map_figure.MOST_GROUPS + 1
    own, paper = (
        np.array([[int(one[i : i + 2], 16) for i in (1, 3, 5)] for one in found]) for found in (palette, [background])
    )
    through = map_figure._DENSE * own + (1 - map_figure._DENSE) * paper  # as they are drawn where they are many
    for red, green, blue in np.rint(through).astype(int):
        assert contrast(luminance(f"#{red:02x}{green:02x}{blue:02x}"), luminance(background)) >= 3
    for apart in distances(palette[:-1]):  # grey means no class
        assert apart.min() > 0.06 and apart[:3, :3].min() > 0.12


@pytest.mark.parametrize(("mode", "background"), [("light", "#ffffff"), ("dark", "#0f151c")])
def test_points_coloured_by_numbers_show_on_their_background_from_end_to_end(mode: str, background: str) -> None:
    ends, colours = zip(*theme.POINT_SCALES[mode], strict=True)
    assert ends == (0.0, 0.25, 0.5, 0.75, 1.0)
    shades = [luminance(str(colour)) for colour in colours]
    assert all(contrast(own, luminance(background)) >= 3 for own in shades)
    assert shades == sorted(shades) and shades[-1] > 3 * shades[0]  # brightness shows the order in both modes


@pytest.mark.parametrize(("mode", "ink"), [("light", 1.0), ("dark", 0.0)])
def test_numbers_in_cells_can_be_read_on_every_colour(mode: str, ink: float) -> None:
    shades = [luminance(str(colour)) for _, colour in theme.CELL_SCALES[mode]]
    assert shades == sorted(shades) and all(contrast(own, ink) >= 4.5 for own in shades)


def test_colours_of_methods_to_come_differ_from_all_others_for_every_eye() -> None:
    for apart in distances([*theme.METHOD_COLOURS.values(), *theme.SPARE_COLOURS]):
        assert apart.min() > 0.045
    assert not set(theme.SPARE_SYMBOLS) & set(theme.METHOD_SYMBOLS.values())
    assert len(set(theme.SPARE_SYMBOLS)) == len(theme.SPARE_SYMBOLS) == len(theme.SPARE_COLOURS)


def test_new_methods_get_colours_of_their_own_that_do_not_depend_on_the_day(monkeypatch: pytest.MonkeyPatch) -> None:
    new = ["my_method", "another", "third", "lab_method"]
    known = dict.fromkeys([*theme.METHOD_COLOURS, *new])
    alone = theme.method_colour("my_method")
    monkeypatch.setattr(theme.methods, "catalogue", lambda: known)
    colours = [theme.method_colour(slug) for slug in new]
    assert len({*colours, *theme.METHOD_COLOURS.values()}) == 9 + len(new)
    assert len({theme.method_symbol(slug) for slug in known}) == 9 + len(new)
    for other in new[1:]:
        del known[other]
    assert theme.method_colour("my_method") == alone == "#b26764"  # by its name: the same on every machine
    assert {theme.method_dash(slug) for slug in new} <= set(theme.DASHES)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_only_this_machine_is_served_and_nothing_is_reported(settings: dict[str, Any]) -> None:
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["fileWatcherType"] == "none"
    assert settings["client"]["showErrorDetails"] == "type"  # visitors see no paths of the server
    assert settings["client"]["toolbarMode"] == "minimal"  # no one clears the caches of the others


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_both_modes_are_complete(settings: dict[str, Any], mode: str) -> None:
    chosen = settings["theme"][mode]
    assert len(chosen["chartSequentialColors"]) == 10  # another number is ignored by Streamlit
    needed = {"primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor", "linkColor", "borderColor"}
    assert needed <= set(chosen)
    assert needed <= set(chosen["sidebar"])
    assert contrast(luminance(chosen["textColor"]), luminance(chosen["backgroundColor"])) > 7
    assert contrast(luminance(chosen["primaryColor"]), luminance(chosen["backgroundColor"])) > 3
    words = {"light": "#ffffff", "dark": "#0f151c"}[mode]  # on primary buttons, by `dashboard/app.css`
    assert contrast(luminance(chosen["primaryColor"]), luminance(words)) > 4.5
    assert contrast(luminance(chosen["linkColor"]), luminance(chosen["backgroundColor"])) > 4.5
