"""Models that are read only, against single rows without padding through the library itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import transformers

from isoviz.errors import InputError, ModelError
from isoviz.models import encoder, sources
from isoviz.models.adapter import load_tokenizer
from isoviz.models.checkpoint import output_embeddings
from isoviz.models.extract import layer_views
from isoviz.models.profile import profile
from isoviz.models.views import poolings_of
from tests import tiny
from tests.models import readers
from tests.tiny import embed

GENERATOR = np.random.default_rng(5)
TEXTS = [" ".join(GENERATOR.choice(tiny.WORDS, size=GENERATOR.integers(1, 12))) for _ in range(17)]
CLOSE = {"rtol": 0, "atol": 1e-5}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`made("GPT2", "LMHeadModel", …)`: the source of a small model, made once."""
    folders = {}

    def one(name, head=None, **more):
        key = json.dumps([name, head, more], sort_keys=True)
        if key not in folders:
            folders[key] = readers.make(name, tmp_path_factory.mktemp(name), head, **more)
        return sources.resolve(str(folders[key]))

    return one


@pytest.mark.parametrize("name", ["GPT2", "OPT", "T5"])
def test_padding_and_the_batch_change_nothing(made, name):
    alone, together = (layer_views(made(name), [TEXTS], batch_size=size) for size in (1, 17))
    for key, cloud in alone.clouds.items():
        np.testing.assert_allclose(together.clouds[key], cloud, **CLOSE)


def test_a_decoder_is_profiled_with_its_last_token_first(made):
    entries = profile(layer_views(made("GPT2"), [TEXTS]), split="validation")
    assert [entry.pooling for entry in entries] == [pooling for pooling in ("last", "mean", "tokens") for _ in range(3)]
    assert (entries[2].cloud, entries[2].n, entries[2].d) == ("layer_2", 17, 16)
    json.dumps([entry.model_dump(mode="json") for entry in entries], allow_nan=False)


def test_what_a_decoder_lacks_is_reported(made):
    source = made("GPT2")
    for pooling in ("cls", "head"):
        with pytest.raises(InputError, match=rf"some of last, mean, tokens, the poolings of .* \(got {pooling}\)"):
            embed(source, [TEXTS], pooling=pooling)
    with pytest.raises(InputError, match="some of mean, tokens"):
        embed(made("T5"), [TEXTS], pooling="last")


def test_empty_texts_and_pairs_of_a_tokenizer_that_adds_nothing(made):
    source = made("GPT2")
    views = layer_views(source, [["w1 w2", "", "w3"]])
    assert views.lengths.tolist() == [2, 1, 1]
    assert "1 of 3 rows have no token at all" in views.warnings[0]
    end = embed(source, [[readers.END]], pooling="last")
    np.testing.assert_allclose(views.points(2, "last")[1], end[0], **CLOSE)
    pairs = layer_views(source, [["w1"], ["w2"]])
    assert pairs.lengths.tolist() == [2] and "no mark between the two texts" in pairs.warnings[0]


def test_longest_input_is_cut_at_what_the_model_can_read(made):
    long = [" ".join(["w1"] * 100)]
    for name, tokens in (("GPT2", 64), ("Bart", 64), ("MPNet", 64)):
        assert sources.longest_input(made(name)) == tokens
        assert layer_views(made(name), [long], max_length=None).lengths.tolist() == [tokens]


def test_weights_that_the_checkpoint_lacks_are_counted(made, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = readers.make("Llama", tmp_path / "llama")
    weights = load_file(folder / "model.safetensors")
    save_file(
        {n: t for n, t in weights.items() if "layers.1.mlp" not in n}, folder / "model.safetensors", {"format": "pt"}
    )
    (note,) = layer_views(sources.resolve(str(folder)), [TEXTS], allow_random=True).warnings
    assert note.startswith("random weights: 3 encoder weights are missing from the checkpoint (layers.1.mlp.down_proj")
    assert layer_views(made("Llama"), [TEXTS]).warnings == ()


def test_a_family_that_transformers_does_not_know_ends_in_one_line(made, tmp_path):
    folder = readers.make("GPT2", tmp_path / "x")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "model_type": "no_such_family"}))
    with pytest.raises(ModelError, match="cannot be loaded: .*no_such_family") as caught:
        encoder.load(sources.resolve(str(folder)))
    assert "\n" not in str(caught.value) and caught.value.field == "model"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    ("name", "head"),
    [("GPT2", "LMHeadModel"), ("Llama", "ForCausalLM"), ("OPT", "ForCausalLM"), ("GPTNeoX", "ForCausalLM"),
     ("T5", "ForConditionalGeneration"), ("Bart", "ForConditionalGeneration"), ("MPNet", "ForMaskedLM"),
     *((family, "ForMaskedLM") for family in ("Bert", "Albert", "Roberta", "DistilBert"))],
)  # fmt: skip
def test_output_embeddings_are_the_librarys_own(made, tiny_models, tmp_path, name, head, tied):
    if name in readers.SIZES:
        bare, source = made(name), made(name, head, tie_word_embeddings=tied)
    else:
        bare = sources.resolve(str(tiny_models(name.lower())))
        config = transformers.AutoConfig.from_pretrained(bare.location, tie_word_embeddings=tied)
        getattr(transformers, name + head)(config).save_pretrained(tmp_path)
        load_tokenizer(bare).save_pretrained(tmp_path)
        source = sources.resolve(str(tmp_path))
    network = getattr(transformers, name + head).from_pretrained(source.location)
    assert np.array_equal(output_embeddings(source), network.get_output_embeddings().weight.detach().numpy())
    assert output_embeddings(bare) is None  # without the head


@pytest.mark.parametrize(
    ("config", "poolings"),
    [
        ({"model_type": "bert"}, ("cls", "mean", "tokens", "head")),
        ({"model_type": "bert", "architectures": ["BertLMHeadModel"], "is_decoder": True}, ("last", "mean", "tokens")),
        ({"model_type": "bert", "architectures": ["BertForMaskedLM"]}, ("cls", "mean", "tokens", "head")),
        ({"model_type": "somebody-new", "architectures": ["SomebodyNewForCausalLM"]}, ("last", "mean", "tokens")),
        ({"model_type": "somebody-new"}, ("cls", "mean", "tokens")),
        ({"model_type": "somebody-new", "is_encoder_decoder": True}, ("mean", "tokens")),
    ],
)
def test_poolings_follow_from_the_configuration(config, poolings):
    assert poolings_of(config) == poolings
