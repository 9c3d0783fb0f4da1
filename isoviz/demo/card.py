"""The model card of `demo/tiny-bert`, drawn from recorded numbers: `python -m isoviz.demo.card`.

Reads `pretraining.json` beside the weights and the record of the baselines; measures isotropy and masked words anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isoviz.demo import bundled_model_dir
from isoviz.demo.baselines import baselines
from isoviz.demo.lexicon import lexicon
from isoviz.demo.tasks import SLUGS, describe, generate

if TYPE_CHECKING:
    import numpy as np

EXAMPLES = (
    "The doctors near the car [MASK] hungry.",
    "The woman who helped the boys washed [MASK].",
    "What did the farmer [MASK]?",
    "Two letters were [MASK] by the poet.",
    "The plot was dull, but we [MASK] the film.",
    "I do not think that the hotel was filthy. We [MASK] early.",
    "The pilot gave the ring to the nurse. That is, the [MASK] received the ring from the pilot.",
    "The baker is taller than Maria. In other words, Maria is [MASK] than the baker.",
)
MEASURES = ("isoscore", "isoscore_unbiased", "mean_cosine", "ev_1")


def clouds(model: Any) -> dict[str, np.ndarray]:
    """The [CLS] and mean vectors of the last layer for the validation sentences of `demo/acceptability`, each (500, 128)."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bundled_model_dir("demo/tiny-bert"))
    sentences = [row["sentence"] for row in generate("demo/acceptability")["validation"]]
    inputs = tokenizer(sentences, padding=True, return_tensors="pt")
    with torch.no_grad():
        last = model(**inputs).last_hidden_state
    mask = inputs["attention_mask"][..., None]
    mean = (last * mask).sum(1) / mask.sum(1)
    return {"[CLS]": last[:, 0].double().numpy(), "mean": mean.double().numpy()}


def measure(points: np.ndarray) -> dict[str, float]:
    from isoviz import metrics

    return {
        "isoscore": float(metrics.isoscore(points)),
        "isoscore_unbiased": float(metrics.isoscore_unbiased(points)),
        "mean_cosine": float(metrics.mean_cosine(points)),
        "ev_1": float(metrics.explained_variance(points, k=1)[0]),
    }


def isotropy() -> dict[str, dict[str, dict[str, float]]]:
    """Weights ("pretrained", "random") to cloud to measure."""
    from transformers import AutoModel

    from isoviz.demo.pretrain import before_training

    folder = bundled_model_dir("demo/tiny-bert")
    models = {"pretrained": AutoModel.from_pretrained(folder), "random": before_training(folder, 0).bert}
    return {
        name: {cloud: measure(points) for cloud, points in clouds(model.eval()).items()}
        for name, model in models.items()
    }


def masked_words(count: int = 5) -> list[tuple[str, list[tuple[str, float]]]]:
    """For each example the likeliest words with their probabilities."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    folder = bundled_model_dir("demo/tiny-bert")
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModelForMaskedLM.from_pretrained(folder).eval()
    found = []
    for text in EXAMPLES:
        sentences = text.replace("?", "?|").replace(". ", ".|").strip("|").split("|")
        inputs = tokenizer(*sentences, return_tensors="pt")
        place = inputs["input_ids"][0].tolist().index(tokenizer.mask_token_id)
        with torch.no_grad():
            best = model(**inputs).logits[0, place].softmax(-1).topk(count)
        words = tokenizer.convert_ids_to_tokens(best.indices.tolist())
        found.append((text, list(zip(words, best.values.tolist(), strict=True))))
    return found


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def _curve(record: dict[str, Any]) -> str:
    checked = [entry for entry in record["curve"] if "held_out_word_loss" in entry]
    step = max(1, len(checked) // 10)
    shown = [*checked[step - 1 : -1 : step], checked[-1]]
    return table(
        ["step", "tokens", "training loss", "held-out loss", "held-out words guessed", "held-out pairs guessed"],
        [
            [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['word_loss']:.2f}", f"{e['held_out_word_loss']:.2f}",
             f"{e['held_out_word_accuracy']:.3f}", f"{e['held_out_next_sentence_accuracy']:.3f}"]
            for e in shown
        ],
    )  # fmt: skip


def seeds(value: dict[str, Any]) -> str:
    """Mean and each seed's score; "undefined" where there is none."""
    mean, *each = ("undefined" if v is None else f"{v:.3f}" for v in (value["mean"], *value["seeds"].values()))
    return f"{mean} ({', '.join(each)})"


