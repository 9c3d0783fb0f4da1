"""BibTeX entries by key, from `bibliography.bib`. A method or transform of another package brings its own."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from importlib.resources import files
from types import MappingProxyType

_ENTRY = re.compile(r"^@\w+\{([^,\s]+),.*?^\}", flags=re.MULTILINE | re.DOTALL)


def parse(text: str) -> dict[str, str]:
    """Key → entry, for entries that begin with @ and end with } at the start of a line; other text is ignored."""
    return {match[1]: match[0] for match in _ENTRY.finditer(text)}


@functools.cache
def entries() -> Mapping[str, str]:
    """All entries in the file."""
    return MappingProxyType(parse(files("isoviz").joinpath("bibliography.bib").read_text(encoding="utf-8")))
