"""`python -m dashboard.export.at_address ADDRESS`: print what a page of the app shows as one HTML file, for `isoviz freeze`.

Streamlit's AppTest runs the page for the operator, without a browser; the page's own button makes the file.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from streamlit.testing.v1 import AppTest

from dashboard.export.button import KEY
from dashboard.shared import address, downloads, menu, resources
from isoviz.access import links
from isoviz.errors import LINE, InputError, IsoVizError, listed, one_line, shortened
from isoviz.jobs import queue

APP: Final = Path(__file__).resolve().parents[1] / "app.py"
PAGES: Final = (
    menu.EXPLORE,
    menu.WHATIF,
    menu.RULER,
    menu.COMPARE,
    menu.TRADEOFFS,
    menu.RESULTS,
    menu.EXPERIMENTS,
    menu.PAPERS,
)
"""Those that offer themselves as a file."""
CHOICES: Final = {
    "with_vectors": ("vectors", True),
    "all_layers": ("layers", True),
    "without_texts": ("texts", False),
}
"""Option → the field beside the button, and its value."""
_LOOK = 0.1
"""Seconds between checks of the jobs that the page waits for."""
_LONGEST = 24 * 3600.0
"""Seconds that one run of a page may take."""


def content(url: str, choices: Collection[str] = ()) -> bytes:
    """The HTML file of the page at an address of the app, once the jobs that it starts have ended.

    Args:
        choices: names of `CHOICES`.

    Raises:
        InputError: there is no such page, it reports an error, or it offers no file.
    """
    path, query = _parts(url)
    pages = {Path(file).stem: file for file in PAGES}
    if path not in pages:
        raise _refusal(f"'{shortened(url)}' is no page that can be saved (allowed: {', '.join(pages)})")
    resources.begin()
    try:
        resources.store()  # its errors are the user's; within the page, they would be a traceback
        return _made(pages[path], query, choices)
    finally:
        resources.close()


def _made(file: str, query: Mapping[str, Any], choices: Collection[str]) -> bytes:
    page = AppTest.from_file(APP, default_timeout=_LONGEST).switch_page(file)
    page.query_params.update(query)
    offered: dict[str, downloads.Content] = {}
    page.session_state[downloads.OFFERED] = offered
    complete, bars = False, [""]
    while not complete:
        offered.clear()
        _run(page, query)
        # a job may have ended since its progress was drawn; progress that stays is of runs, which others train
        before, bars = bars, [str(bar.proto) for bar in page.get("progress")]
        complete = not queue.under_way(None) and bars in ([], before)
        while queue.under_way(None):
            time.sleep(_LOOK)
    if KEY not in offered:
        raise _refusal(_why_nothing(page))
    for choice in choices:
        _choose(page, choice)
        _run(page, query)
    made = offered[KEY]()
    return made.encode() if isinstance(made, str) else made


def _run(page: AppTest, query: Mapping[str, Any]) -> None:
    """Run the page. Raises the first problem that it reports, or its traceback."""
    page.run()
    if page.exception:
        raise RuntimeError("\n".join([page.exception[0].message, *page.exception[0].stack_trace]))
    for problem in _problems(page, query):
        raise _refusal(problem)


def _choose(page: AppTest, choice: str) -> None:
    """Switch what the file is to contain, beside the button."""
    name, value = CHOICES[choice]
    field = next((toggle for toggle in page.toggle if toggle.key == f"{KEY}_{name}"), None)
    if field is None or field.disabled:
        reason = field.help if field is not None else f"this page has no choice of {name}"
        raise InputError(f"{choice}: {reason}", field=choice)
    field.set_value(value)


def _parts(url: str) -> tuple[str, dict[str, Any]]:
    """The page's name, and its query parameters as AppTest takes them."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refusal(str(error)) from None
    values = parse_qs(parts.query, keep_blank_values=True)
    values.pop(links.PARAMETER, None)  # the file may be shared
    query = {name: several if len(several) > 1 else several[0] for name, several in values.items()}
    return parts.path.rstrip("/").rpartition("/")[2], query


def _problems(page: AppTest, query: Mapping[str, Any]) -> Iterator[str]:
    """The errors that the page shows, and what it has ignored of the address."""
    yield from (_plain(error.value) for error in page.error)
    ignored = address.dropped(query, page.query_params, page.session_state.to_dict())
    if ignored:
        yield f"the page has no such value: {listed(f'{name}={value}' for name, value in ignored.items())}"
    yield from (_plain(toast.value) for toast in page.toast)


def _why_nothing(page: AppTest) -> str:
    for warning in page.warning:
        return _plain(warning.value)
    for button in page.main.button:
        if button.proto.type == "primary" and not button.disabled:
            return f"nothing has been computed for this address; open it in the app and press {button.label}"
    return (
        "the address leaves open what to show, such as an experiment; vectors and texts that it does not name exist only "
        "in the browser in which they were loaded"
    )


def _plain(markdown: str) -> str:
    """A page's message as plain text."""
    return re.sub(r"\\(.)", r"\1", markdown).replace("**", "")


def _refusal(text: str) -> InputError:
    return InputError(f"address: {text}", field="address")


def main(url: str, *choices: str) -> int:
    """Print the file. Returns 2, with an error message, if there is none."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            made = content(url, choices)
    except IsoVizError as error:
        print(one_line(" ".join(filter(None, (str(error), error.advice))), LINE), file=sys.stderr)
        return 2
    sys.stdout.buffer.write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
