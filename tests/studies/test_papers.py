"""The papers' tables and figures in the order of print, and how places are read from words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isoviz import studies
from isoviz.errors import InputError
from isoviz.methods import catalogue as methods
from isoviz.studies import papers, published
from isoviz.studies.papers import place_names


def test_there_are_twenty_three_places_of_the_papers_whose_numbers_are_kept() -> None:
    places = {(source.slug, place) for source in papers.PAPERS for place in source.places}
    assert len(places) == 23
    tables = {(cell.paper, cell.place) for cell in published.everything()}
    assert tables == {place for place in places if place[1].startswith("Table")}


def test_a_paper_is_found_by_its_name() -> None:
    assert papers.get("isobn").paper is methods()["isobn"].paper
    with pytest.raises(InputError, match="calibration"):
        papers.get("isobm")
    with pytest.raises(InputError, match="calibration"):  # one of another package must not break the list of all
        replace(studies.get("istar-figure-2"), slug="lab-figure-2")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Figures 1, 2 and 4, Table 2", ("Figure 1", "Figure 2", "Figure 4", "Table 2")),
        ("Figures 3–5 and 7", ("Figure 3", "Figure 4", "Figure 5", "Figure 7")),
        ("I-STAR, caption of Figure 2", ("Figure 2",)),
        ("section 3", ()),
    ],
)
def test_places_are_read_from_words(text: str, names: tuple[str, ...]) -> None:
    assert place_names(text) == names
