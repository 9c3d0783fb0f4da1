"""Measures every change of a cloud for "Which measure sees what": `python -m factory.record_responses`.

Writes isoviz/lessons/responses.json: the clouds, and the value of each of this project's measures on each of them. It takes a few
seconds, so it always computes everything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from isoviz import reference
from isoviz.lessons import responses

PATH = Path(responses.__file__).with_name("responses.json")


def main() -> int:
    """0 after the file is written."""
    ours = reference.of_this_project(responses.measures())
    parts: dict[str, Any] = {"plain": {}, **{change.slug: change.part for change in responses.CHANGES}}
    rows = {name: [responses.values(part, seed, ours) for seed in responses.SEEDS] for name, part in parts.items()}
    record = {
        "clouds": {"plain": responses.PLAIN, "changes": {name: dict(part) for name, part in parts.items() if part}},
        "seeds": responses.SEEDS,
        "of_moments": sorted(set.intersection(*(responses.depends_on_moments(seed, ours) for seed in responses.SEEDS))),
        "values": {m.slug: {name: [row[m.slug] for row in of_draws] for name, of_draws in rows.items()} for m in ours},
    }
    PATH.write_text(_text(record) + "\n", encoding="utf-8")
    print(f"written: isoviz/lessons/{PATH.name}, {len(ours)} measures")
    return 0


def _text(value: Any, depth: int = 0) -> str:
    """JSON with one line per list."""
    if not isinstance(value, dict) or depth > 2:
        return json.dumps(value)
    space = " " * (depth + 1)
    entries = ",\n".join(f"{space}{json.dumps(key)}: {_text(entry, depth + 1)}" for key, entry in value.items())
    return f"{{\n{entries}\n{' ' * depth}}}"


if __name__ == "__main__":
    raise SystemExit(main())
