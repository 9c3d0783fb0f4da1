"""Every family of text models that transformers can build small learns, is saved and read again; or it is refused with a reason."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

from isoviz.errors import ModelError
from isoviz.methods import get
from isoviz.models import families, folding, pooled, sources
from isoviz.models.adapter import HeadedModel, class_for, load_network
from isoviz.models.hooks import Hooks
from tests.models import readers

SMALL: dict[int, tuple[str, ...]] = {
    16: ("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embedding_size", "true_hidden_size", "word_embed_proj_dim",
         "bottleneck_size", "intra_bottleneck_size", "hidden_size_per_layer_input", "input_embedding_size", "entity_emb_size"),
    2: ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "encoder_layers", "decoder_layers", "num_attention_heads",
        "num_heads", "n_head", "n_heads", "encoder_attention_heads", "decoder_attention_heads", "num_decoder_layers",
        "num_key_value_heads", "num_local_experts", "num_experts", "n_routed_experts", "num_experts_per_tok"),
    8: ("head_dim", "d_kv", "d_head"),
    32: ("intermediate_size", "d_ff", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "d_inner", "n_inner",
         "moe_intermediate_size", "inner_dim", "ffn_hidden_size"),
    64: ("vocab_size", "entity_vocab_size", "vocab_size_per_layer_input", "max_xpath_tag_unit_embeddings"),
    66: ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len"),
    1: ("pad_token_id", "eos_token_id", "bos_token_id"),
}  # fmt: skip
MORE: dict[str, dict[str, Any]] = {
    "canine": {"downsampling_rate": 2, "num_hash_buckets": 64},
    "funnel": {"block_sizes": [1, 1], "num_decoder_layers": 1, "d_head": 8, "n_head": 2},
    "convbert": {"head_ratio": 1, "conv_kernel_size": 3},
    "xmod": {"default_language": "en_XX"}, "t5": {"decoder_start_token_id": 0},
    "gpt_neo": {"attention_types": [[["global"], 2]], "num_layers": 2},
    "gptj": {"rotary_dim": 4}, "codegen": {"n_head": 4, "rotary_dim": 4}, "mpt": {"n_heads": 2, "expansion_ratio": 2},
    "reformer": {"axial_pos_embds_dim": [8, 8], "axial_pos_shape": [8, 8]}, "esm": {"vocab_size": 64, "pad_token_id": 1},
    "gemma3_text": {"use_bidirectional_attention": True},
}  # fmt: skip
USED = {"albert", "bert", "big_bird", "camembert", "canine", "convbert", "data2vec-text", "deberta", "deberta-v2", "distilbert",
        "electra", "ernie", "esm", "eurobert", "flaubert", "fnet", "funnel", "gemma2", "gemma3_text", "gpt2", "gpt_neox", "gte",
        "jina_embeddings_v3", "llama", "longformer", "megatron-bert", "mistral", "mobilebert", "modernbert", "mpnet", "nomic_bert",
        "nystromformer", "opt", "phi3", "qwen2", "qwen3", "qwen3_moe", "rembert", "roberta", "roformer", "squeezebert", "xlm",
        "xlm-roberta", "xlm-roberta-xl", "xlnet", "xmod", "yoso"}  # fmt: skip
"""Families of which a refusal would be a fault."""
SLOW = {
    "falcon_h1": 19,
    "kimi_linear": 10,
    "gemma4_text": 7,
    "deepseek_v32": 1.3,
    "dots3_note_text": 1.3,
    "glm_moe_dsa": 1,
    "nemotron_h": 2,
}
"""Seconds that some take, because no size in their configuration makes them small or they compile: what they show, others show too."""
NOT_CAUSAL = {"imagegpt", "mra"}
"""imagegpt reads pixels; in mra's blocks of 32 eight tokens seem not to see each other."""


def small(name: str) -> Any:
    """A configuration of two narrow layers, or None where a family has more conditions than these."""
    try:
        kind = transformers.CONFIG_MAPPING[name]
        default = kind().to_dict()
        sizes: dict[str, Any] = {field: size for size, fields in SMALL.items() for field in fields}
        wanted = {
            field: sizes[field]
            for field in sizes
            if field in default and (isinstance(default[field], int) or sizes[field] == 1)
        }
        renamed = {own: sizes[field] for field, own in kind.attribute_map.items() if field in sizes and own in default}
        return kind(**{**wanted, **renamed, **MORE.get(name, {}), "num_labels": 2})
    except Exception:  # of any of hundreds of classes
        return None


