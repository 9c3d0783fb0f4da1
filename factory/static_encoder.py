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
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isoviz.demo import rows_dir

FOLDER = Path(__file__).resolve().parent.parent / "dashboard/components/lab/encoder"
DIMENSIONS = 128
TOKENS = 8_750  # with their vectors below 1.2 MB
_PIECE = re.compile(r"(?:##)?(?:[a-z0-9]+|[!-~])")


def distil(folder: Path, tokens: int = TOKENS, dimensions: int = DIMENSIONS) -> tuple[list[str], NDArray[np.int8]]:
    """The most frequent pieces of a teacher's lower-case WordPiece vocabulary, and their vectors (tokens, dimensions).

    Each printable ASCII character is among them, alone and as a continuation, so that English always becomes pieces.
    """
    from sentence_transformers import SentenceTransformer

    teacher = SentenceTransformer(str(folder), device="cpu")
    ids: dict[str, int] = {
        piece: place for piece, place in teacher.tokenizer.get_vocab().items() if _PIECE.fullmatch(piece)
    }
    by_frequency = sorted(ids, key=ids.__getitem__)  # BERT's vocabulary: characters by code, then pieces by frequency
    characters = [piece for piece in by_frequency if len(piece.removeprefix("##")) == 1]
    longer = [piece for piece in by_frequency if len(piece.removeprefix("##")) > 1]
    pieces = [*characters, *longer[: tokens - len(characters)]]
    first = ids[longer[0]]
    ranks = np.array([max(1, ids[piece] - first + 1) for piece in pieces])
    points = _alone(teacher, [ids[piece] for piece in pieces])
    points -= points.mean(axis=0)
    _, _, directions = np.linalg.svd(points, full_matrices=False)
    directions *= np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])[:, None]
    weighted = points @ directions[:dimensions].T * np.log1p(ranks)[:, None]
    largest = np.quantile(np.abs(weighted), 0.9999)
    return pieces, np.clip(np.rint(127 * weighted / largest), -127, 127).astype(np.int8)


def _alone(teacher: Any, ids: Sequence[int]) -> NDArray[np.float64]:
    """The last layer's vector of each piece, between the special tokens and nothing else."""
    import torch

    model, tokenizer = teacher[0].auto_model.eval(), teacher.tokenizer
    found = []
    with torch.inference_mode():
        for start in range(0, len(ids), 512):
            rows = [[tokenizer.cls_token_id, piece, tokenizer.sep_token_id] for piece in ids[start : start + 512]]
            found.append(model(input_ids=torch.tensor(rows)).last_hidden_state[:, 1].double().numpy())
    return np.concatenate(found)


def encode(texts: Iterable[str], pieces: Sequence[str], vectors: NDArray[np.int8]) -> NDArray[np.float64]:
    """Vectors (texts, dimensions), as the page computes them: the mean of a text's pieces over 127; zeros for a text without any."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {"[UNK]": len(pieces), **{piece: place for place, piece in enumerate(pieces)}}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    rows = []
    for encoding in tokenizer.encode_batch(list(texts)):
        known = [place for place in encoding.ids if place < len(pieces)]
        rows.append(vectors[known].mean(axis=0) / 127 if known else np.zeros(vectors.shape[1]))
    return np.array(rows)


def stored() -> tuple[list[str], NDArray[np.int8]]:
    """The pieces and vectors that the page has."""
    return (FOLDER / "tokens.txt").read_text("ascii").split("\n"), np.load(FOLDER / "tokens.npy")


def agreement(first: NDArray[Any], second: NDArray[Any], scores: Sequence[float]) -> float:
    """Spearman's correlation of cosines with people's scores."""
    from scipy.stats import spearmanr

    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    cosines = np.einsum("ij,ij->i", first, second) / np.maximum(lengths, 1e-12)
    return float(spearmanr(cosines, scores).statistic)


def measured(folder: Path, table: tuple[list[str], NDArray[np.int8]], files: dict[str, Path]) -> dict[str, Any]:
    """For each file of scored pairs (`sentence1`, `sentence2`, `label`): rows, and the agreement of the table and its teacher."""
    import pandas as pd
    from sentence_transformers import SentenceTransformer

    teacher = SentenceTransformer(str(folder), device="cpu")
    found = {}
    for name, file in files.items():
        rows = pd.read_parquet(file)
        left, right = list(rows["sentence1"]), list(rows["sentence2"])
        both = {
            "static": (encode(left, *table), encode(right, *table)),
            "teacher": (teacher.encode(left), teacher.encode(right)),
        }
        found[name] = {
            "rows": len(rows),
            **{who: round(agreement(*two, rows["label"]), 3) for who, two in both.items()},
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", type=Path, required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--pairs", type=Path, required=True, help="STS-B's validation rows as Parquet")
    chosen = parser.parse_args()
    pieces, vectors = table = distil(chosen.teacher)
    files = {
        "STS-B, validation": chosen.pairs,
        "demo/similarity, validation": rows_dir("demo/similarity") / "validation.parquet",
    }
    record = {
        "teacher": "sentence-transformers/all-MiniLM-L6-v2",
        "licence": "Apache-2.0",
        "spearman": measured(chosen.teacher, table, files),
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "tokens.txt").write_text("\n".join(pieces), "ascii")
    np.save(FOLDER / "tokens.npy", vectors)
    (FOLDER / "record.json").write_text(json.dumps(record, indent=1) + "\n", "ascii")
    print(
        json.dumps(record["spearman"], indent=1),
        *((file.name, file.stat().st_size) for file in sorted(FOLDER.iterdir())),
    )


if __name__ == "__main__":
    main()
