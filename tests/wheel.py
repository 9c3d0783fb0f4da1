"""The wheel of this source tree, and Python processes that see nothing but it and chosen packages."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


def built(source: Path, out: Path) -> tuple[Path, Path]:
    """The sdist and the wheel of a source tree."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    return next(out.glob("*.tar.gz")), next(out.glob("*.whl"))


def unpacked(wheel: Path, folder: Path, *, core: bool) -> Path:
    """The wheel's content and links to installed packages: those that it needs without an extra, or all."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    installed = Path(str(distribution("numpy").locate_file("")))
    metadata = PathDistribution(next(folder.glob("*.dist-info")))
    tops = _tops(_needs(metadata)) if core else {path.name for path in installed.iterdir()}
    for top in tops:
        if "isoviz" not in top and not (folder / top).exists():
            (folder / top).symlink_to(installed / top)
    return folder


def _needs(package: Distribution) -> set[str]:
    """Names of its direct requirements without extras."""
    found = (Requirement(line) for line in package.requires or ())
    return {one.name for one in found if one.marker is None or one.marker.evaluate({"extra": ""})}


def _tops(packages: set[str]) -> set[str]:
    done: set[str] = set()
    while todo := packages - done:
        done |= todo
        packages = packages.union(*(_needs(distribution(name)) for name in todo))
    files = [file.parts[0] for name in packages for file in distribution(name).files or ()]
    return {top for top in files if top not in ("..", "__pycache__")}


def start(site: Path, *words: str, cwd: Path) -> subprocess.Popen[str]:
    """`python -m isoviz` with the standard library and this folder only, in `cwd`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "ISOVIZ"))}
    environment = inherited | {"PYTHONPATH": str(site), "ISOVIZ_HOME": str(cwd / "home"), "HF_HUB_OFFLINE": "1"}
    environment["ISOVIZ_SPARES"] = "off"
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-S", "-m", "isoviz", *words]
    return subprocess.Popen(command, cwd=cwd, env=environment, text=True, start_new_session=True, **pipes)