def batch() -> dict[str, torch.Tensor]:
    ids = torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12], [13, 9, 14, 15, 1, 1, 1, 1]])
    return {"input_ids": ids, "attention_mask": (ids != 1).long()}


def text_families() -> Iterator[tuple[str, Any]]:
    for name in sorted(MODEL_MAPPING_NAMES):
        config = small(name)
        if config is not None and "classification" in families.heads(config.to_dict()):
            yield name, config


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["in use", "every"])
def test_every_family_learns_and_is_read_again_or_is_refused(tmp_path: Path, every: bool) -> None:
    learned, refused, faults = set(), {}, {}
    readers.write_tokenizer(tmp_path, encoder=True, padded=True)
    for name, config in text_families():
        if name in SLOW or not (every or name in USED):
            continue
        try:
            body = pooled.classifier_for(config)
        except ModelError as error:
            refused[name] = error
            continue
        torch.manual_seed(0)
        try:
            make = class_for(config, "classification", 2)[0]
            network = getattr(make, "from_config", make)(config)
        except Exception:  # the small configuration is not valid
            continue
        try:
            causal = is_causal(network)
            learns(network, tmp_path)
            assert name in NOT_CAUSAL or causal == (families.architecture(config.to_dict()) == "decoder"), causal
            # transformers reads the encoder; of Funnel it sets the embedding of padding to zero, which this test had drawn at random
            if isinstance(network, body) and name != "funnel":
                again = transformers.AutoModel.from_pretrained(tmp_path).state_dict()
                assert all(torch.equal(tensor, again[key]) for key, tensor in network.base_model.state_dict().items())
            learned.add(name)
        except ModelError as error:
            refused[name] = error
        except Exception as error:  # of any of hundreds of families
            faults[name] = repr(error)
    assert not faults, faults
    assert learned >= USED, {name: refused.get(name) for name in USED - learned}
    assert len(learned) > 130 or not every
    assert all(error.field == "model" and "\n" not in str(error) for error in refused.values())


def is_causal(network: Any) -> bool:
    """Whether another last token leaves the vectors of the tokens before it as they are."""
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim > 1:  # large enough for attention to matter
                weight.normal_(
                    std=0.1 if network.config.model_type == "mobilebert" else 0.3
                )  # which has no layer norms
    ids = batch()["input_ids"][:1]
    model = HeadedModel(network, Hooks(), "classification").eval()
    with torch.no_grad():
        first, second = (
            model(each, torch.ones_like(each)).reps.last_hidden
            for each in (ids, torch.cat([ids[:, :-1], ids[:, :1]], dim=1))
        )
    return torch.allclose(first[:, :-1], second[:, :-1], atol=1e-5)


def learns(network: Any, folder: Path) -> None:
    """A step with IsoBN and dropout changes the encoder; saved and loaded, the network gives the same logits; padding changes nothing."""
    isobn = get("isobn")
    model = HeadedModel(network, isobn(isobn.Params()), "classification").train()
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    outputs = model(**batch(), labels=torch.tensor([0, 1]), penalise=True)
    outputs.loss.backward()
    optimiser.step()
    name = network.config.model_type
    head = {id(parameter) for parameter in model.output.parameters()}
    body = [key for key, weight in network.named_parameters() if id(weight) not in head]
    assert torch.isfinite(outputs.loss), name
    assert any(not torch.equal(before[key], network.get_parameter(key)) for key in body), name
    assert outputs.reps.last_hidden.shape == (2, 8, model.width), name
    assert all(hidden.shape == (2, 8, model.width) for hidden in outputs.reps.hidden_states), name
    assert len(outputs.reps.hidden_states) == model.num_layers, name
    model.eval()
    with torch.no_grad():
        expected = model(**batch()).logits
    folding.save(model, folder, ["no", "yes"])  # the method becomes part of the output layer
    read = load_network(sources.resolve(str(folder), "classification"), 2, seed=5)
    again = HeadedModel(read, Hooks(), "classification").eval()
    with torch.no_grad():
        torch.testing.assert_close(again(**batch()).logits, expected, atol=2e-5, rtol=1e-4, msg=name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("vit", "does not read texts alone"),
        ("bros", "its network fails on tokens alone"),
        ("marian", "an encoder-decoder"),
    ],
)
def test_a_refusal_says_why(tmp_path: Path, name: str, words: str) -> None:
    config = small(name)
    readers.write_tokenizer(tmp_path, encoder=True, padded=True)
    transformers.AutoModel.from_config(config).save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=words) as refused:
        source = sources.resolve(str(tmp_path), "classification")
        HeadedModel(load_network(source, 2, 0), Hooks(), "classification")
    assert refused.value.field == "model"
