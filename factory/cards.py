"""The model cards of the bundled models, drawn from recorded numbers: `python -m factory.cards`.

Reads `pretraining.json` beside the weights and the record of the baselines; measures isotropy and fills masks anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from factory.lexicon import lexicon
from factory.tasks import SLUGS, generate, generator
from isoviz import metrics, tasks
from isoviz.demo import baselines, bundled_model_dir

if TYPE_CHECKING:
    import numpy as np

BERT, BART = "demo/tiny-bert", "demo/tiny-bart"
BERT_EXAMPLES = (
    "The doctors near the car [MASK] hungry.",
    "The woman who helped the boys washed [MASK].",
    "What did the farmer [MASK]?",
    "Two letters were [MASK] by the poet.",
    "The plot was dull, but we [MASK] the film.",
    "I do not think that the hotel was filthy. We [MASK] early.",
    "The pilot gave the ring to the nurse. That is, the [MASK] received the ring from the pilot.",
    "The baker is taller than Maria. In other words, Maria is [MASK] than the baker.",
)
BART_EXAMPLES = (
    "The doctors near the car <mask> hungry.",
    "The film was dull, but we <mask> it.",
    "The farmer had a lamp. Later the farmer <mask> the lamp to the judge.",
    "What <mask> the farmer buy?",
)


def card(slug: str) -> str:
    """A bundled model's card as Markdown."""
    record = json.loads((bundled_model_dir(slug) / "pretraining.json").read_text(encoding="utf-8"))
    bert = (_bert_text, _bert_training, _bert_measured, _bert_fine_tuning)
    sections = (_bart_text, _bart_training, _bart_fine_tuning) if slug == BART else bert
    return "\n".join((_head(slug, record), *(section(record) for section in sections), _reproduce(slug, record)))


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def _head(slug: str, record: dict[str, Any]) -> str:
    about, limits = (_bart_about if slug == BART else _bert_about)(record)
    digest = hashlib.sha256((bundled_model_dir(slug) / "model.safetensors").read_bytes()).hexdigest()
    return f"""---
license: apache-2.0
language: en
library_name: transformers
---
# {slug}

{about}

SHA-256 of `model.safetensors`: `{digest}`

## What it is not
{limits}
"""


def _reproduce(slug: str, record: dict[str, Any]) -> str:
    written = "lexicon, grammar and Velic" if slug == BART else "lexicon and grammar"
    return f"""## Reproduce it
From a clone of the source, in this order:
```
python -m factory.pretrain_{slug.removeprefix("demo/tiny-")} --out isoviz/{slug}
python -m factory.record_baselines --tasks {" ".join(recorded(slug))}
python -m factory.cards
```
Deterministic on one kind of machine at one thread count; on another machine the numbers differ in their last places.
Made with {", ".join(f"{name} {version}" for name, version in record["versions"].items())}.

Licence: Apache-2.0, the weights as the code; {written} were written for this project.
"""


def _precision(record: dict[str, Any]) -> str:
    return "bfloat16 autocast" if record["recipe"]["precision"] == "bf16" else "float32"


def seeds(value: dict[str, Any]) -> str:
    """Mean and each seed's score; "undefined" where there is none."""
    mean, *each = ("undefined" if v is None else f"{v:.3f}" for v in (value["mean"], *value["seeds"].values()))
    return f"{mean} ({', '.join(each)})"


def recorded(model: str) -> list[str]:
    """The tasks that the model was recorded on."""
    return [slug for slug in SLUGS if baselines(slug).get("model") == model]


def recipes(slugs: list[str]) -> str:
    return "\n".join(f"- `{slug}`: `{json.dumps(baselines(slug)['recipe'])}`" for slug in slugs)


def results(slugs: list[str]) -> str:
    rows = []
    for slug in slugs:
        record = baselines(slug)
        simple = [f"{record[name]:.3f}" if name in record else "–" for name in ("majority", "bag_of_words")]
        rows.append([f"`{slug}`", record["metric"], *simple, seeds(record["random_weights"]), seeds(record["pretrained"]),
                     f"{record['pretrained']['seconds']:.0f} s"])  # fmt: skip
    head = [
        "task",
        "metric",
        "majority",
        "bag of words",
        "random weights (3 seeds)",
        "these weights (3 seeds)",
        "longest run",
    ]
    return table(head, rows)


