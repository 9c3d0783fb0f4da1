"""Distils the lab page's encoder from a sentence encoder: `python -m factory.static_encoder --teacher FOLDER --pairs FILE`.

One vector per WordPiece, and a text's vector is the mean of its pieces': a browser computes it without a model. The recipe is that of
Model2Vec (Tulkens and van Dongen, 2024): the teacher reads each piece alone, principal directions replace its dimensions, and pieces
are weighted by log(1 + rank), which by Zipf's law weakens frequent ones, as SIF does (Arora et al., 2017). Writes the folder
`dashboard/components/lab/encoder`, with its agreement with people's judgements beside the teacher's.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import rows_dir

FOLDER = Path(__file__).resolve().parent.parent / "dashboard/components/lab/encoder"
Encoder = Callable[[list[str]], NDArray[Any]]
_PIECE = re.compile(r"(?:##)?(?:[a-z0-9]+|[!-~])")


def distil(teacher: Any, tokens: int = 8_750, dimensions: int = 128) -> tuple[list[str], NDArray[np.int8]]:
    """The most frequent pieces of a SentenceTransformer's lower-case WordPiece vocabulary, and their vectors (tokens, dimensions).

    Each printable ASCII character is among them, alone and as a continuation, so that English always becomes pieces.
    """
    import torch

    model, tokenizer = teacher[0].auto_model.eval(), teacher.tokenizer
    ids = {piece: place for piece, place in tokenizer.get_vocab().items() if _PIECE.fullmatch(piece)}
    by_frequency = sorted(ids, key=ids.__getitem__)  # BERT's vocabulary: characters by code, then pieces by frequency
    characters = [piece for piece in by_frequency if len(piece.removeprefix("##")) == 1]
    longer = [piece for piece in by_frequency if len(piece.removeprefix("##")) > 1]
    pieces = [*characters, *longer[: tokens - len(characters)]]
    ranks = np.array([max(1, ids[piece] - ids[longer[0]] + 1) for piece in pieces])
    rows = torch.tensor([[tokenizer.cls_token_id, ids[piece], tokenizer.sep_token_id] for piece in pieces])
    with torch.inference_mode():
        states = torch.cat([model(input_ids=some).last_hidden_state[:, 1] for some in rows.split(512)])
    points = states.double().numpy()
    points -= points.mean(axis=0)
    _, _, directions = np.linalg.svd(points, full_matrices=False)
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    weighted = points @ directions[:dimensions].T * np.log1p(ranks)[:, None]
    largest = np.quantile(np.abs(weighted), 0.9999)
    return pieces, np.clip(np.rint(127 * weighted / largest), -127, 127).astype(np.int8)


def encode(texts: Iterable[str], pieces: Sequence[str], vectors: NDArray[np.int8]) -> NDArray[np.float64]:
    """Vectors (texts, dimensions), as the page computes them: the mean of a text's pieces over 127; zeros for a text without any."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {"[UNK]": len(pieces), **{piece: place for place, piece in enumerate(pieces)}}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    known = ([place for place in found.ids if place < len(pieces)] for found in tokenizer.encode_batch(list(texts)))
    return np.array([vectors[row].mean(axis=0) / 127 if row else np.zeros(vectors.shape[1]) for row in known])


def stored() -> tuple[list[str], NDArray[np.int8]]:
    """The pieces and vectors that the page has."""
    return (FOLDER / "tokens.txt").read_text("ascii").split("\n"), np.load(FOLDER / "tokens.npy")


def agreement(encoder: Encoder, file: Path) -> float:
    """Spearman's correlation of cosines with the scores of pairs: a Parquet file with `sentence1`, `sentence2` and `label`."""
    import pandas as pd
    from scipy.stats import spearmanr

    rows = pd.read_parquet(file)
    first, second = (encoder(list(rows[name])) for name in ("sentence1", "sentence2"))
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return round(
        float(spearmanr((first * second).sum(axis=1) / np.maximum(lengths, 1e-12), rows["label"]).statistic), 3
    )


def main() -> None:
    from sentence_transformers import SentenceTransformer

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--pairs", type=Path, required=True, help="STS-B's validation rows as Parquet")
    chosen = parser.parse_args()
    teacher = SentenceTransformer(str(chosen.teacher), device="cpu")
    pieces, vectors = distil(teacher)
    encoders: dict[str, Encoder] = {"static": lambda texts: encode(texts, pieces, vectors), "teacher": teacher.encode}
    files = {"STS-B": chosen.pairs, "demo/similarity": rows_dir("demo/similarity") / "validation.parquet"}
    spearman = {name: {who: agreement(one, file) for who, one in encoders.items()} for name, file in files.items()}
    record = {"teacher": "sentence-transformers/all-MiniLM-L6-v2", "licence": "Apache-2.0", "spearman": spearman}
    (FOLDER / "tokens.txt").write_text("\n".join(pieces), "ascii")
    np.save(FOLDER / "tokens.npy", vectors)
    (FOLDER / "record.json").write_text(json.dumps(record, indent=1) + "\n", "ascii")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
