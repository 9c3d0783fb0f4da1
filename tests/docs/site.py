"""The documentation site, built once per test process."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.pages import ROOT


@functools.cache
def built() -> Path:
    """Its folder. mkdocs' strict mode makes a warning an error: a broken link or anchor, or a page without a place in the navigation."""
    folder = Path(tempfile.mkdtemp(prefix="isoviz-site-"))
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
    return folder
