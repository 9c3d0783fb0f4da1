"""Writes the bundled rows of the demo tasks and the demo search: `python -m factory.rows`."""

from __future__ import annotations

import argparse
from pathlib import Path

from factory import retrieval
from factory.tasks import SLUGS, Row, generate
from isoviz import demo

EVERY = (*SLUGS, retrieval.SLUG)


def write(rows: list[Row], path: Path) -> None:
    """One split as compressed Parquet, in columns like those of the data sets of the Hugging Face hub."""
    import pyarrow
    import pyarrow.parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    repeating = ["label", "phenomenon", "query", "grade", "topic"]  # texts rarely repeat
    table = pyarrow.Table.from_pylist(rows)
    pyarrow.parquet.write_table(table, path, compression="zstd", compression_level=19, use_dictionary=repeating)


def shipped(slug: str) -> dict[str, list[Row]]:
    """The bundled rows, by split."""
    import pyarrow.parquet

    folder = demo.rows_dir(slug)
    splits = ("queries", "documents", "relevance") if slug == retrieval.SLUG else ("train", "validation")
    return {split: pyarrow.parquet.read_table(folder / f"{split}.parquet").to_pylist() for split in splits}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m factory.rows", description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=EVERY, default=list(EVERY), help="which ones (default: all)")
    for slug in parser.parse_args(arguments).tasks:
        for split, rows in (retrieval.generate() if slug == retrieval.SLUG else generate(slug)).items():
            write(rows, demo.rows_dir(slug) / f"{split}.parquet")


if __name__ == "__main__":
    main()
