"""Layer and token views against plain loops: one row at a time, no padding, one pooling written out by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import transformers

from isoviz import metrics
from isoviz.errors import InputError, ModelError
from isoviz.metrics.measuring import notes_of
from isoviz.metrics.protocol import QUICK
from isoviz.models import extract, sources
from isoviz.models.adapter import load_network, load_tokenizer
from isoviz.models.extract import layer_views
from isoviz.models.profile import completed, profile
from tests import tiny
from tests.models import readers
from tests.tiny import embed

GENERATOR = np.random.default_rng(4)
ONE = [" ".join(GENERATOR.choice(tiny.WORDS, size=GENERATOR.integers(1, 12))) for _ in range(23)]
TWO = [" ".join(GENERATOR.choice(tiny.WORDS, size=GENERATOR.integers(1, 6))) for _ in range(23)]


POOLINGS = {
    **dict.fromkeys(tiny.FAMILIES, frozenset({"cls", "mean", "head"})),
    **dict.fromkeys(readers.DECODERS, frozenset({"last", "mean"})),
    **dict.fromkeys(readers.ENCODER_DECODERS, frozenset({"mean"})),
    "MPNet": frozenset({"cls", "mean", "head"}),
}
"""What a family offers beside its tokens."""


def by_hand(source, columns):
    """layer → list of (tokens, d) per row; each row alone, through the library itself."""
    network = transformers.AutoModel.from_pretrained(source.location).eval()
    network = network.get_encoder() if network.config.is_encoder_decoder else network
    tokenizer, layers = load_tokenizer(source), {0: [], 1: [], 2: []}
    for row in zip(*columns, strict=True):
        with torch.no_grad():
            states = network(**tokenizer(*row, return_tensors="pt"), output_hidden_states=True).hidden_states
        for layer, rows in layers.items():
            rows.append(states[layer][0].numpy())
    return layers


def heads_by_hand(family, source, columns):
    network, tokenizer, heads = load_network(source, 2, seed=0).eval(), load_tokenizer(source), []
    for row in zip(*columns, strict=True):
        with torch.no_grad():
            encoded = network.base_model(**tokenizer(*row, return_tensors="pt"))
            first = encoded.last_hidden_state[0, 0]
            if family in ("bert", "albert"):
                heads.append(encoded.pooler_output[0])
            elif family == "distilbert":
                heads.append(torch.relu(network.pre_classifier(first)))
            else:
                heads.append(torch.tanh(network.classifier.dense(first)))
    return torch.stack(heads)


@pytest.mark.parametrize("columns", [[ONE], [ONE, TWO]], ids=["single", "pair"])
@pytest.mark.parametrize("family", POOLINGS)
def test_every_layer_and_pooling_equals_single_rows_without_padding(tiny_models, tmp_path, family, columns):
    folder = tiny_models(family) if family in tiny.FAMILIES else readers.make(family, tmp_path)
    source, close = sources.resolve(str(folder)), {"rtol": 0, "atol": 1e-5}
    views = layer_views(source, columns, batch_size=7, max_tokens_per_layer=None)
    assert (views.rows, views.depth, views.truncated) == (23, 2, 0)
    assert {pooling for _, pooling in views.clouds} == POOLINGS[family]
    assert all(cloud.dtype == np.float32 for cloud in views.clouds.values())
    for layer, rows in by_hand(source, columns).items():
        expected = {
            "cls": [row[0] for row in rows],
            "last": [row[-1] for row in rows],
            "mean": [row.mean(axis=0) for row in rows],
            "tokens": np.concatenate(rows),
        }
        for pooling in POOLINGS[family] - {"head"} | {"tokens"}:
            np.testing.assert_allclose(views.points(layer, pooling), expected[pooling], **close)
        assert views.tokens[layer].groups.tolist() == [i for i, row in enumerate(rows) for _ in row]
        assert views.lengths.tolist() == [len(row) for row in rows]
    if "head" in POOLINGS[family]:
        np.testing.assert_allclose(views.points(2, "head"), heads_by_hand(family, source, columns), **close)
    noted = any("its decoder takes no part" in note for note in views.warnings)
    assert noted == (family in readers.ENCODER_DECODERS)


def test_the_token_sample_is_seeded_and_its_groups_are_the_rows(tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    everything = layer_views(source, [ONE], max_tokens_per_layer=None).tokens[1]
    first, again = (layer_views(source, [ONE], max_tokens_per_layer=40, seed=3) for _ in range(2))
    other = layer_views(source, [ONE], max_tokens_per_layer=40, seed=4)
    assert np.array_equal(first.points(1, "tokens"), again.points(1, "tokens"))
    assert not np.array_equal(first.points(1, "tokens"), other.points(1, "tokens"))
    assert first.points(1, "tokens").shape == (40, 16)
    assert first.tokens[1].stream.count == len(everything.sample) > 40
    chosen = [int(np.flatnonzero((everything.sample == point).all(axis=1))[0]) for point in first.points(1, "tokens")]
    assert chosen == sorted(set(chosen))  # in the order of the text, none twice
    assert everything.groups[chosen].tolist() == first.tokens[1].groups.tolist()
    for row, point in enumerate(first.tokens[1].one_per_row):
        at = np.flatnonzero((everything.sample == point).all(axis=1))
        assert row in everything.groups[at]


def test_long_rows_are_cut_counted_and_reported(tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    texts = ["w1 w2 w3 w4", "w1", "w1 w2 w3", "w1 w2"]
    views = layer_views(source, [texts], max_length=5)  # [CLS] w1 w2 w3 [SEP] just fits
    assert views.lengths.tolist() == [5, 3, 5, 4]
    assert views.truncated == 1
    assert "1 of 4 rows are longer than 5 tokens" in views.warnings[0]
    long = layer_views(source, [[" ".join(["w1"] * 100)]], max_length=None)
    assert (long.max_length, long.truncated, long.lengths.tolist()) == (64, 1, [64])


def test_diverged_weights_are_reported_with_their_layer(tiny_models, tmp_path):
    from transformers import BertModel

    network = BertModel.from_pretrained(tiny_models("bert"))
    with torch.no_grad():
        network.encoder.layer[1].output.dense.weight[0, 0] = torch.nan
    network.save_pretrained(tmp_path)
    load_tokenizer(sources.resolve(str(tiny_models("bert")))).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"layer 2 gives numbers that are NaN or infinite") as caught:
        layer_views(sources.resolve(str(tmp_path)), [["w1 w2", "w3"]])
    assert caught.value.field == "model"


def test_a_pooler_missing_from_the_checkpoint_is_reported(tiny_models, tmp_path):
    from transformers import BertModel

    trained = sources.resolve(str(tiny_models("bert")))
    assert layer_views(trained, [ONE]).warnings == ()
    BertModel.from_pretrained(trained.location, add_pooling_layer=False).save_pretrained(tmp_path)
    load_tokenizer(trained).save_pretrained(tmp_path)
    source = sources.resolve(str(tmp_path))
    assert "the pooler of this checkpoint is newly initialised" in layer_views(source, [ONE]).warnings[0]
    assert layer_views(source, [ONE], poolings=("cls", "tokens")).warnings == ()
    for family, part in (("roberta", "dense layer"), ("distilbert", "map before the classifier")):
        assert part in layer_views(sources.resolve(str(tiny_models(family))), [ONE]).warnings[0]


def test_invalid_requests(tiny_models, monkeypatch):
    source = sources.resolve(str(tiny_models("bert")))
    for options, message in [
        ({"layers": [3]}, r"layers 0 \(embeddings\) to 2 \(got 3\)"),
        ({"layers": [-1]}, "got -1"),
        ({"layers": [1], "poolings": ("head",)}, r"last layer \(2\) only \(got 1\)"),
        ({"poolings": ("sum",)}, "expected some of sentence, cls, last, mean, tokens, head"),
        ({"poolings": ("last",)}, "expected some of cls, mean, tokens, head, the poolings of"),
        ({"poolings": ()}, "got none"),
        ({"batch_size": 0}, "batch_size: must be at least 1"),
        ({"max_length": 2}, "max_length: must be at least 3"),
    ]:
        with pytest.raises(InputError, match=message):
            layer_views(source, [ONE], **options)
    for texts, message in [([[]], "no rows"), ([], "one or two columns"), ([ONE, ONE[1:]], "23, 22")]:
        with pytest.raises(InputError, match=message):
            layer_views(source, texts)
    with pytest.raises(InputError, match=r"no cloud of layer 1, cls \(there are: 2 cls\)"):
        layer_views(source, [ONE], layers="last", poolings=("cls",)).points(1, "cls")
    monkeypatch.setattr(extract, "MEMORY_LIMIT", 20_000)
    with pytest.raises(InputError, match="take fewer rows, layers or poolings"):
        layer_views(source, [ONE])
    assert layer_views(source, [ONE], layers="last", poolings=("cls",)).rows == 23


def test_profile_names_and_measures_every_cloud(tiny_models):
    source = sources.resolve(str(tiny_models("bert")))
    views = layer_views(source, [ONE])
    progress = []
    records = profile(views, split="validation", most=50, progress=lambda *what: progress.append(what[:2]))
    assert [(record.cloud, record.pooling) for record in records] == [
        *((f"layer_{layer}", pooling) for pooling in ("cls", "mean", "tokens") for layer in range(3)),
        ("head", "head"),
    ]
    assert progress == [(done, 10) for done in range(1, 11)]
    for one in records:
        points = views.points(one.layer, one.pooling)
        assert (one.split, one.d) == ("validation", 16)
        if one.pooling == "tokens":
            assert one.n == int(views.lengths.sum())
            assert one.points_of("isoscore_unbiased") == 23
            unbiased = metrics.isoscore_unbiased(views.tokens[one.layer].one_per_row)
            assert one.number("isoscore_unbiased") == pytest.approx(unbiased)
            assert one.points_of("twonn") == 50
            assert any("sample of 50 of" in note for note in notes_of(one))
        elif (one.cloud, one.pooling) != ("layer_0", "cls"):
            assert one.n == one.points_of("twonn") == 23
            for name in ("isoscore", "isoscore_unbiased", "twonn", "mean_cosine"):
                assert one.number(name) == pytest.approx(float(getattr(metrics, name)(points))), name
            correlation = metrics.abs_correlation(points)
            off = correlation[~np.eye(16, dtype=bool)].mean()
            assert one.number("abs_correlation") == pytest.approx(off, rel=1e-6)
        if one.number("isoscore") is not None:
            tokens = one.pooling == "tokens"
            cloud = embed(source, [ONE], pooling="tokens", layer=one.layer) if tokens else points
            std = cloud.std(axis=0, dtype=np.float64)
            assert one.dimensions.sigma == pytest.approx((std.min(), np.median(std), std.max()), rel=1e-4)
            assert one.dimensions.mean_norm == pytest.approx(np.linalg.norm(cloud.mean(axis=0)), rel=1e-4)
            assert list(one.dimensions.outliers) == list(metrics.outlier_dimensions(cloud))
            low, high = one.interval("isoscore_unbiased")
            assert low < one.number("isoscore_unbiased") < high
    quick = profile(views, split="validation", most=50, costs=QUICK)
    assert [completed(one, views, most=50) for one in quick] == records
    first = records[0]  # every text begins with the same token at the same place: one point, 23 times
    assert first.number("isoscore") is None
    assert "twonn leaves out 22 copies" in notes_of(first)
    assert any("all points are equal" in note for note in notes_of(first))
