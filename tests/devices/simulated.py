"""The simulated device as torch's accelerator: `torch.device("simulated")`.

Compiled once per version of torch and of its source, into a cache folder. A process that has loaded it keeps it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
import types
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Final

import platformdirs
import torch

NAME: Final = "simulated"
_LIBRARY: Final = "simulated_device"
_SOURCE: Final = Path(__file__).with_suffix(".cpp")


def obstacle() -> str | None:
    """The reason why it cannot be compiled here; None if it can."""
    _find_ninja()
    for program in (os.environ.get("CXX", "c++"), "ninja"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        return "the headers of Python are not installed"
    return None


@functools.cache
def load() -> Any:
    """Compile it if needed and make it this process's accelerator. Returns the compiled module, which sets its memory."""
    digest = hashlib.sha256(_SOURCE.read_bytes() + torch.__version__.encode() + sysconfig.get_platform().encode())
    folder = Path(platformdirs.user_cache_dir("isoviz-tests"))
    file = folder / f"device-{digest.hexdigest()[:16]}.so"
    if file.exists():
        specification = importlib.util.spec_from_file_location(_LIBRARY, file)
        assert specification is not None and specification.loader is not None
        library = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(library)
    else:
        folder.mkdir(parents=True, exist_ok=True)
        library = _compiled(folder, file)
    torch.utils.rename_privateuse1_backend(NAME)
    torch._register_device_module(NAME, _module(library))
    torch.utils.generate_methods_for_privateuse1_backend()
    # Without it, Module.to assigns a new storage to each parameter of such a device, which unties shared weights.
    torch.__future__.set_swap_module_params_on_conversion(True)
    return library


def _compiled(folder: Path, file: Path) -> Any:
    """Compile in a folder of its own: a process that is killed leaves torch's lock behind, for which all later ones would wait."""
    from torch.utils import cpp_extension

    _find_ninja()
    with tempfile.TemporaryDirectory(dir=folder) as build:
        library = cpp_extension.load(_LIBRARY, [str(_SOURCE)], extra_cflags=["-O0"], build_directory=build)
        os.replace(Path(build, f"{_LIBRARY}.so"), file)
    return library


def _find_ninja() -> None:
    """pip installs it beside Python, which need not be on the path."""
    os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))


def _module(library: Any) -> types.ModuleType:
    """What torch, accelerate and IsoViz call of a device, as in `torch.cuda`."""
    module = types.ModuleType(f"torch.{NAME}")
    generator = library.default_generator()
    vars(module).update(
        is_available=lambda: True,
        is_initialized=lambda: True,
        device_count=lambda: 1,
        current_device=lambda: 0,
        set_device=lambda device: None,
        device=lambda device: nullcontext(),
        synchronize=lambda device=None: None,
        empty_cache=lambda: None,
        mem_get_info=torch.accelerator.get_memory_info,
        get_amp_supported_dtype=lambda: [torch.float16, torch.bfloat16, torch.float32],
        get_rng_state=lambda device=0: generator.get_state(),
        set_rng_state=lambda state, device=0: generator.set_state(state),
        manual_seed=generator.manual_seed,
        manual_seed_all=generator.manual_seed,
        _is_in_bad_fork=lambda: False,
    )
    return module
