"""SKILL.md: short, its commands parse, and `isoviz skill` writes it."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from isoviz.__main__ import build_parser, main
from isoviz.commands.skill import SKILL


def test_every_command_of_the_skill_parses() -> None:
    text = SKILL.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 70
    commands = [line for block in re.findall(r"```bash\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    verbs = []
    for command in commands:
        words = shlex.split(command)[1:]
        assert build_parser(words).parse_args(words).verb == words[0]
        verbs.append(words[0])
    assert list(dict.fromkeys(verbs)) == ["measure", "ruler", "compare", "check", "transform", "upgrade"]


def test_it_is_written_where_an_agent_reads_it(tmp_path: Path) -> None:
    assert main(["skill", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "isoviz" / "SKILL.md").read_text(encoding="utf-8") == SKILL.read_text(encoding="utf-8")
