"""Small models with tokenizers that put nothing around a text: decoders, encoder-decoders, and an encoder that no one fine-tunes here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests import tiny

END = "<|endoftext|>"
SIZES: dict[str, dict[str, Any]] = {
    "GPT2": {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "Llama": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "max_position_embeddings": 64},
    "OPT": {"hidden_size": 16, "ffn_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "word_embed_proj_dim": 16,
            "max_position_embeddings": 64},
    "GPTNeoX": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                "max_position_embeddings": 64},
    "Mistral": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
                "num_key_value_heads": 1, "max_position_embeddings": 64},
    "Qwen2": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "num_key_value_heads": 1, "max_position_embeddings": 64},
    "Qwen3": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "head_dim": 8,
              "num_key_value_heads": 1, "max_position_embeddings": 64},
    "T5": {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 2},
    "Bart": {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2,
             "decoder_attention_heads": 2, "encoder_ffn_dim": 32, "decoder_ffn_dim": 32, "max_position_embeddings": 64},
    "MPNet": {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
              "max_position_embeddings": 66},
}  # fmt: skip
DECODERS = ("GPT2", "Llama", "OPT", "GPTNeoX")
TRAINED = (*DECODERS, "Mistral", "Qwen2", "Qwen3")
"""Decoders that can be fine-tuned."""
ENCODER_DECODERS = ("T5", "Bart")


def make(name: str, folder: Path, head: str | None = None, **more: Any) -> Path:
    """`make("GPT2", folder)`: the bare model; `head="LMHeadModel"`: with that head. Random weights, a vocabulary of words.

    The tokenizer adds nothing to a text and has no token for padding; that of the encoder puts [CLS] and [SEP] around it.
    """
    import torch
    import transformers

    config = getattr(transformers, f"{name}Config")(
        vocab_size=64,
        pad_token_id=None if name in TRAINED else 1,
        bos_token_id=0,
        eos_token_id=0,
        **{**SIZES[name], **more},
    )
    torch.manual_seed(2)
    getattr(transformers, name + (head or "Model"))(config).save_pretrained(folder)
    write_tokenizer(folder, encoder=name == "MPNet", padded=name not in TRAINED)
    return folder


def write_tokenizer(folder: Path, *, encoder: bool, padded: bool) -> None:
    """Numbers of the words in the order of `tiny.WORDS`, after the special tokens."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = [END, "<pad>", "<unk>", "[CLS]", "[SEP]", *tiny.WORDS]
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # type: ignore[assignment]
    if encoder:
        tokenizer.post_processor = processors.TemplateProcessing(  # type: ignore[assignment]
            single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 3), ("[SEP]", 4)]
        )
    named = {"pad_token": "<pad>"} if padded else {}
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
        **named,
    ).save_pretrained(folder)