def _bert_about(record: dict[str, Any]) -> tuple[str, str]:
    """What the model is, and what it is not."""
    recipe, words = record["recipe"], len(lexicon().word_forms())
    about = f"""A BERT of {recipe["layers"]} layers × {recipe["hidden"]} ({record["parameters"] / 1e6:.2f} million parameters, stored in
half precision), pretrained by masked language modelling, on a CPU, on text that this project's own grammar generates.
It is the default model of IsoViz: fine-tuning with isotropy methods becomes visible in seconds, without a download."""
    limits = f"""It has never seen real text: about {words:,} word forms in the sentences of one grammar are its world.
**On real text (SST-2, CoLA and the like) a model of this size and this text gains nothing over random weights.** It is for
lessons, demos and tests; conclusions about real encoders need real encoders. Positions beyond {recipe["length"]} tokens were
never trained."""
    return about, limits


def _bert_text(record: dict[str, Any]) -> str:
    text = record["text"]
    kinds = [[kind, f"{count:,}"] for kind, count in sorted(text["kinds"].items(), key=lambda item: -item[1])]
    names = {slug: ", ".join(generator(slug).phenomena) for slug in SLUGS}
    return f"""## Pretraining text
{text["texts"]:,} generated texts of one or two sentences, {text["sentences"]:,} sentences, {text["words"]:,} words; all
grammatical, without any label, and without the validation sentences of the first three demo tasks (the others came later):

{table(["kind of text", "texts"], kinds)}

"Grammatical phenomena" are well-formed sentences for: {names["demo/acceptability"]}.

Opinions cover: {names["demo/sentiment"]}. Some are followed by what came of them ("we left early"), which is where the model
learns their polarity; nothing says "positive" or "negative".

Restatements ("that is, ...", "in other words, ...") say something again with: {names["demo/paraphrase"]}. False restatements
do not occur and nothing is marked as right or wrong; but a model that reads such text does learn much of what the paraphrase task
asks for, and that is the point of pretraining on it.
"""


def _bert_training(record: dict[str, Any]) -> str:
    recipe = record["recipe"]
    rates = f"{recipe['mask_rates'][0]:.0%}, in second sentences {recipe['mask_rates'][1]:.0%}"
    checked = [entry for entry in record["curve"] if "held_out_word_loss" in entry]
    every = max(1, len(checked) // 10)
    rows = [
        [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['word_loss']:.2f}", f"{e['held_out_word_loss']:.2f}",
         f"{e['held_out_word_accuracy']:.3f}", f"{e['held_out_next_sentence_accuracy']:.3f}"]
        for e in (*checked[every - 1 : -1 : every], checked[-1])
    ]  # fmt: skip
    head = ["step", "tokens", "training loss", "held-out loss", "held-out words guessed", "held-out pairs guessed"]
    return f"""## Training
Masked language modelling ({rates} of the pieces; loss on those only) plus next-sentence
prediction as in the original BERT (weight {recipe["next_sentence_weight"]}): half of the two-sentence texts get the second
sentence of another text of their kind. That second objective is what trains the pooler. The network starts from random
weights plus the identity in the attention's maps: from there a network so small learns within minutes that words come back.
Texts are packed into rows of {recipe["length"]} tokens with block-diagonal attention and positions restarting at each text;
{recipe["rows"]} rows per step, {recipe["steps"]:,} steps, {record["tokens"] / 1e6:.1f} million tokens, AdamW, peak learning rate
{recipe["learning_rate"]}, {recipe["warmup"]} steps of warm-up, linear decay, no dropout, {_precision(record)};
{record["seconds"] / 60:.0f} minutes on {recipe["threads"]} thread of a shared CPU.
The lower-casing WordPiece vocabulary comes from the same text and has every ASCII character in its alphabet.

{table(head, rows)}

Most of what is left of the word loss cannot be learned: which noun comes next is the generator's free draw. The full log is
in `pretraining.json`.
"""


