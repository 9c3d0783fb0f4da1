"""How the command line speaks: one JSON document on stdout, everything else on stderr."""

from __future__ import annotations

import json
import sys
from typing import Any


def print_json(document: Any) -> None:
    """Exactly one JSON document on stdout; undefined numbers are null, never NaN."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def quiet_libraries() -> None:
    """Keep the libraries' progress bars and load reports out of the answer."""
    import os

    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TQDM_DISABLE", "1")