def recorded(model: str) -> list[str]:
    """The tasks that the model was recorded on."""
    return [slug for slug in SLUGS if baselines(slug).get("model", "demo/tiny-bert") == model and baselines(slug)]


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


def _by_phenomenon(slug: str) -> str:
    record = baselines(slug)
    columns = (
        record["bag_of_words_by_phenomenon"],
        record["random_weights"]["by_phenomenon"],
        record["pretrained"]["by_phenomenon"],
    )
    return table(
        [describe(slug).title, "bag of words", "random weights", "these weights"],
        [[name, *(f"{column[name]:.2f}" for column in columns)] for name in describe(slug).phenomena],
    )


def card() -> str:
    """The card as Markdown."""
    record = json.loads((bundled_model_dir("demo/tiny-bert") / "pretraining.json").read_text(encoding="utf-8"))
    return "\n".join(
        (_about(record), _text(record), _training(record), _measured(record), _fine_tuning(), _redo(record))
    )


def _about(record: dict[str, Any]) -> str:
    recipe = record["recipe"]
    return f"""---
license: apache-2.0
language: en
library_name: transformers
---
# demo/tiny-bert

A BERT of {recipe["layers"]} layers × {recipe["hidden"]} ({record["parameters"] / 1e6:.2f} million parameters, stored in half
precision), really pretrained by masked language modelling, on a CPU, from text that this project's own grammar generates.
It is the default model of IsoViz: fine-tuning with isotropy methods becomes visible in seconds, without a download.

## What it is not
It has never seen real text: about {len(lexicon().word_forms()):,} word forms in the sentences of one grammar are its world.
**On real text (SST-2, CoLA and the like) a model of this size and this text gains nothing over random weights.** It is for
lessons, demos and tests; conclusions about real encoders need real encoders. Positions beyond {recipe["length"]} tokens were
never trained.
"""


def _text(record: dict[str, Any]) -> str:
    text = record["text"]
    kinds = [[kind, f"{count:,}"] for kind, count in sorted(text["kinds"].items(), key=lambda item: -item[1])]
    names = {slug: ", ".join(describe(slug).phenomena) for slug in SLUGS}
    return f"""## Text
{text["texts"]:,} generated texts of one or two sentences, {text["sentences"]:,} sentences, {text["words"]:,} words; all
grammatical, without any label, and without the validation sentences of the first three demo tasks (the others came later):

{table(["kind of text", "texts"], kinds)}

"Grammatical phenomena" are well-formed sentences for: {names["demo/acceptability"]}.

Opinions cover: {names["demo/sentiment"]}. Some are followed by what came of them ("we left early"), which is where the model
learns their polarity; nothing says "positive" or "negative".

Restatements ("that is, ...", "in other words, ...") say something again with: {names["demo/paraphrase"]}. False restatements
do not occur and nothing is marked as right or wrong; but whoever reads such text does learn much of what the paraphrase task
asks for, and that is the point of pretraining on it.
"""


