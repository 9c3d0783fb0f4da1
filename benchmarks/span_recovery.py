"""Does every gold answer of a question-answering set come back out of its features? Counts, and each loss with its reason.

    python benchmarks/span_recovery.py DATA_DIR [MODEL] [--max-length 384] [--doc-stride 128]

DATA_DIR holds train and validation as the task `squad` reads them. Exit status 1 if the tokenizer drops an answer altogether ("no offset").
"""

from __future__ import annotations

import argparse
import sys
import time

from isoviz import tasks
from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.tasks import spans


def main() -> int:
    """Print one line per split and one per answer that is not recovered."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("data")
    parser.add_argument("model", nargs="?", default="demo/tiny-bert")
    parser.add_argument("--max-length", type=int, default=384)
    parser.add_argument("--doc-stride", type=int, default=128)
    options = parser.parse_args()
    tokenizer = load_tokenizer(sources.resolve(options.model))
    data = tasks.load(tasks.get("squad"), options.data)
    broken = 0
    for split, frame in (("train", data.train), ("validation", data.validation)):
        contexts, texts, starts = (frame[name].tolist() for name in ("context", "answer_texts", "answer_starts"))
        began = time.perf_counter()
        found = spans.features(frame["question"].tolist(), contexts, tokenizer, options.max_length, options.doc_stride)
        seconds = time.perf_counter() - began
        recovery = spans.recovery(found, contexts, starts, texts)
        counts = ", ".join(f"{fate} {count}" for fate, count in recovery.counts.items())
        print(f"{split}: {len(frame)} questions, {len(found)} features in {seconds:.1f} s: {counts}")
        for row, (fate, got) in enumerate(zip(recovery.fates, recovery.got, strict=True)):
            if fate != "recovered":
                print(f"  {frame['id'][row]}: {spans.FATES[fate]}: {texts[row][0]!r}, got {got!r}")
        broken += recovery.counts["no offset"]
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
