"""Encoders recorded on the corpus demo/everyday, the reference rows of the Compare page: `python -m factory.reference_encoders`.

`encoders.csv` names them, and where their weights came from. Those of a `model` that is not on this machine keep their row.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from factory import everyday
from isoviz import demo
from isoviz.operations import ruler
from isoviz.vectors import TextSet
from isoviz.whatif.texts import encoded

FIELDS = ("name", "weights", "licence")


def related() -> TextSet:
    """The sentences, and which are paraphrases."""
    pairs = [(row["sentence1"], row["sentence2"]) for row in everyday.generate()["pairs"] if row["label"]]
    texts = list(dict.fromkeys(text for side in zip(*pairs, strict=True) for text in side))
    ids = {text: str(number) for number, text in enumerate(texts, 1)}
    rated = pd.DataFrame([(ids[left], ids[right], 1.0) for left, right in pairs], columns=["left", "right", "score"])
    return TextSet(pd.DataFrame({"id": ids.values(), "text": texts}), everyday.SLUG, rated, "similarity")


def record(model: str, about: dict[str, str]) -> dict[str, Any]:
    """One encoder's row; numbers have six digits."""
    found = encoded(related(), model)
    measured = ruler.of_set(found)
    floor, auc = next(level for level in measured.floor if level.share == 0.99), measured.related
    assert auc is not None
    numbers = {"noise_floor": (floor.cosine, floor.low, floor.high), "auc": auc.auc}
    return {
        **{field: about[field] for field in FIELDS},
        "fingerprint": found.facts["model_fingerprint"],
        "pooling": found.facts["pooling"],
        "n": found.n,
        "d": found.d,
        **{name: [float(f"{value:.6g}") for value in ends] for name, ends in numbers.items()},
    }


def main(folders: dict[str, str]) -> None:
    """Record the bundled models, and those whose folder is given as NAME=FOLDER."""
    known = {row["name"]: row for row in demo.reference_encoders()} if demo.ENCODERS.is_file() else {}
    rows = []
    with Path(__file__).with_name("encoders.csv").open(encoding="utf-8") as file:
        for about in csv.DictReader(file):
            model = folders.get(about["name"], about["name"] if about["name"] in demo.bundled_models() else None)
            rows.append(record(model, about) if model else known[about["name"]])
    demo.ENCODERS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:]))
