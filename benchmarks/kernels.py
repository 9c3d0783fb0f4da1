"""The tests of the numeric rooms under several sets of processor kernels: does anything depend on which one a machine has?

    python benchmarks/kernels.py [--all] [--only KERNEL,…] [ROOM …] [--out docs]

OpenBLAS (numpy, scipy), MKL, oneDNN and torch choose their kernels by the processor, and each rounds differently. Whatever rounding
decides, such as a basis of equal eigenvalues, a sign or a tie, differs between machines, and so do numbers recorded from it. Each
row makes the libraries believe that they run on another processor. `--all` runs all tests, which takes long. Exit code 1 if a
test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as Xml
from pathlib import Path

from _report import ROOT, Table, finish, machine, options

ROOMS = [
    "metrics",
    "posthoc",
    "lessons",
    "readouts",
    "cosines",
    "whatif",
    "studies",
    "statistics",
    "exploring",
    "runs/test_association.py",
    "runs/test_comparing.py",
    "watch",
    "methods",
    "vectors",
    "training/test_resume.py",
    "test_reference.py",
]
_AVX2 = {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
_NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}
_OLDEST = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
KERNELS: dict[str, dict[str, str]] = {
    "own": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", **_AVX2, **_NO_AVX512},
    "Zen": {"OPENBLAS_CORETYPE": "Zen", **_AVX2, "MKL_CBWR": "AVX2,STRICT", **_NO_AVX512},
    "Prescott": {
        "OPENBLAS_CORETYPE": "Prescott",
        **_OLDEST,
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR",
    },
}
"""Name → environment. `own` is what the libraries choose on this machine: SkylakeX or newer with AVX-512."""
_LOADED = """
import numpy, scipy.linalg, torch, threadpoolctl
blas = {each["architecture"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas" and "architecture" in each}
print(", ".join(sorted(blas)), "/", torch.backends.cpu.get_cpu_capability())
"""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--all", action="store_true", help="all tests instead of the numeric rooms")
    parser.add_argument("--only", metavar="KERNEL,…", default=",".join(KERNELS), help="some of %(default)s")
    parser.add_argument("rooms", nargs="*", metavar="ROOM", default=ROOMS, help="folders or files in tests/")
    chosen = parser.parse_args()
    names = chosen.only.split(",")
    if unknown := set(names) - set(KERNELS):
        parser.error(f"--only: unknown kernels {', '.join(sorted(unknown))}; choose from {', '.join(KERNELS)}")
    table = Table(
        "Tests by processor kernels", ["kernels", "OpenBLAS / torch", "passed", "skipped", "failed", "minutes"]
    )
    failures = {}
    for name in names:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **KERNELS[name]}
        loaded = subprocess.run([sys.executable, "-c", _LOADED], env=variables, capture_output=True, text=True)
        began = time.monotonic()
        counts, failed = _run([] if chosen.all else chosen.rooms, variables)
        minutes = (time.monotonic() - began) / 60
        table.rows.append([name, loaded.stdout.strip() or "not available", *map(str, counts), f"{minutes:.1f}"])
        failures |= {f"{name}: {test}": reason for test, reason in failed.items()}
        print(table.text(), flush=True)
    for test, reason in failures.items():
        print(f"{test}\n    {reason}", file=sys.stderr)
    return finish(
        chosen, "kernels", "## Kernels", machine(("numpy", "scipy", "torch"), "one thread"), list(failures), table
    )


def _run(rooms: list[str], variables: dict[str, str]) -> tuple[tuple[int, int, int], dict[str, str]]:
    """Tests passed, skipped and failed; and the failed ones with the first line of their reason."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        places = [str(ROOT / "tests" / room) for room in rooms] or [str(ROOT / "tests")]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *places]
        subprocess.run(command, env=variables, cwd=ROOT, stdout=subprocess.DEVNULL)
        cases = list(Xml.parse(report).iter("testcase"))
    skipped = sum(case.find("skipped") is not None for case in cases)
    failed = {}
    for case in cases:
        for problem in [*case.findall("failure"), *case.findall("error")]:
            lines = problem.get("message", "").splitlines() or [""]
            failed[f"{case.get('classname')}::{case.get('name')}"] = lines[0][:200]
    return (len(cases) - skipped - len(failed), skipped, len(failed)), failed


if __name__ == "__main__":
    sys.exit(main())
