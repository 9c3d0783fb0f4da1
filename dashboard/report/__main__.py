"""`python -m dashboard.report EXPERIMENT FILE`: the report of an experiment, for `python -m isoviz report`."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from dashboard.report import html_file, markdown_file, of_runs
from dashboard.shared.run_lists import Filter


def main(experiment: str, out: str) -> int:
    """Write the file. Returns 2, with an error message, if it cannot be written."""
    logging.getLogger("streamlit").setLevel(logging.ERROR)  # silences the warning that no browser is connected
    if out.endswith(".zip") and not markdown_file.can_draw():
        print(f"Markdown with PNG files {markdown_file.NO_BROWSER}.", file=sys.stderr)
        return 2
    document = of_runs.document(Filter(experiment), experiment)
    content = markdown_file.render(document) if out.endswith(".zip") else html_file.render(document).encode()
    try:
        Path(out).write_bytes(content)
    except OSError as error:
        print(f"out: {out} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
