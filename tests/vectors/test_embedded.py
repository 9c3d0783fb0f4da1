"""Vectors inside a page without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoviz import vectors
from isoviz.errors import InputError
from isoviz.tables.kinds.page import START


@pytest.mark.parametrize(
    "page",
    [
        "<!doctype html>",
        f"{START}null</script>",
        f'{START}{{"npy": "AAAA", "columns": {{}}}}</script>',
        f'{START}{{"npy": 1, "columns": {{}}}}</script>',
        f'{START}{{"columns": ',
    ],
)
def test_a_page_without_vectors_is_refused_beside_its_field(tmp_path: Path, page: str) -> None:
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with pytest.raises(InputError, match="not a page with vectors") as caught:
        vectors.read(tmp_path / "page.html")
    assert caught.value.field == "vectors"
