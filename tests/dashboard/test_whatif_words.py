"""The sentences and figures of What-if, without the page."""

from __future__ import annotations

import numpy as np
import pytest

from dashboard.whatif import plots, sentences
from isoviz.readouts import CATALOGUE, Comparison
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.whatif.engine import Answer, Full

Ends = tuple[float, float] | tuple[()]


def answer(isoscore: float | None) -> Answer:
    return Answer(100, 4, {"isoscore": isoscore})


def full(**changes: Ends | None) -> Full:
    """A run's, with the intervals of its heads; None if undefined, () if only the interval is missing."""
    made = {
        slug: Difference(0.1 if ends == () else None, None, None, 100, 0)
        if not ends
        else Difference(sum(ends) / 2, *ends, 100, 2000)
        for slug, ends in changes.items()
    }
    return Full([Comparison(CATALOGUE[slug], 0.5, 0.8, change) for slug, change in made.items()])


@pytest.mark.parametrize(
    "frozen, refitted, sentence",
    [
        ((-0.2, -0.1), (-0.02, 0.02), "no longer fits"),
        ((-0.2, -0.1), (0.02, 0.05), "even better"),
        ((-0.2, -0.1), (-0.2, -0.1), "and so does one refitted"),
        ((-0.01, 0.01), (-0.2, -0.1), "the frozen head loses no more than chance explains"),
        ((0, 0), (0, 0), "exactly as without the transform"),
        ((-0.01, 0.01), (-0.01, 0.01), "no evidence for or against"),
        ((-0.01, 0.01), (0.01, 0.03), "here, the transform helps"),
        ((0.01, 0.03), (-0.01, 0.01), "without adding information"),
        (None, (-0.01, 0.01), "cannot read these vectors"),
        ((0.1, 0.2), None, "undefined for one of the heads"),
        ((), (), "100 validation rows are too few for intervals"),
        (None, (), "too few"),
    ],
)
def test_the_two_heads_in_words(frozen: Ends | None, refitted: Ends | None, sentence: str) -> None:
    assert sentence in sentences.heads(100, full(frozen=frozen, refitted=refitted))


def test_isotropy_in_words() -> None:
    assert "more isotropic (IsoScore 0.1 → 0.3)" in sentences.isotropy(answer(0.1), answer(0.3))
    assert "less isotropic" in sentences.isotropy(answer(0.3), answer(0.1))
    assert "about as isotropic" in sentences.isotropy(answer(0.3), answer(0.302))
    assert "undefined" in sentences.isotropy(answer(None), answer(0.1))
    assert "(95 % interval −0.006 to 0, " in sentences.difference(Difference(-0.002, -0.006, 0.0, 500, 2000))
    assert sentences.change(0.0242, 0.025022) == "−0.0008" and sentences.change(0.522, 0.4945) == "+0.028"
    assert sentences.change(20.9, 11.36) == "+9.5" and sentences.change(0.5, 0.50001) == "−1e−05"
    assert sentences.signed(-0.0123) == "−0.012" and sentences.signed(0.0) == "±0"


def test_maps_name_their_sample_and_escape_user_input() -> None:
    places = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32)
    labels = np.arange(4000) % 2
    figure = plots.cloud_map(places, (0.5, 0.25), labels, ["<b>no", "yes"], ["<script>" + "x" * 200] * 4000)
    assert sum(len(trace.x) for trace in figure.data) == plots.DRAWN
    assert {trace.type for trace in figure.data} == {"scattergl"}
    names = [trace.name for trace in figure.data]
    assert names == ["&lt;b&gt;no", "yes"] * 12  # alternating, so that the last class does not cover the first
    assert [trace.showlegend for trace in figure.data] == [True] * 2 + [False] * 22
    assert all(trace.legendgroup == trace.name for trace in figure.data)  # switched on and off together
    drawn_places = np.concatenate([np.column_stack([trace.x, trace.y]) for trace in figure.data])
    rows = plots.drawn_rows(4000)
    np.testing.assert_array_equal(np.sort(drawn_places, axis=0), np.sort(places[rows].astype(float), axis=0))
    assert figure.data[0].name == "&lt;b&gt;no" and figure.data[0].customdata[0].startswith("&lt;script&gt;")
    assert len(figure.data[0].customdata[0]) < 120
    numbers = plots.cloud_map(places[:50], (0.5, 0.25), labels[:50] * 0.5, [], ["t"] * 50)
    assert numbers.layout.coloraxis.colorscale and numbers.data[0].marker.coloraxis == "coloraxis"
    assert numbers.data[0].type == "scatter"
