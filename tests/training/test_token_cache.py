"""Tokens kept by content: made once, read back equal, bounded, and never in the way."""

from __future__ import annotations

import os

import pytest

from isoviz.models import sources
from isoviz.models.adapter import load_tokenizer
from isoviz.training import token_cache

ROWS = {"input_ids": [[2, 5, 3], [], [7]], "attention_mask": [[1, 1, 1], [], [1]]}


@pytest.fixture(autouse=True)
def own_home(tmp_path, monkeypatch):
    monkeypatch.setenv("ISOVIZ_HOME", str(tmp_path))


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(sources.resolve("demo/tiny-bert"))


def never():
    raise AssertionError("made twice")


@pytest.mark.parametrize("rows", [ROWS, {"input_ids": []}])
def test_second_time_is_read(rows):
    assert token_cache.kept("a", lambda: rows) == rows
    assert token_cache.kept("a", never) == rows
    assert [path.name for path in token_cache.folder().iterdir()] == ["a.safetensors"]


def test_a_broken_file_is_made_again():
    token_cache.kept("a", lambda: ROWS)
    (token_cache.folder() / "a.safetensors").write_bytes(b"broken")
    assert token_cache.kept("a", lambda: ROWS) == ROWS
    assert token_cache.kept("a", never) == ROWS


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    token_cache.folder().write_text("a file where the folder should be")
    assert token_cache.kept("a", lambda: ROWS) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]


def test_what_was_used_longest_ago_goes_first(monkeypatch):
    for number, name in enumerate("abc"):
        token_cache.kept(name, lambda: ROWS)
        os.utime(token_cache.folder() / f"{name}.safetensors", (number, number))
    token_cache.kept("a", never)  # now b is the oldest
    size = (token_cache.folder() / "a.safetensors").stat().st_size
    monkeypatch.setattr(token_cache, "MAX_BYTES", 3 * size)
    token_cache.kept("d", lambda: ROWS)
    assert sorted(path.stem for path in token_cache.folder().iterdir()) == ["a", "c", "d"]
    monkeypatch.setattr(token_cache, "MAX_BYTES", 1)
    token_cache.kept("e", lambda: ROWS)
    assert [path.stem for path in token_cache.folder().iterdir()] == ["e"]


def test_key_follows_everything_that_tokens_depend_on(tokenizer):
    one = token_cache.key("data", tokenizer, max_length=64)
    tokenizer("some text", truncation=True, max_length=5, padding="max_length")  # leaves its traces in a fast tokenizer
    assert token_cache.key("data", tokenizer, max_length=64) == one
    assert token_cache.key("data", tokenizer, max_length=65) != one
    assert token_cache.key("other", tokenizer, max_length=64) != one
    before = token_cache.fingerprint(tokenizer)
    changed = load_tokenizer(sources.resolve("demo/tiny-bert"))
    changed.add_tokens(["entirelynewword"])
    assert token_cache.fingerprint(changed) != before