def masked_words(count: int = 5) -> list[tuple[str, list[tuple[str, float]]]]:
    """For each example of the BERT the likeliest words with their probabilities."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = bundled_model_dir(BERT)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    guesses = []
    for text in BERT_EXAMPLES:
        sentences = text.replace("?", "?|").replace(". ", ".|").strip("|").split("|")
        inputs = tokenizer(*sentences, return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            best = model(**inputs).logits[0, place].softmax(-1).topk(count)
        words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        guesses.append((text, list(zip(words, best.values.tolist(), strict=True))))
    return guesses


def clouds(model: Any) -> dict[str, np.ndarray]:
    """The [CLS] and mean vectors of the last layer for the validation sentences of `demo/acceptability`, each (500, 128)."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bundled_model_dir(BERT))
    sentences = [row["sentence"] for row in generate("demo/acceptability")["validation"]]
    inputs = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        last = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    mean = (last * mask).sum(1) / mask.sum(1)
    return {"[CLS]": last[:, 0].double().numpy(), "mean": mean.double().numpy()}


def _bert_measured(record: dict[str, Any]) -> str:
    from transformers import AutoModel

    from factory.pretrain_bert import before_training

    folder = bundled_model_dir(BERT)
    models = {"pretrained": AutoModel.from_pretrained(folder), "random": before_training(folder, 0).bert}
    points = {name: clouds(model.eval()) for name, model in models.items()}
    measures = {
        "IsoScore": metrics.isoscore,
        "unbiased IsoScore": metrics.isoscore_unbiased,
        "average cosine": metrics.mean_cosine,
        "EV_1": lambda cloud: metrics.explained_variance(cloud, k=1)[0],
    }
    rows = [
        [cloud, f"{name} weights", *(f"{float(measure(points[name][cloud])):.4f}" for measure in measures.values())]
        for cloud in ("[CLS]", "mean")
        for name in models
    ]
    words = "\n".join(
        f"- {sentence.replace('[MASK]', '**[MASK]**')} → " + ", ".join(f"{word} {p:.2f}" for word, p in guesses)
        for sentence, guesses in masked_words()
    )
    cosine = metrics.mean_cosine(points["random"]["[CLS]"])
    return f"""## Masked words
{words}

## Isotropy
Last layer, the 500 validation sentences of `demo/acceptability` (n = 500, d = {record["recipe"]["hidden"]}):

{table(["vectors", "network", *measures], rows)}

The same network with random weights has an average cosine of {cosine:.3f} between [CLS] vectors before it has learned
anything: average cosine alone says little about isotropy.
"""


def _bert_fine_tuning(record: dict[str, Any]) -> str:
    slugs = recorded(BERT)
    short = baselines("demo/acceptability")["short"]
    tables = "\n\n".join(_by_phenomenon(slug) for slug in slugs if tasks.get(slug).kind == "classification")
    return f"""## Fine-tuning on the demo tasks
The primary metric on the validation rows; about half of them hold words that no training row shows. "Random weights" is the same
network before its pretraining, with fresh weights per seed. The seconds are of two cores, which from `demo/sentiment5` on did
other work too. Recipes:

{recipes(slugs)}

{results(slugs)}

With 1,000 training rows (`{json.dumps(short["recipe"])}`), `demo/acceptability` reaches {seeds(short["pretrained"])} from these
weights and {seeds(short["random_weights"])} from random ones.

By phenomenon:

{tables}
"""


def _by_phenomenon(slug: str) -> str:
    record = baselines(slug)
    columns = (
        record["bag_of_words_by_phenomenon"],
        record["random_weights"]["by_phenomenon"],
        record["pretrained"]["by_phenomenon"],
    )
    return table(
        [tasks.get(slug).title, "bag of words", "random weights", "these weights"],
        [[name, *(f"{column[name]:.2f}" for column in columns)] for name in generator(slug).phenomena],
    )


def _bart_about(record: dict[str, Any]) -> tuple[str, str]:
    """What the model is, and what it is not."""
    recipe = record["recipe"]
    layers = f"{recipe['encoder_layers']} + {recipe['decoder_layers']} layers × {recipe['hidden']}"
    about = f"""A BART of {layers} ({record["parameters"] / 1e6:.2f} million parameters, stored in half precision), pretrained by
denoising, on a CPU, on text that this project's own grammar generates. It is the default model of IsoViz for tasks whose
answer is a text: `demo/translation` and `demo/summarization`."""
    limits = """It has never seen real text: the sentences of one grammar, in English and in Velic, a made language of the same project, are
its world. It translates no real language and summarizes no real article. It reads and writes lower case only. It is for
lessons, demos and tests; conclusions about real models need real models."""
    return about, limits


