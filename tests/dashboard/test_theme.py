"""The palette: contrast on both backgrounds, one colour and one symbol per method."""

from __future__ import annotations

import pytest

from dashboard import theme


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("slug", theme.METHOD_COLOURS)
def test_colour_is_readable_on_white_and_on_near_black(slug: str) -> None:
    own = luminance(theme.method_colour(slug))
    assert 1.05 / (own + 0.05) >= 3
    assert (own + 0.05) / (luminance("#0e1117") + 0.05) >= 3


@pytest.mark.parametrize(("mode", "background"), [("light", "#ffffff"), ("dark", "#0f151c")])
def test_points_coloured_by_numbers_show_on_their_background_from_end_to_end(mode: str, background: str) -> None:
    ends, colours = zip(*theme.POINT_SCALES[mode], strict=True)
    assert ends == (0.0, 0.25, 0.5, 0.75, 1.0)
    paper = luminance(background)
    for colour in colours:
        own = luminance(str(colour))
        assert (max(own, paper) + 0.05) / (min(own, paper) + 0.05) >= 3
    shades = [luminance(str(colour)) for colour in colours]
    assert shades == sorted(shades) and shades[-1] > 3 * shades[0]  # brightness tells the order, in both modes alike


def test_each_method_has_its_own_colour_and_symbol() -> None:
    slugs = list(theme.METHOD_COLOURS)
    assert len({theme.method_colour(s) for s in slugs}) == len(slugs) == 9
    assert len({theme.method_symbol(s) for s in slugs}) == len(slugs)


def test_unknown_method_gets_a_stable_palette_colour() -> None:
    assert theme.method_colour("my_new_method") == theme.method_colour("my_new_method") in theme.PALETTE


def test_status_badge_names_the_status() -> None:
    assert theme.status_badge("failed") == ":red-badge[:material/error: failed]"


def test_layout_merges_into_axes() -> None:
    layout = theme.figure_layout(xaxis={"title": "IsoScore*"}, height=300)
    assert layout["xaxis"]["title"] == "IsoScore*" and "gridcolor" in layout["xaxis"] and layout["height"] == 300
