"""Tokens kept by content: made once, read back equal, bounded, and never in the way."""

from __future__ import annotations

import os
import subprocess
import sys

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


def files():
    return sorted(path.name for path in token_cache.folder().glob("[!.]*"))


def never():
    raise AssertionError("made twice")


@pytest.mark.parametrize("rows", [ROWS, {"input_ids": []}])
def test_second_time_is_read(rows):
    assert token_cache.cached("a", lambda: rows) == rows
    assert token_cache.cached("a", never) == rows
    assert files() == ["a.safetensors"]


@pytest.mark.parametrize("flipped", [None, -1, -40])
def test_a_broken_file_is_made_again(flipped):
    token_cache.cached("a", lambda: ROWS)
    path = token_cache.folder() / "a.safetensors"
    content = bytearray(path.read_bytes())
    if flipped is not None:  # another token, or another end of a row
        content[flipped] ^= 1
    path.write_bytes(b"broken" if flipped is None else content)
    assert token_cache.cached("a", lambda: ROWS) == ROWS
    assert token_cache.cached("a", never) == ROWS


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    token_cache.folder().write_text("a file where the folder should be")
    assert token_cache.cached("a", lambda: ROWS) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["tokens"]


def test_the_least_recently_used_is_evicted_first(monkeypatch):
    for number, name in enumerate("abc"):
        token_cache.cached(name, lambda: ROWS)
        os.utime(token_cache.folder() / f"{name}.safetensors", (number, number))
    token_cache.cached("a", never)  # now b is the oldest
    size = (token_cache.folder() / "a.safetensors").stat().st_size
    monkeypatch.setattr(token_cache, "MAX_BYTES", 3 * size)
    token_cache.cached("d", lambda: ROWS)
    assert files() == ["a.safetensors", "c.safetensors", "d.safetensors"]
    monkeypatch.setattr(token_cache, "MAX_BYTES", 1)
    token_cache.cached("e", lambda: ROWS)
    assert files() == ["e.safetensors"]


def test_key_follows_everything_that_tokens_depend_on(tokenizer):
    before = token_cache.fingerprint(tokenizer)
    one = token_cache.key("data", before, max_length=64)
    tokenizer("some text", truncation=True, max_length=5, padding="max_length")  # leaves its traces in a fast tokenizer
    assert token_cache.fingerprint(tokenizer) == before
    assert token_cache.key("data", before, max_length=65) != one
    assert token_cache.key("other", before, max_length=64) != one
    assert token_cache.key("data", "other", max_length=64) != one
    changed = load_tokenizer(sources.resolve("demo/tiny-bert"))
    changed.add_tokens(["entirelynewword"])
    assert token_cache.fingerprint(changed) != before
    silent = load_tokenizer(sources.resolve("demo/tiny-bert"))
    silent.model_input_names = ["input_ids", "attention_mask"]  # the same words, but no token types
    assert token_cache.fingerprint(silent) != before


def test_leftovers_of_a_killed_writer_are_removed_in_time():
    token_cache.cached("a", lambda: ROWS)
    old, new = (token_cache.folder() / f".writing-{name}" for name in ("old", "new"))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    token_cache.cached("b", lambda: ROWS)
    assert new.exists()
    assert not old.exists()


WRITER = """
import sys
from isoviz.training import token_cache
rows = {"input_ids": [[number] * 50 for number in range(400)]}
for turn in range(40):
    assert token_cache.cached(f"key-{turn % 2}", lambda: rows) == rows
    if turn % 3 == int(sys.argv[1]):
        (token_cache.folder() / f"key-{turn % 2}.safetensors").unlink(missing_ok=True)
"""


def test_processes_that_write_the_same_at_once_read_it_whole():
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(number)]) for number in range(2)]
    assert [writer.wait(timeout=600) for writer in writers] == [0, 0]
    assert not list(token_cache.folder().glob(".writing-*"))