def _bart_text(record: dict[str, Any]) -> str:
    text = record["text"]
    about = {
        "english": "one or two sentences, as for `demo/tiny-bert`",
        "stories": "short stories of the kinds in `demo/summarization`, never with their gist",
        "two languages": "a sentence and its Velic translation side by side, of the kinds in `demo/translation`",
    }
    kinds = [[kind, description, f"{text['kinds'][kind]:,}"] for kind, description in about.items()]
    return f"""## Pretraining text
{text["texts"]:,} generated texts, {text["sentences"]:,} sentences, {text["words"]:,} words:

{table(["kind of text", "what it is", "texts"], kinds)}

Left out are all texts of the validation rows of `demo/translation` and `demo/summarization`. **It has seen sentences of both
languages side by side**, with spans of both or most of one side masked, so it knows much of the vocabulary and the grammar
that the translation task asks for, the words that occur in validation rows only included; it was not trained to write Velic
from English alone. It has seen stories, but no gist of any.
"""


def _bart_training(record: dict[str, Any]) -> str:
    recipe, kinds = record["recipe"], [*record["text"]["kinds"]]
    rows = [
        [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['loss']:.2f}",
         *(f"{e[f'held_out_{kind}']['tokens_right']:.3f}" for kind in kinds)]
        for e in record["curve"] if f"held_out_{kinds[0]}" in e
    ]  # fmt: skip
    examples = "\n".join(f"- {text.replace('<mask>', '**‹mask›**')} → {written}" for text, written in filled())
    return f"""## Training
BART's noises: spans of on average {recipe["span_length"]} pieces, {recipe["mask_rate"]:.0%} in all, are each replaced by one
mask, and half of the time the sentences of a text come in another order; the network writes the text as it was. In half of the
texts in two languages {recipe["one_side_rate"]:.0%} of one side is masked and little of the other. {recipe["steps"]:,} steps of at
most {recipe["batch_tokens"]:,} source tokens, {record["tokens"] / 1e6:.1f} million target tokens in all, AdamW, peak learning rate
{recipe["learning_rate"]}, {recipe["warmup"]} steps of warm-up, linear decay planned for {recipe["planned_steps"]:,} steps and from
step {recipe["cool_from"]:,} on faster, to zero at the last one; no dropout, {_precision(record)};
{record["seconds"] / 60:.0f} minutes on {recipe["threads"]} thread of a busy CPU. The schedule was found by
shortening a first run while it was under way; the script, run as a whole, gives the same weights to the byte.

Pieces right, given all before them (masked ones and others), in held-out texts:

{table(["step", "tokens", "training loss", *kinds], rows)}

Much of what is masked cannot be known: which noun comes next is the generator's free draw. What it writes for a mask:

{examples}
"""


def filled() -> list[tuple[str, str]]:
    """Each example of the BART and what the model writes for it."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    folder = bundled_model_dir(BART)
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    pairs = []
    for text in BART_EXAMPLES:
        written = model.generate(**tokenizer(text, return_tensors="pt"), max_length=40, num_beams=1)
        pairs.append((text, str(tokenizer.decode(written[0], skip_special_tokens=True))))
    return pairs


def _bart_fine_tuning(record: dict[str, Any]) -> str:
    slugs = recorded(BART)
    without_learning = "\n".join(
        f"- `{slug}`: "
        + ", ".join(
            f"{name.replace('_', ' ')} {baselines(slug)[name]:.3f}"
            for name in ("copied", "word_by_word")
            if name in baselines(slug)
        )
        for slug in slugs
    )
    rows = ", ".join(f"{baselines(slug)['rows']['validation']} of `{slug}`" for slug in slugs)
    return f"""## Fine-tuning on the demo tasks
On the validation rows ({rows}), about half of which hold words that no training row shows. "Bag of words" is the answer of the
training row with the most similar source; "random weights" is the same network before its pretraining; the seconds
are of two cores that did other work too. Recipes:

{recipes(slugs)}

{results(slugs)}

Without learning:

{without_learning}
"""


def main() -> None:
    for slug in (BERT, BART):
        (bundled_model_dir(slug) / "README.md").write_text(card(slug), encoding="utf-8")


if __name__ == "__main__":
    main()
