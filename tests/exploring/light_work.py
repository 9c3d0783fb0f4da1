"""That work as a process of its own."""

from __future__ import annotations

import sys

from tests.exploring.light_spare import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
