"""`python -m dashboard.report EXPERIMENT FILE`: the report of an experiment, for `python -m isoviz report`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from dashboard.report import html_file, of_runs
from dashboard.shared.run_lists import Filter


def main(experiment: str, out: str) -> int:
    """Write the file. Returns 2, with an error message, if it cannot be written."""
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # silences the warning that no browser is connected
    document = of_runs.document(Filter(experiment), experiment)
    try:
        Path(out).write_text(html_file.render(document), encoding="utf-8")
    except OSError as error:
        print(f"out: {out} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
