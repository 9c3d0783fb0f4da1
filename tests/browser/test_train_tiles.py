"""The tiles of Train's panel say all that they have to say on a laptop's screen."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dashboard.shared.timing import Estimate
from tests.browser.conftest import Server

CUT_OFF = """(value, words) => {
  let text = value;
  while (text.firstElementChild) text = text.firstElementChild;
  text.textContent = words;
  return [value, ...value.querySelectorAll("*")].some((part) => part.scrollWidth > part.clientWidth);
}"""


@pytest.mark.parametrize("width", [1280, 1440])
def test_the_longest_time_is_not_cut_off(server: Server, open_tab: Callable[..., Page], width: int) -> None:
    words = Estimate(seconds=59 * 60 + 59.0, unknown=1, recorded=0).words()
    page = open_tab(f"{server.url}/train", width=width)
    _runs, time, _device = (page.get_by_test_id("stMetricValue").nth(index) for index in range(3))
    expect(time).to_have_text(re.compile("^(about|more than|unknown)"))
    assert len(words) >= 20
    assert time.evaluate(CUT_OFF, words) is False
