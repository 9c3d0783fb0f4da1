"""Models that are read only, against single rows without padding through the library itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
import transformers

from isoviz.errors import InputError
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.models.checkpoint import output_embeddings
from isoviz.models.extract import layer_views
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
