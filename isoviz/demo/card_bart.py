"""The model card of `demo/tiny-bart`, drawn from recorded numbers: `python -m isoviz.demo.card_bart`.

Reads `pretraining.json` beside the weights and the record of the baselines; fills masks anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isoviz.demo import bundled_model_dir
from isoviz.demo.baselines import baselines
from isoviz.demo.card import recorded, results, table
from isoviz.demo.pretrain_bart import KINDS
from isoviz.demo.tasks import describe

SLUG = "demo/tiny-bart"
EXAMPLES = (
    "The doctors near the car <mask> hungry.",
    "The film was dull, but we <mask> it.",
    "The farmer had a lamp. Later the farmer <mask> the lamp to the judge.",
    "What <mask> the farmer buy?",
)


def filled() -> list[tuple[str, str]]:
    """Each example and what the model writes for it."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = bundled_model_dir(SLUG)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    found = []
    for text in EXAMPLES:
        written = model.generate(**tokenizer(text, return_tensors="pt"), max_length=40, num_beams=1)
        found.append((text, str(tokenizer.decode(written[0], skip_special_tokens=True))))
    return found


def card() -> str:
    """The card as Markdown."""
    record = json.loads((bundled_model_dir(SLUG) / "pretraining.json").read_text(encoding="utf-8"))
    return "\n".join((_about(record), _text(record), _training(record), _fine_tuning(), _redo(record)))


def _about(record: dict[str, Any]) -> str:
    recipe = record["recipe"]
    layers = f"{recipe['encoder_layers']} + {recipe['decoder_layers']} layers × {recipe['hidden']}"
    return f"""---
license: apache-2.0
language: en
library_name: transformers
---
# demo/tiny-bart

A BART of {layers} ({record["parameters"] / 1e6:.2f} million parameters, stored in half precision), really pretrained by
denoising, on a CPU, from text that this project's own grammar generates. It is the default model of IsoViz for tasks whose
answer is a text: `demo/translation` and `demo/summarization`.

SHA-256 of `model.safetensors`: `{record["sha256"]}`

## What it is not
It has never seen real text: the sentences of one grammar, in English and in Velic, a made language of the same project, are
its world. It translates no real language and summarizes no real article. It reads and writes lower case only. It is for
lessons, demos and tests; conclusions about real models need real models.
"""


def _text(record: dict[str, Any]) -> str:
    text = record["text"]
    about = {
        "english": "one or two sentences, as for `demo/tiny-bert`",
        "stories": "short stories of the kinds in `demo/summarization`, never with their gist",
        "two languages": "a sentence and its Velic translation side by side, of the kinds in `demo/translation`",
    }
    kinds = [[kind, about[kind], f"{text['kinds'][kind]:,}"] for kind in KINDS]
    return f"""## What it saw
{text["texts"]:,} generated texts, {text["sentences"]:,} sentences, {text["words"]:,} words:

{table(["kind of text", "what it is", "texts"], kinds)}

Left out are all texts of the validation rows of `demo/translation` and `demo/summarization`. Said plainly: **it has seen
sentences of both languages side by side**, with spans of both or most of one side masked, so it knows much of the vocabulary
and the grammar that the translation task asks for, the words that occur in validation rows only included; it was not trained
to write Velic from English alone. It has seen stories, but no gist of any.
"""


def _training(record: dict[str, Any]) -> str:
    recipe = record["recipe"]
    checked = [entry for entry in record["curve"] if f"held_out_{KINDS[0]}" in entry]
    rows = [
        [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['loss']:.2f}",
         *(f"{e[f'held_out_{kind}']['tokens_right']:.3f}" for kind in KINDS)]
        for e in checked
    ]  # fmt: skip
    examples = "\n".join(f"- {text.replace('<mask>', '**‹mask›**')} → {written}" for text, written in filled())
    precision = "bfloat16 autocast" if recipe["precision"] == "bf16" else "float32"
    return f"""## Training
BART's noises: spans of on average {recipe["span_length"]} pieces, {recipe["mask_rate"]:.0%} in all, are each replaced by one
mask, and half of the time the sentences of a text come in another order; the network writes the text as it was. In half of the
texts in two languages {recipe["one_side_rate"]:.0%} of one side is masked and little of the other. {recipe["steps"]:,} steps of at
most {recipe["batch_tokens"]:,} source tokens, {record["tokens"] / 1e6:.1f} million target tokens in all, AdamW, peak learning rate
{recipe["learning_rate"]}, {recipe["warmup"]} steps of warm-up, linear decay planned for {recipe["planned_steps"]:,} steps and from
step {recipe["cool_from"]:,} on faster, to zero at the last one; no dropout, {precision};
{record["seconds"] / 60:.0f} minutes on {recipe["threads"]} thread of a busy CPU. The schedule was found by
shortening a first run while it was under way; the script, run as a whole, gives the same weights to the byte.

Pieces right, given all before them (masked ones and others), in held-out texts:

{table(["step", "tokens", "training loss", *KINDS], rows)}

Much of what is masked cannot be known: which noun comes next is the generator's free draw. What it writes for a mask:

{examples}
"""


def _fine_tuning() -> str:
    slugs = recorded(SLUG)
    if not slugs:
        return """## Fine-tuning on the demo tasks
Not recorded yet: `python -m isoviz.demo.record_baselines` does it.
"""
    recipes = "\n".join(f"- `{slug}`: `{json.dumps(baselines(slug)['recipe'])}`" for slug in slugs)
    others = "\n".join(
        f"- `{slug}`: "
        + ", ".join(
            f"{name.replace('_', ' ')} {baselines(slug)[name]:.3f}"
            for name in ("copied", "word_by_word")
            if name in baselines(slug)
        )
        for slug in slugs
    )
    rows = ", ".join(f"{describe(slug).validation_rows} of `{slug}`" for slug in slugs)
    return f"""## Fine-tuning on the demo tasks
On the validation rows ({rows}), about half of which hold words that no training row shows. "Bag of words" is the answer of the
training row with the most similar source; "random weights" is the same network before its pretraining; the seconds
are of two cores that did other work too. Recipes:

{recipes}

{results(slugs)}

Without learning:

{others}
"""


def _redo(record: dict[str, Any]) -> str:
    return f"""## Redo it
```
python -m isoviz.demo.pretrain_bart --out isoviz/demo/tiny-bart
python -m isoviz.demo.record_baselines --tasks demo/translation demo/summarization
python -m isoviz.demo.card_bart
```
Deterministic on one kind of machine at one thread count; on another machine the numbers differ in their last places.
Made with {", ".join(f"{name} {version}" for name, version in record["versions"].items())}.

Licence: Apache-2.0, the weights as the code; lexicon, grammar and Velic were written for this project.
"""


def main() -> None:
    path: Path = bundled_model_dir(SLUG) / "README.md"
    path.write_text(card(), encoding="utf-8")


if __name__ == "__main__":
    main()