def _training(record: dict[str, Any]) -> str:
    recipe = record["recipe"]
    rates = f"{recipe['mask_rates'][0]:.0%}, in second sentences {recipe['mask_rates'][1]:.0%}"
    precision = "bfloat16 autocast" if recipe["precision"] == "bf16" else "float32"
    return f"""## Training
Masked language modelling ({rates} of the pieces; loss on those only) plus next-sentence
prediction as in the original BERT (weight {recipe["next_sentence_weight"]}): half of the two-sentence texts get the second
sentence of another text of their kind. That second objective is what trains the pooler. The network starts from random
weights plus the identity in the attention's maps: from there a network so small learns within minutes that words come back.
Texts are packed into rows of {recipe["length"]} tokens with block-diagonal attention and positions restarting at each text;
{recipe["rows"]} rows per step, {recipe["steps"]:,} steps, {record["tokens"] / 1e6:.1f} million tokens, AdamW, peak learning rate
{recipe["learning_rate"]}, {recipe["warmup"]} steps of warm-up, linear decay, no dropout, {precision};
{record["seconds"] / 60:.0f} minutes on {recipe["threads"]} thread of a shared CPU.
The lower-casing WordPiece vocabulary comes from the same text and has every ASCII character in its alphabet.

{_curve(record)}

Most of what is left of the word loss cannot be learned: which noun comes next is the generator's free draw. The full log is
in `pretraining.json`.
"""


def _measured(record: dict[str, Any]) -> str:
    measured = isotropy()
    rows = [
        [cloud, f"{name} weights", *(f"{measured[name][cloud][measure]:.4f}" for measure in MEASURES)]
        for cloud in ("[CLS]", "mean")
        for name in ("pretrained", "random")
    ]
    words = "\n".join(
        f"- {sentence.replace('[MASK]', '**[MASK]**')} → " + ", ".join(f"{word} {p:.2f}" for word, p in guesses)
        for sentence, guesses in masked_words()
    )
    cosine = measured["random"]["[CLS]"]["mean_cosine"]
    return f"""## Masked words
{words}

## Isotropy
Last layer, the 500 validation sentences of `demo/acceptability` (n = 500, d = {record["recipe"]["hidden"]}):

{table(["vectors", "network", "IsoScore", "unbiased IsoScore", "average cosine", "EV_1"], rows)}

The same network with random weights has an average cosine of {cosine:.3f} between [CLS] vectors before it has learned
anything: average cosine alone says little about isotropy.
"""


def _fine_tuning() -> str:
    slugs = recorded("demo/tiny-bert")
    recipes = "\n".join(f"- `{slug}`: `{json.dumps(baselines(slug)['recipe'])}`" for slug in slugs)
    short = baselines("demo/acceptability")["short"]
    tables = "\n\n".join(_by_phenomenon(slug) for slug in slugs if describe(slug).kind == "classification")
    return f"""## Fine-tuning on the demo tasks
The primary metric on the validation rows; about half of them hold words that no training row shows. "Random weights" is the same
network before its pretraining, with fresh weights per seed. The seconds are of two cores, which from `demo/sentiment5` on did
other work too. Recipes:

{recipes}

{results(slugs)}

With 1,000 training rows (`{json.dumps(short["recipe"])}`), `demo/acceptability` reaches {seeds(short["pretrained"])} from these
weights and {seeds(short["random_weights"])} from random ones; the longest run took {short["pretrained"]["seconds"]:.0f} s.

By phenomenon:

{tables}
"""


def _redo(record: dict[str, Any]) -> str:
    return f"""## Redo it
```
python -m isoviz.demo.pretrain --out isoviz/demo/tiny-bert
python -m isoviz.demo.record_baselines
python -m isoviz.demo.card
```
Deterministic on one kind of machine at one thread count; on another machine the numbers differ in their last places.
Made with {", ".join(f"{name} {version}" for name, version in record["versions"].items())}.

Licence: Apache-2.0, the weights as the code; lexicon and grammar were written for this project.
"""


def main() -> None:
    path: Path = bundled_model_dir("demo/tiny-bert") / "README.md"
    path.write_text(card(), encoding="utf-8")


if __name__ == "__main__":
    main()
