"""The model cards of the bundled models: `python -m factory.cards`.

Fills `tiny-bert.md` and `tiny-bart.md` in from `pretraining.json` beside the weights and the recorded baselines; computes isotropy
and masked words.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
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
    folder = bundled_model_dir(slug)
    record = json.loads((folder / "pretraining.json").read_text(encoding="utf-8"))
    slugs = [task for task in SLUGS if baselines(task).get("model") == slug]
    values = {
        "slug": slug,
        "family": slug.removeprefix("demo/tiny-"),
        "record": record,
        "recipe": record["recipe"],
        "text": record["text"],
        "millions": record["parameters"] / 1e6,
        "million_tokens": record["tokens"] / 1e6,
        "minutes": record["seconds"] / 60,
        "precision": "bfloat16 autocast" if record["recipe"]["precision"] == "bf16" else "float32",
        "digest": hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest(),
        "versions": ", ".join(f"{name} {version}" for name, version in record["versions"].items()),
        "recorded": " ".join(slugs),
        "recipes": "\n".join(f"- `{task}`: `{json.dumps(baselines(task)['recipe'])}`" for task in slugs),
        "results": results(slugs),
        **(_bart(record, slugs) if slug == BART else _bert(record, slugs)),
    }
    template = Path(__file__).with_name(f"{slug.removeprefix('demo/')}.md")
    return template.read_text(encoding="utf-8").format(**values)


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head), *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join(lines)


def seeds(value: dict[str, Any]) -> str:
    """Mean and each seed's score; "undefined" where there is none."""
    mean, *each = ("undefined" if v is None else f"{v:.3f}" for v in (value["mean"], *value["seeds"].values()))
    return f"{mean} ({', '.join(each)})"


def results(slugs: list[str]) -> str:
    rows = []
    for slug in slugs:
        record = baselines(slug)
        simple = [f"{record[name]:.3f}" if name in record else "–" for name in ("majority", "bag_of_words")]
        rows.append([f"`{slug}`", record["metric"], *simple, seeds(record["random_weights"]), seeds(record["pretrained"]),
                     f"{record['pretrained']['seconds']:.0f} s"])  # fmt: skip
    weights = ("random weights (3 seeds)", "these weights (3 seeds)")
    return table(["task", "metric", "majority", "bag of words", *weights, "longest run"], rows)


def _bert(record: dict[str, Any], slugs: list[str]) -> dict[str, Any]:
    """What only the BERT's card says."""
    text, rates = record["text"], record["recipe"]["mask_rates"]
    kinds = [[kind, f"{count:,}"] for kind, count in sorted(text["kinds"].items(), key=lambda item: -item[1])]
    phenomena = {slug: ", ".join(generator(slug).phenomena) for slug in SLUGS}
    checked = [entry for entry in record["curve"] if "held_out_word_loss" in entry]
    every = max(1, len(checked) // 10)
    rows = [
        [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['word_loss']:.2f}", f"{e['held_out_word_loss']:.2f}",
         f"{e['held_out_word_accuracy']:.3f}", f"{e['held_out_next_sentence_accuracy']:.3f}"]
        for e in (*checked[every - 1 : -1 : every], checked[-1])
    ]  # fmt: skip
    head = ["step", "tokens", "training loss", "held-out loss", "held-out word accuracy", "held-out pair accuracy"]
    short = baselines("demo/acceptability")["short"]
    isotropy, cosine = _isotropy()
    return {
        "words": len(lexicon().word_forms()),
        "kinds": table(["kind of text", "texts"], kinds),
        "grammatical": phenomena["demo/acceptability"],
        "opinions": phenomena["demo/sentiment"],
        "restatements": phenomena["demo/paraphrase"],
        "rates": f"{rates[0]:.0%}, in second sentences {rates[1]:.0%}",
        "log": table(head, rows),
        "masked": "\n".join(
            f"- {sentence.replace('[MASK]', '**[MASK]**')} → " + ", ".join(f"{word} {p:.2f}" for word, p in guesses)
            for sentence, guesses in masked_words()
        ),
        "isotropy": isotropy,
        "cosine": cosine,
        "short_recipe": json.dumps(short["recipe"]),
        "short_pretrained": seeds(short["pretrained"]),
        "short_random": seeds(short["random_weights"]),
        "by_phenomenon": "\n\n".join(
            _by_phenomenon(slug) for slug in slugs if tasks.get(slug).kind == "classification"
        ),
    }


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


def _isotropy() -> tuple[str, float]:
    """The table of the BERT's clouds with its weights and with random ones, and the mean cosine of random [CLS] vectors."""
    from transformers import AutoModel

    from factory import pretrain_bert
    from factory.pretraining import before_training

    folder = bundled_model_dir(BERT)
    models = {"pretrained": AutoModel.from_pretrained(folder), "random": before_training(pretrain_bert, folder, 0).bert}
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
    cosine = metrics.mean_cosine(points["random"]["[CLS]"])
    return table(["vectors", "network", *measures], rows), float(cosine)


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


def _bart(record: dict[str, Any], slugs: list[str]) -> dict[str, Any]:
    """What only the BART's card says."""
    recipe, kinds = record["recipe"], record["text"]["kinds"]
    about = {
        "english": "one or two sentences, as for `demo/tiny-bert`",
        "stories": "short stories of the kinds in `demo/summarization`, without summaries",
        "two languages": "a sentence and its Velic translation side by side, of the kinds in `demo/translation`",
    }
    described = [[kind, description, f"{kinds[kind]:,}"] for kind, description in about.items()]
    first = f"held_out_{next(iter(kinds))}"
    log = [
        [str(e["step"]), f"{e['tokens'] / 1e6:.1f} M", f"{e['loss']:.2f}",
         *(f"{e[f'held_out_{kind}']['tokens_right']:.3f}" for kind in kinds)]
        for e in record["curve"] if first in e
    ]  # fmt: skip
    unlearned = {
        slug: [f"{name.replace('_', ' ')} {known[name]:.3f}" for name in ("copied", "word_by_word") if name in known]
        for slug, known in ((slug, baselines(slug)) for slug in slugs)
    }
    return {
        "layers": f"{recipe['encoder_layers']} + {recipe['decoder_layers']} layers × {recipe['hidden']}",
        "kinds": table(["kind of text", "what it is", "texts"], described),
        "log": table(["step", "tokens", "training loss", *kinds], log),
        "examples": "\n".join(f"- {text.replace('<mask>', '**‹mask›**')} → {written}" for text, written in filled()),
        "rows": ", ".join(f"{baselines(slug)['rows']['validation']} of `{slug}`" for slug in slugs),
        "without_learning": "\n".join(f"- `{slug}`: {', '.join(scores)}" for slug, scores in unlearned.items()),
    }


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


def main() -> None:
    for slug in (BERT, BART):
        (bundled_model_dir(slug) / "README.md").write_text(card(slug), encoding="utf-8")


if __name__ == "__main__":
    main()
