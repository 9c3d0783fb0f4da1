"""Settings that users rely on without seeing them, and that nothing else would notice missing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from dashboard.shared import theme

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    return tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def test_only_this_machine_is_served_and_nothing_is_reported(settings: dict[str, Any]) -> None:
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["browser"]["gatherUsageStats"] is False
    assert settings["server"]["fileWatcherType"] == "none"
    assert settings["client"]["showErrorDetails"] == "type"  # visitors see no paths of the server
    assert settings["client"]["toolbarMode"] == "minimal"  # no one clears the caches of the others


def test_streamlit_s_own_charts_have_the_methods_colours(settings: dict[str, Any]) -> None:
    colours = [colour.lower() for colour in settings["theme"]["chartCategoricalColors"]]
    assert colours == [*theme.PALETTE, theme.method_colour("baseline")]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_both_modes_are_complete(settings: dict[str, Any], mode: str) -> None:
    chosen = settings["theme"][mode]
    assert len(chosen["chartSequentialColors"]) == 10  # another number is ignored by Streamlit
    needed = {"primaryColor", "backgroundColor", "secondaryBackgroundColor", "textColor", "linkColor", "borderColor"}
    assert needed <= set(chosen)
    assert needed <= set(chosen["sidebar"])
    assert _contrast(chosen["textColor"], chosen["backgroundColor"]) > 7
    assert _contrast(chosen["primaryColor"], chosen["backgroundColor"]) > 3
    words = {"light": "#ffffff", "dark": "#0f151c"}[mode]  # on primary buttons, by `dashboard/app.css`
    assert _contrast(chosen["primaryColor"], words) > 4.5
    assert _contrast(chosen["linkColor"], chosen["backgroundColor"]) > 4.5


def _contrast(one: str, other: str) -> float:
    """WCAG's contrast ratio of two #rrggbb colours."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
