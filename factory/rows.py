"""Writes the bundled rows of the demo tasks, the demo search and the corpus of the recorded encoders: `python -m factory.rows`."""

from __future__ import annotations

import argparse
from pathlib import Path

from factory import everyday, retrieval
from factory.tasks import SLUGS, Row, generate
from isoviz import demo

_OTHERS = {retrieval.SLUG: retrieval.generate, everyday.SLUG: everyday.generate}
EVERY = (*SLUGS, *_OTHERS)


def write(rows: list[Row], path: Path) -> None:
    """One split as compressed Parquet, in columns like those of the data sets of the Hugging Face hub."""
    import pyarrow
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    repeating = ["label", "phenomenon", "query", "grade", "topic", "kind", "domain"]  # texts rarely repeat
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, path, compression="zstd", compression_level=19, use_dictionary=repeating)


def shipped(slug: str) -> dict[str, list[Row]]:
    """The bundled rows, by split."""
    import pyarrow.parquet

    files = sorted(demo.rows_dir(slug).glob("*.parquet"))
    return {file.stem: pyarrow.parquet.read_table(file).to_pylist() for file in files}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m factory.rows", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=EVERY, default=list(EVERY), help="which ones (default: all)")
    for slug in parser.parse_args(arguments).tasks:
        for split, rows in (_OTHERS[slug]() if slug in _OTHERS else generate(slug)).items():
            write(rows, demo.rows_dir(slug) / f"{split}.parquet")


if __name__ == "__main__":
    main()
