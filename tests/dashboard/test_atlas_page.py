"""Atlas: full at first sight, one corpus at a time, records of one's own beside the bundled ones, files that hold what the table shows."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

from dashboard.atlas import figures
from isoviz.atlas import Record, records
from isoviz.home import home
from tests.dashboard.conftest import Offered, OpenPage
from tests.dashboard.reading import drawn, errors, texts


@pytest.fixture
def bert() -> Record:
    return next(record for record in records.shipped() if record.encoder.name == "demo/tiny-bert")


def test_all_bundled_records_are_there_without_a_click(open_page: OpenPage, offered: Offered, bert: Record) -> None:
    page = open_page("atlas")
    assert errors(page) == [] and not page.warning
    assert bert.corpus.digest in texts(page)
    table = page.dataframe[0].value.set_index("Encoder")
    assert set(table.index) == {record.encoder.name for record in records.shipped()}
    shown = table.loc["demo/tiny-bert"]
    assert shown["Noise floor (99 %)"] == bert.headline.noise.cosine and shown["AUC"] == bert.headline.auc[0]
    assert shown["Explore"] == "explore?explore_model=demo/tiny-bert"
    assert shown["IsoScore, unbiased"] == bert.headline.measures["isoscore_unbiased"]
    elsewhere = table[~table.index.str.startswith("demo/")]
    assert len(elsewhere) and elsewhere["Explore"].isna().all(), "not on this machine"
    floors, layers = drawn(page)
    assert len(floors["data"][0]["y"]) == len(records.shipped()) == len(layers["data"])
    csv = pd.read_csv(io.BytesIO(offered["isoviz-atlas-demo-everyday.csv"]()))
    assert csv["noise_floor"].tolist() == table["Noise floor (99 %)"].tolist()
    as_json = json.loads(offered["isoviz-atlas-demo-everyday.json"]())
    assert bert in [Record.model_validate(record) for record in as_json]


def test_encoders_and_layers_are_chosen_by_the_address(open_page: OpenPage, bert: Record) -> None:
    page = open_page("atlas", atlas_encoders="demo/tiny-bert", atlas_rows="every layer", atlas_measure="AUC")
    table = page.dataframe[0].value
    assert table["Layer"].tolist() == [0, 1, 2, 3, 4] and set(table["Encoder"]) == {"demo/tiny-bert"}
    floors, layers = drawn(page)
    assert len(floors["data"][0]["x"]) == 1
    assert [line["y"] for line in layers["data"]] == [[layer.auc[0] for layer in bert.layers]]
    assert layers["data"][0]["x"] == [0, 0.25, 0.5, 0.75, 1]


def test_own_records_of_another_corpus_are_kept_apart_and_a_broken_file_is_named(
    open_page: OpenPage, bert: Record
) -> None:
    digest = "0" * 32
    own = bert.model_copy(
        update={
            "corpus": bert.corpus.model_copy(update={"name": "mine_[x](y).csv", "digest": digest}),
            "encoder": bert.encoder.model_copy(update={"name": "lab/_mine_<b>"}),
        }
    )
    records.write(own, home() / "atlas")
    (home() / "atlas" / "bad.json").write_text("{}")
    page = open_page("atlas")
    assert errors(page) == [] and ["bad" in warning.value for warning in page.warning] == [True]
    assert len(page.dataframe[0].value) == len(records.shipped())
    page = open_page("atlas", atlas_corpus="mine_[x](y).csv (00000000)")
    assert page.dataframe[0].value["Encoder"].tolist() == ["lab/_mine_<b>"]
    assert drawn(page)[0]["data"][0]["y"] == ["_mine_&lt;b&gt;"]


def test_two_records_of_one_encoder_have_two_labels(open_page: OpenPage, bert: Record) -> None:
    other = bert.model_copy(update={"encoder": bert.encoder.model_copy(update={"fingerprint": "f" * 16})})
    records.write(other, home() / "atlas")
    labels = drawn(open_page("atlas", atlas_encoders="demo/tiny-bert"))[0]["data"][0]["y"]
    assert len(set(labels)) == 2 and all(label.startswith("tiny-bert, mean") for label in labels)


def test_figures_draw_intervals_and_only_thresholds_that_exist() -> None:
    rows = pd.DataFrame(
        {
            "label": ["a", "b"],
            "noise_floor": [0.25, -0.125],
            "noise_floor_low": [0.125, -0.25],
            "noise_floor_high": [0.5, 0.0],
            "threshold": [None, 0.75],
        }
    )
    floor, threshold = figures.floors(rows).data
    assert (list(floor.error_x.array), list(floor.error_x.arrayminus)) == ([0.25, 0.125], [0.125, 0.125])
    assert (list(threshold.y), list(threshold.x)) == (["b"], [0.75])
