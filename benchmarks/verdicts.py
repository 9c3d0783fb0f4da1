"""Judges every claim on the recorded examples, and compares the verdicts with those of an older version.

    python benchmarks/verdicts.py --record docs/verdicts-COMMIT.json    # in a checkout of that commit: keeps its verdicts
    python benchmarks/verdicts.py --before docs/verdicts-COMMIT.json [--out docs]   # the table of docs/findings.md

Runs are those of `isoviz/demo/examples`; nothing is trained. Figures of layers keep the verdicts of their recording, because the
measured layers of single runs do not ship.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from _report import ROOT, Table, write_section

from factory.record_examples import judged
from isoviz import studies

PAGE, SECTION = "findings.md", "verdicts"


def verdicts() -> list[dict[str, Any]]:
    """Study, claim and outcome, in the papers' order."""
    by_study = {result.provenance.study: result for result in judged().values()}
    slugs = dict.fromkeys(entry.study.slug for entry in studies.listed())
    return [
        {"study": slug, "claim": verdict.claim, "outcome": verdict.outcome}
        for slug in slugs
        for verdict in by_study[slug].verdicts
    ]


def compared(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Table:
    """A row per claim; a dash where a version has no such claim."""
    outcomes = [{(row["study"], row["claim"]): row["outcome"] for row in rows} for rows in (before, after)]
    keys = [*outcomes[1]] + [key for key in outcomes[0] if key not in outcomes[1]]
    rows = []
    for slug, claim in keys:
        study = studies.get(slug)
        cells = [side.get((slug, claim), "—") for side in outcomes]
        changed = "changed" if "—" not in cells and cells[0] != cells[1] else "new" if cells[0] == "—" else ""
        rows.append([f"{study.paper.short}, {study.place}", claim, *cells, changed])
    return Table("Verdicts on the recorded examples, before and after", ["where", "claim", "before", "after", ""], rows)


def body(before: Path) -> str:
    """The section of the page."""
    return compared(json.loads(before.read_text(encoding="utf-8")), verdicts()).markdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", metavar="FILE", type=Path)
    parser.add_argument("--before", metavar="FILE", type=Path)
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "docs")
    chosen = parser.parse_args()
    if chosen.record:
        chosen.record.write_text(json.dumps(verdicts(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    if chosen.before:
        write_section(chosen.out / PAGE, SECTION, body(chosen.before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
