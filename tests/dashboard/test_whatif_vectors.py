"""What-if without a run: a set that is there, its verdicts, and what it says; the sentences and figures without the page."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.components.lab import source as lab
from dashboard.shared import menu
from dashboard.whatif import drawing, sentences
from isoviz import vectors
from isoviz.readouts import CATALOGUE, Comparison, division
from isoviz.readouts.division import divide
from isoviz.readouts.isotropy import Isotropy
from isoviz.statistics.paired_bootstrap import Difference
from isoviz.tables.kinds.page import START
from isoviz.vectors import VectorSet
from isoviz.whatif import chains
from isoviz.whatif.engine import Answer, Full, WhatIf
from isoviz.whatif.scheduler import SCHEDULER
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.reading import errors, texts
from tests.dashboard.saved import saved

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _quiet() -> object:
    yield
    SCHEDULER.close()


def stored_set(n: int = 90, **columns: object) -> str:
    labels = RNG.integers(0, 2, n)
    points = RNG.normal(size=(n, 8)) + np.outer(labels, np.eye(8)[0])
    named = {"label": np.array(["no", "yes"])[labels], **columns}
    return vectors.keep(VectorSet(points, pd.DataFrame(named), name="made"))


def opened(open_page: OpenPage, key: str, **query: str) -> AppTest:
    """The page on a stored set."""
    return open_page("whatif", **menu.WHATIF_OWN, whatif_either=key, **query)


def test_a_kept_set_its_numbers_and_verdicts(open_page: OpenPage) -> None:
    key = stored_set()
    page = opened(open_page, key, chain="zca:strength=0.5")
    assert errors(page) == []
    shown = texts(page)
    assert "Transforms are fitted on 30 rows; the numbers are of 30 others." in shown
    assert "held back" not in shown  # all of them are cross-validated
    assert "Cross-validated over all 90 labelled rows: Linear probe" in shown
    assert "The smallest difference that 90 rows can show is 0.067" in shown
    engine = WhatIf(divide(vectors.load(key)))
    answer = engine.answer(chains.read("zca:strength=0.5"))
    (score,) = re.findall(r"^\| IsoScore \| \S+ \| (\S+) \|", shown, re.MULTILINE)
    assert float(score) == pytest.approx(answer.measures["isoscore"], rel=6e-3)
    table = page.dataframe[0].value.set_index("Read-out")
    assert table.loc["k-NN accuracy", "After"] == pytest.approx(answer.readouts["knn"].value)
    assert not table["Verdict"].str.contains("rows|pairs|pending").any()  # named once, below the figure
    assert table["95 % from"].le(table["to"]).all()

    crossed = {one.readout.slug: one for one in engine.full(WHITEN).crossed}
    assert f"Classifier: {sentences.verdict(CLASSIFIER, crossed, WHITEN)[0]}." in shown
    assert "Search: needs queries." in shown and "Similarity: needs scored pairs." in shown


def test_a_set_is_taken_home_with_the_model_that_made_it(open_page: OpenPage, offered: Offered, tmp_path: Path) -> None:
    page = opened(open_page, stored_set(), chain="zca:strength=0.5")

    def labels() -> set[str]:
        return {button.label for button in (*page.button, *page.get("download_button"))}

    next(button for button in page.button if button.label == "Prepare files").click().run()
    assert errors(page) == [] and "k-NN accuracy" in texts(page) and "their model is unknown" in texts(page)
    assert "Matrix (numpy)" in labels() and "Build the model" not in labels()
    page.toggle(key="export_vectors").set_value(True).run()
    content = str(next(make for name, make in offered.items() if name.startswith("isoviz-what-if-"))())
    page_file = saved(content)
    shown = page.dataframe[0].value
    table = page_file.tables["Read-outs, before and after"]
    np.testing.assert_allclose(table["After"], shown["After"], rtol=6e-4)
    verdicts = page_file.tables["Does the transform help?"]
    assert all(
        f"{use}: {verdict}." in texts(page) for use, verdict in zip(verdicts["For"], verdicts["Verdict"], strict=True)
    )
    assert page_file.codes["Chain of transforms"] == "zca:strength=0.5" and "bell" in page_file.codes["BibTeX"].lower()
    loaded = vectors.load(str(page.query_params["whatif_either"]))
    answer = WhatIf(divide(loaded)).answer(chains.read("zca:strength=0.5"))
    measures = page_file.tables["Measures, before and after"].set_index("Measure")["After"]
    assert measures["IsoScore"] == pytest.approx(answer.measures["isoscore"], rel=6e-4)
    (tmp_path / "saved.html").write_text(content, encoding="utf-8")
    again = vectors.read(tmp_path / "saved.html")
    np.testing.assert_array_equal(again.points, loaded.points)
    reopened = open_page("whatif", **menu.WHATIF_OWN, chain="none")
    file = ("saved.html", content.encode(), "text/html")
    reopened.file_uploader(key="whatif_own.either.file").set_value([file]).run()
    assert errors(reopened) == [] and reopened.query_params["chain"] == "zca:strength=0.5"
    measures_of = lambda shown: re.findall(r"^\| .+ \|$", texts(shown), re.MULTILINE)  # noqa: E731
    assert measures_of(reopened) == measures_of(page) != []
    begins = json.loads(content.partition(START)[2].partition("</script>")[0])["transforms"]
    assert begins == lab.transforms(chains.read("zca:strength=0.5"))
    assert errors(page) == [] and "Build the model" not in labels() and "their model is unknown" in texts(page)
    page.query_params["whatif_either"] = stored_set()  # of the same name, and with the same chain
    page.run()
    assert "Prepare files" in labels() and "Matrix (numpy)" not in labels()


def test_the_page_begins_with_a_chain_that_it_knows() -> None:
    known = chains.read("mean_removal~zca:strength=0.25")
    assert lab.transforms(known) == [{"slug": "centring"}, {"slug": "zca", "strength": 0.25, "eps": 0.0}]
    assert lab.transforms(chains.read("truncation:keep=9")) == [{"slug": "truncation", "keep": 9}]
    # not on the page, a parameter it lacks, beyond its bounds, dependent on the cloud, more steps than it takes
    beyond = ("quantisation", "isobn:eps=0.5", "truncation:keep=1", "all_but_the_top", "~".join(["mean_removal"] * 7))
    assert [lab.transforms(chains.read(text)) for text in beyond] == [None] * 5


def test_the_check_on_the_held_back_rows_is_the_verdict_everywhere(
    open_page: OpenPage, offered: Offered, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(division, "CROSSED", 50)
    page = opened(open_page, stored_set(), chain="zca:strength=0.5")
    assert "30 rows are held back." in texts(page) and "Cross-validated" not in texts(page)
    next(button for button in page.button if button.label == "Prepare files").click().run()
    assert "held-back" not in readme(offered)
    next(button for button in page.button if button.label == "Check on the held-back rows").click().run()
    assert "Held back: k-NN accuracy" in texts(page)

    key = str(page.query_params["whatif_either"])
    comparison = WhatIf(divide(vectors.load(key), "held back")).comparison(WHITEN, "knn")
    advice, reason = sentences.verdict(CLASSIFIER, {"knn": comparison}, WHITEN)
    verdict = f"Classifier: {advice}. 30 held-back rows: {reason}"
    assert verdict in card(page) and f"- Verdict: {verdict}" in readme(offered)
    assert "30 rows shown" in readme(offered), "the measured effects say that they are of the other rows"
    table = saved(next(make for name, make in offered.items() if name.startswith("isoviz-what-if-"))())
    (line,) = table.tables["Does the transform help?"].to_dict("records")
    saved_verdict = f"{line['For']}: {line['Verdict']}. {line['Reason']}"
    assert saved_verdict.startswith(verdict) and saved_verdict in card(page) and saved_verdict in readme(offered)
    link = {name: str(page.query_params[name]) for name in page.query_params}
    assert verdict in card(open_page("whatif", **link))
    assert "held-back rows:" not in card(open_page("whatif", **link | {"chain": "zca:strength=0.6"}))


def card(page: AppTest) -> str:
    return texts(page).replace("**", "")


def readme(offered: Offered) -> str:
    content = next(make for name, make in offered.items() if name.endswith(".zip"))()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read("README.md").decode()


def test_a_set_that_is_gone_or_too_small_says_so(open_page: OpenPage) -> None:
    assert "no longer on this server" in errors(opened(open_page, "0" * 32))[0]
    few = vectors.keep(VectorSet(RNG.normal(size=(6, 4)), pd.DataFrame(index=range(6)), name="few"))
    assert "at least 12 rows, got 6" in errors(opened(open_page, few))[0]


def changed(slug: str, low: float, high: float, n: int = 1_000) -> Comparison:
    middle = (low + high) / 2
    return Comparison(CATALOGUE[slug], 0.5, 0.5 + middle, Difference(middle, low, high, n))


# ------------------------------------------------------------------------------------------------------ the verdict card

WHITEN = chains.read("zca:strength=0.5")
CLASSIFIER, SEARCH, SIMILARITY = sentences.PURPOSES


def advice(*comparisons: Comparison, chain: str = "zca:strength=0.5") -> str:
    purpose = next(one for one in sentences.PURPOSES if comparisons[0].readout.slug in one.readouts)
    return sentences.verdict(purpose, {one.readout.slug: one for one in comparisons}, chains.read(chain))[0]


@pytest.mark.parametrize(
    "expected, readouts",
    [
        ("do not whiten", [("knn", -0.06, -0.011)]),
        ("whiten", [("knn", 0.011, 0.06)]),
        ("cannot tell", [("knn", -0.06, 0.0)]),
        ("cannot tell", [("knn", -0.001, 0.06)]),
        ("no difference", [("knn", 0.0, 0.0)]),
        ("cannot tell", [("knn", 0.01, 0.06), ("probe", -0.06, -0.01)]),
        ("whiten", [("knn", 0.01, 0.06), ("probe", -0.06, 0.01)]),
        ("cannot tell", [("knn", -0.01, 0.06), ("probe", -0.06, -0.01)]),
        ("do not whiten", [("ndcg_cosine", -0.06, -0.01)]),
    ],
)
def test_a_verdict_follows_its_intervals(expected: str, readouts: list[tuple[str, float, float]]) -> None:
    assert advice(*(changed(*one) for one in readouts)) == expected


def test_the_verdict_of_the_held_back_rows_names_another_one_of_the_rows_shown() -> None:
    found = {"knn": changed("knn", -0.02, 0.012, 30)}
    advice, reason = sentences.held_back(CLASSIFIER, "whiten", found, WHITEN)
    assert advice == "cannot tell" and reason == (
        "30 held-back rows: k-NN accuracy changes by −0.4 points (−2.0 to +1.2). The rows shown gave another verdict: whiten."
    )
    assert "another verdict" not in sentences.held_back(CLASSIFIER, "cannot tell", found, WHITEN)[1]
    none = sentences.held_back(CLASSIFIER, "whiten", {}, WHITEN)
    assert none == ("cannot tell", "The held-back rows have too few labels.")


def test_texts_wait_for_an_encoder_and_are_not_asked_for_again(open_page: OpenPage) -> None:
    key = vectors.keep(vectors.from_texts([f"The cat number {row} sleeps." for row in range(30)]))
    page = opened(open_page, key)
    assert errors(page) == [] and page.selectbox(key="whatif_model").value is None
    assert "| IsoScore |" not in texts(page) and not any("Stop" in button.label for button in page.button)
    assert "whatif_model" not in page.query_params


def test_labels_that_cannot_be_judged_are_not_asked_for_again(open_page: OpenPage) -> None:
    n = 60
    ids = [f"r{row}" for row in range(n)]
    groups = ["query"] * 12 + ["document"] * (n - 12)
    columns = pd.DataFrame({"id": ids, "group": groups, "label": ["a", "b"] * (n // 2)})
    pairs = pd.DataFrame({"left": ids[:12], "right": ids[12:24], "score": [1.0] * 12})
    key = vectors.keep(VectorSet(RNG.normal(size=(n, 8)), columns, pairs, "relevance", name="made"))
    page = opened(open_page, key, chain="zca:strength=0.5")
    assert errors(page) == [] and "Classifier: cannot tell." in texts(page) and "needs labels" not in texts(page)
    full = WhatIf(divide(vectors.load(key))).full(WHITEN)
    found = {one.readout.slug: one for one in full.comparisons}
    assert f"Search: {sentences.verdict(SEARCH, found, WHITEN)[0]}." in texts(page)


Ends = tuple[float, float] | tuple[()]


def answer(isoscore: float | None, mean_cosine: float = 0.5, **told: Any) -> Answer:
    isotropy = Isotropy(isoscore, np.tile([-0.1, 0.1], 50) * (isoscore or 0), 100)
    return Answer(100, 4, {"isoscore": isoscore, "mean_cosine": mean_cosine}, isotropy=isotropy, **told)


def full(**changes: Ends | None) -> Full:
    """A run's, with the intervals of its heads; None if undefined, () if only the interval is missing."""
    made = {
        slug: Difference(0.1 if ends == () else None, None, None, 100)
        if not ends
        else Difference(sum(ends) / 2, *ends, 100)
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
    assert "more isotropic (IsoScore 0.1 → 0.3, 3 times; 95 % interval 2.99 to 3.01)" in sentences.isotropy(
        answer(0.1), answer(0.3)
    )
    assert "less isotropic" in sentences.isotropy(answer(0.3), answer(0.1))
    assert "about as isotropic" in sentences.isotropy(answer(0.3), answer(0.302))
    assert "undefined" in sentences.isotropy(answer(None), answer(0.1))
    alike = sentences.isotropy(answer(1e-9, 1 - 4e-8), answer(0.9))
    assert (
        "cannot be told apart: the mean cosine of two of them is 0.99999996" in alike and "more isotropic" not in alike
    )
    simplex = answer(0.9, notes=("ZCA whitening: any two of the 9 rows get the same cosine, −1/8",), simplex=True)
    assert sentences.isotropy(answer(0.1), simplex) == "ZCA whitening: any two of the 9 rows get the same cosine, −1/8."
    assert "is 0.99997" in sentences.caveats(answer(1e-9, 0.99997), answer(0.9))[0]
    dead = sentences.caveats(answer(0.1, dead=[3, 11]), answer(0.3, dead=[3, 11], notes=("drops 2",)))
    assert dead == ["Drops 2.", "Dead dimensions (they do not vary): 3, 11 after the transforms as before."]
    few = {"isoscore_unbiased": "it cannot be estimated from 7 rows", "other": "no"}
    assert sentences.caveats(answer(0.1), answer(0.3, reasons=few)) == [
        "IsoScore, unbiased: it cannot be estimated from 7 rows."
    ]
    assert sentences.change(0.0242, 0.025022) == "−0.0008" and sentences.change(0.522, 0.4945) == "+0.028"


def test_a_map_is_of_a_sample_and_escapes_user_input() -> None:
    places = np.random.default_rng(0).normal(size=(4000, 2)).astype(np.float32)
    labels, texts = np.arange(4000) % 2, ["<script>" + "x" * 200] * 4000
    spec = json.loads(drawing._map(places, (0.5, 0.25), labels, ["<b>no", "yes"], "key", texts).spec)
    assert {trace["name"] for trace in spec["data"]} == {"&lt;b&gt;no", "yes"}
    assert {trace["type"] for trace in spec["data"]} == {"scattergl"}
    shown = [text for trace in spec["data"] for text in trace["text"]]
    assert len(shown) == drawing.DRAWN and shown[0].startswith("&lt;script&gt;") and len(shown[0]) < 120
    assert spec["layout"]["xaxis"]["title"]["text"] == "component 1 (50 % of the variance)"
    numbers = drawing._map(places[:50], (0.5, 0.25), np.arange(50) / 2, [], "other", texts)
    assert numbers.basic and json.loads(numbers.spec)["data"][0]["marker"]["coloraxis"] == "coloraxis"
