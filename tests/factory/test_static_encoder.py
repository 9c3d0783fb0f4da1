"""The lab page's encoder: small, complete, as good as the docs say, and distilled as the factory says."""

from __future__ import annotations

import json
import string
from pathlib import Path

import numpy as np
import pytest

from factory import static_encoder
from isoviz.demo import bundled_model_dir, rows_dir
from tests.models.sentence_folders import make

ROOT = Path(__file__).parents[2]


def test_the_table_is_small_and_knows_every_printable_character() -> None:
    pieces, vectors = static_encoder.stored()
    assert vectors.dtype == np.int8 and vectors.shape == (len(set(pieces)), 128) and len(set(pieces)) == len(pieces)
    files = [static_encoder.FOLDER / name for name in ("tokens.npy", "tokens.txt")]
    assert sum(file.stat().st_size for file in files) <= 1.2e6
    characters = {c for c in string.printable if not c.isspace() and not c.isupper()}
    assert characters | {f"##{c}" for c in string.ascii_lowercase + string.digits} <= set(pieces)


def test_its_quality_is_what_the_record_and_the_docs_say() -> None:
    record = json.loads((static_encoder.FOLDER / "record.json").read_text())
    page = (ROOT / "docs/static.md").read_text(encoding="utf-8")
    for name, one in record["spearman"].items():
        assert any(name in row and f"| {one['static']} | {one['teacher']} |" in row for row in page.splitlines()), name
    table = static_encoder.stored()
    pairs = rows_dir("demo/similarity") / "validation.parquet"
    measured = static_encoder.agreement(lambda texts: static_encoder.encode(texts, *table), pairs)
    assert measured == record["spearman"]["demo/similarity"]["static"]


@pytest.mark.slow
def test_it_is_distilled_from_what_the_teacher_says_of_each_piece(tmp_path: Path) -> None:
    import torch
    from sentence_transformers import SentenceTransformer

    teacher = SentenceTransformer(str(make(tmp_path / "teacher", bundled_model_dir("demo/tiny-bert"))), device="cpu")
    pieces, vectors = static_encoder.distil(teacher, tokens=200, dimensions=128)
    tokenizer, model = teacher.tokenizer, teacher[0].auto_model.eval()
    ids = [tokenizer.convert_tokens_to_ids(piece) for piece in pieces]
    alone = []
    with torch.no_grad():
        for piece in ids:
            row = torch.tensor([[tokenizer.cls_token_id, piece, tokenizer.sep_token_id]])
            alone.append(model(input_ids=row).last_hidden_state[0, 1].numpy())
    points = np.array(alone, dtype=float) - np.mean(alone, axis=0)
    first = min(place for piece, place in zip(pieces, ids, strict=True) if len(piece.removeprefix("##")) > 1)
    points *= np.log1p(np.maximum(1, np.array(ids) - first + 1))[:, None]
    # all principal directions are kept, so inner products are those of the weighted points, up to scale and rounding
    assert np.corrcoef((points @ points.T).ravel(), (vectors @ vectors.astype(float).T).ravel())[0, 1] > 0.999
