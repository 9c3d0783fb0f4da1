"""Kinds of files that are never read, and what to do instead."""

from __future__ import annotations

from isoviz.tables.protocol import Format, Glimpse

_PICKLED = (".pkl", ".pickle", ".joblib")


def _is_workbook(glimpse: Glimpse) -> bool:
    return "[Content_Types].xml" in glimpse.members or glimpse.start.startswith(b"\xd0\xcf\x11\xe0")


def _is_pickle(glimpse: Glimpse) -> bool:
    marked = glimpse.start[:1] == b"\x80" and glimpse.start[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")
    return glimpse.ending in _PICKLED or (marked and b"." in glimpse.start and glimpse.ending not in (".pt", ".pth"))


FORMATS = (
    Format(
        "workbook", "a workbook (Excel)", (".xlsx", ".xls"), _is_workbook, "nothing", advice="save the sheet as CSV"
    ),
    Format(
        "pickle", "a pickle", _PICKLED, _is_pickle, "nothing",
        advice="opening one runs its code; where you trust it, load it in Python and save the vectors with numpy.save",
    ),
    Format(
        "fasttext", "a fastText model", (".ftz",), lambda glimpse: glimpse.start.startswith(b"\xba\x16O/"), "nothing",
        advice="save its word vectors as text (.vec)",
    ),
)  # fmt: skip
