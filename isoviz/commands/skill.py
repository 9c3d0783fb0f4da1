"""`isoviz skill`: what an agent should know before it uses IsoViz, as a folder that agents read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from isoviz import input_validation
from isoviz.commands.output import Answer
from isoviz.errors import InputError
from isoviz.operations.operation import argument

NAME: Final = "SKILL.md"
_PACKAGE: Final = Path(__file__).resolve().parents[1]  # in the wheel the file lies inside the package
SKILL: Final = next(folder / NAME for folder in (_PACKAGE, _PACKAGE.parent) if (folder / NAME).is_file())


def run(
    out: Annotated[str, argument("the folder of your agent's skills; the folder isoviz in it is written", "DIR")],
) -> Answer:
    """Write SKILL.md: the order of operations, and what each number may and may not say."""
    target = input_validation.path(out, "out") / "isoviz" / NAME
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(SKILL.read_text(encoding="utf-8"), encoding="utf-8")
    except OSError as error:
        raise InputError.at("out", f"'{target}' cannot be written to: {input_validation.reason(error)}") from None
    return Answer({"file": str(target)}, f"written: {target}")
