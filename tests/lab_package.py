"""A small package as pip leaves it: modules beside a `*.dist-info`, in a folder that tests put on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from isoviz import catalogues, methods, metrics, posthoc, tasks
from isoviz.tables import catalogue as formats

InstallPackage = Callable[..., Path]


def forget_catalogues() -> None:
    """Catalogues are read once per process; after this they are read again."""
    for cached in (
        catalogues._entry_points,
        methods.catalogue,
        methods.combinations,
        metrics.catalogue,
        metrics._functions,
        posthoc.catalogue,
        tasks.catalogue,
        formats.catalogue,
    ):
        cached.cache_clear()


def write_package(
    folder: Path, name: str, modules: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]
) -> Path:
    """Install a package into `folder`: source by module name, and entry points by group and name."""
    (folder / name).mkdir(parents=True)
    for module, source in {"__init__": "", **modules}.items():
        (folder / name / f"{module}.py").write_text(dedent(source))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in named.items()) for group, named in entries.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InstallPackage]:
    """`install_package(name, modules, entries)`: installed for this test, in this process and those it starts."""
    folder = tmp_path / "site"
    installed: list[str] = []

    def install(name: str, modules: Mapping[str, str], entries: Mapping[str, Mapping[str, str]]) -> Path:
        write_package(folder, name, modules, entries)
        installed.append(name)
        monkeypatch.syspath_prepend(folder)
        monkeypatch.setenv("PYTHONPATH", str(folder), prepend=":")
        importlib.invalidate_caches()
        forget_catalogues()
        return folder

    yield install
    monkeypatch.undo()
    for module in [module for module in sys.modules if module.partition(".")[0] in installed]:
        del sys.modules[module]
    forget_catalogues()
