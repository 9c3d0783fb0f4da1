"""The atlas: every record that ships or is contributed, and what recording, reading, writing and merging refuse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isoviz import atlas, demo
from isoviz.atlas import Record, corpora, records
from isoviz.errors import InputError
from isoviz.metrics.measuring import applicable
from tests.tiny import WORDS, TinyModels

SHIPPED = sorted(demo.ATLAS.iterdir())
CORE = {"isoscore", "isoscore_unbiased", "ev_1", "mean_cosine", "effective_rank"}
"""Measures of every record; those that are younger are missing in older ones."""
LICENCES = ("Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-4.0", "CC-BY-SA-4.0")
"""Under which numbers about a model may be published here; a contribution adds its own."""


@pytest.fixture(scope="module")
def made() -> Record:
    return records.read(demo.ATLAS / next(path.name for path in SHIPPED if path.name.startswith("demo-tiny-bert")))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.name)
def test_a_record_that_ships_follows_the_rules_of_contribution(path: Path) -> None:
    record = records.read(path)
    assert path.name == record.file_name and path.read_text(encoding="utf-8") == record.as_text()
    assert path.stat().st_size < 200_000
    everyday = corpora.read(corpora.EVERYDAY)
    assert (record.corpus.name, record.corpus.digest) == (corpora.EVERYDAY, everyday.digest), "another corpus"
    assert (record.corpus.texts, record.corpus.pairs) == (len(everyday.texts), len(everyday.pairs))
    assert record.encoder.licence in LICENCES
    assert record.encoder.weights or record.encoder.revision, "where do its weights come from?"
    bundled = record.encoder.name in demo.bundled_models()
    assert bundled or record.encoder.name.count("/") == 1, "neither bundled nor a hub id"
    means = [layer.layer for layer in record.layers if layer.pooling == "mean"]
    assert means == list(range(record.headline.layer + 1)), "a layer is missing"
    known = {one.slug for one in applicable("rows") if one.gives != "curve" and not one.inputs}
    assert all(CORE <= set(layer.measures) <= known for layer in record.layers)
    assert {"isoviz", "torch", "transformers"} <= set(record.made_with)
    related = record.ruler.related
    assert related is not None and (related.share, related.wanted, related.pairs) == (0.5, 0.9, record.corpus.pairs)
    assert not record.ruler.sampled and record.ruler.compared == record.corpus.pairs * (record.corpus.pairs - 1)


def test_every_bundled_model_has_a_record_of_its_weights_and_no_two_have_the_same_key() -> None:
    from isoviz.models import sources

    prints = {record.encoder.name: record.encoder.fingerprint for record in records.shipped()}
    for name in demo.bundled_models():
        assert prints[name] == sources.resolve(name).fingerprint, "record it again: docs/atlas.md"
    assert len(SHIPPED) == len({record.key for record in records.shipped()})


def test_recording_gives_the_record_that_ships(made: Record) -> None:
    again = atlas.record("demo/tiny-bert", corpora.read(corpora.EVERYDAY))
    assert again.file_name == made.file_name and again.ruler.protocol == made.ruler.protocol
    for now, then in zip(again.layers, made.layers, strict=True):
        assert now.auc == pytest.approx(then.auc, abs=2e-3) and now.separates == then.separates
        for level, before in zip(now.floor, then.floor, strict=True):
            assert dict(level) == pytest.approx(dict(before), abs=2e-3)
        for slug in CORE:
            assert now.measures[slug] == pytest.approx(then.measures[slug], rel=2e-3)


def pairs(count: int = 12) -> list[tuple[str, str]]:
    generator = np.random.default_rng(0)
    return [tuple(" ".join(generator.choice(WORDS, 6)) for _ in range(2)) for _ in range(count)]  # type: ignore[misc]


def test_a_record_of_ones_own_corpus_and_encoder(tiny_models: TinyModels) -> None:
    corpus = corpora.of_pairs("mine.csv", pairs(), "corpora")
    record = atlas.record(str(tiny_models("bert")), corpus, name="lab/encoder", licence="MIT", pooling="cls")
    assert [(layer.layer, layer.pooling) for layer in record.layers] == [
        (0, "mean"),
        (1, "mean"),
        (2, "mean"),
        (2, "cls"),
    ]
    assert record.encoder.name == "lab/encoder" and record.protocol == "cls" and record.corpus.texts == 24
    assert record.table()[-1]["noise_floor"] == record.ruler.floor[2].cosine == record.headline.noise.cosine
    assert Record.model_validate_json(record.as_text()) == record
    with pytest.raises(InputError) as refused:
        atlas.record(str(tiny_models("bert")), corpus, pooling="sentence")
    assert refused.value.field == "pooling"


def test_the_hash_of_a_corpus_needs_nothing_but_its_file() -> None:
    table = pd.read_parquet(demo.rows_dir(corpora.EVERYDAY) / "pairs.parquet")
    lines = [f"{row.sentence1}\t{row.sentence2}\n" for row in table.itertuples() if row.label]
    corpus = corpora.read(corpora.EVERYDAY)
    assert corpus.digest == hashlib.sha256("".join(lines).encode()).hexdigest()[:32]
    places = corpus.relation
    assert [(corpus.texts[a], corpus.texts[b]) for a, b in places] == list(corpus.pairs)
    assert not set(places[:, 0]) & set(places[:, 1]), "a text is on both sides"


def test_a_corpus_is_a_table_of_related_pairs(tmp_path: Path) -> None:
    rows = pd.DataFrame(pairs(13), columns=["sentence1", "sentence2"]).assign(label=[0] + 12 * [1])
    rows.to_csv(tmp_path / "mine.csv", index=False)
    corpus = corpora.read(str(tmp_path / "mine.csv"))
    assert (corpus.name, len(corpus.pairs), corpus.pairs[0]) == ("mine.csv", 12, tuple(rows.iloc[1, :2]))
    rows.head(6).to_csv(tmp_path / "few.csv", index=False)
    rows.rename(columns={"sentence2": "b"}).to_csv(tmp_path / "other.csv", index=False)
    for name in ("few.csv", "other.csv", "none.csv"):
        with pytest.raises(InputError) as refused:
            corpora.read(str(tmp_path / name))
        assert refused.value.field == "corpora" and name in str(refused.value)


Change = Callable[[dict[str, Any]], Any]
FAULTS: dict[str, Change] = {
    "another version": lambda record: record.update(version=2),
    "an unknown field": lambda record: record.update(score=1),
    "a fingerprint of another form": lambda record: record["encoder"].update(fingerprint="main"),
    "not a number": lambda record: record["layers"][0]["measures"].update(isoscore=float("nan")),
    "a pooling that is none": lambda record: record.update(protocol="tokens"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_reading_refuses(fault: str, made: Record, tmp_path: Path) -> None:
    document = made.model_dump(mode="json")
    FAULTS[fault](document)
    (tmp_path / "bad.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError) as refused:
        records.read(tmp_path / "bad.json")
    assert refused.value.field == "records" and "bad.json" in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe", b"[" * 100_000])
def test_reading_refuses_what_is_no_record(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    with pytest.raises(InputError) as refused:
        records.read(tmp_path / "bad.json")
    assert refused.value.field == "records"


def moved(record: Record, by: float) -> Record:
    document = record.model_dump()
    document["layers"][0]["measures"]["uniformity"] += by
    return Record.model_validate(document)


def test_a_record_is_written_under_its_name(made: Record, tmp_path: Path) -> None:
    path = records.write(made, tmp_path / "new" / "folder")
    assert records.write(made, path.parent) == path and records.in_folder(path.parent) == [made]
    changed = moved(made, 0.1)
    assert records.write(changed, path.parent) == path and records.read(path) == changed, "recorded again"
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        records.write(made, tmp_path / "file")


def test_records_of_ones_own_are_found_and_replace_bundled_ones(
    made: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path))
    assert records.on_this_server() == (list(records.shipped()), [])
    own = moved(made, 0.1)
    records.write(own, tmp_path / "atlas")
    (tmp_path / "atlas" / "bad.json").write_text("{")
    found, problems = records.on_this_server()
    assert len(found) == len(SHIPPED) and own in found and made not in found
    assert len(problems) == 1 and "bad.json" in problems[0]
