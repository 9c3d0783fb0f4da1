"""`isoviz study`: the papers' figures and tables, listed, or computed beside the printed numbers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from isoviz import studies
from isoviz.commands.output import print_json
from isoviz.errors import InputError
from isoviz.studies import Result


def run(options: argparse.Namespace) -> int:
    """Carry out one action; 0 when done."""
    return _list(options) if options.action == "list" else _run(options)


def _list(options: argparse.Namespace) -> int:
    cards = [study.card() for study in studies.catalogue().values()]
    if options.json:
        print_json({"studies": cards})
        return 0
    for card in cards:
        print(f"{card['slug']}  {card['paper']}, {card['place']}: {card['title']}")
        print(f"    {card['summary']}")
        for scale, size in card["scales"].items():
            print(f"    --scale {scale}: {size}")
    return 0


def _run(options: argparse.Namespace) -> int:
    study = studies.get(options.name)
    study.check_scale(options.scale)
    folder = _folder(options.out) if options.out else None
    result = study().run(options.scale, _report)
    if folder:
        path = folder / f"{study.slug}.json"
        path.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
        print(f"written: {path}", file=sys.stderr)
    if options.json:
        print_json(result.model_dump(mode="json"))
    else:
        print(as_text(result))
    return 0


def _folder(name: str) -> Path:
    """The folder, made before the computation so that a wrong one costs no time."""
    path = Path(name)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"out: cannot make the folder '{name}': {error.strerror}", field="out") from None
    return path


def _report(share: float, what: str) -> None:
    print(f"{share:4.0%}  {what}", file=sys.stderr, flush=True)


def as_text(result: Result) -> str:
    """A result as lines: each series against x, then the printed numbers and the notes."""
    lines = [result.title]
    for series in result.series:
        lines.append(f"\n{series.name}" + (f" ({series.spread})" if series.spread else ""))
        for i, (x, y) in enumerate(zip(series.x, series.y, strict=True)):
            spread = f"  {series.low[i]:.4f} … {series.high[i]:.4f}" if series.low and series.high else ""
            lines.append(f"  {x:>10,g}  {y:.4f}{spread}")
    lines += ["", *(f"{reference.label}" for reference in result.references)]
    for number in result.published:
        ours = "not computed" if number.reproduced is None else f"{number.reproduced:.5f}"
        lines.append(f"printed {number.published:g}, ours {ours}: {number.what} ({number.where})")
    lines += [f"note: {note}" for note in result.notes]
    record = result.provenance
    versions = ", ".join(f"{name} {version}" for name, version in record.versions.items())
    lines.append(f"scale {record.scale}, seed {record.seed}, {record.seconds:.1f} s, {versions}")
    return "\n".join(lines)
