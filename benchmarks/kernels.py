"""The tests of the numeric rooms under several sets of processor kernels: does anything depend on which one a machine has?

    python benchmarks/kernels.py [--only KERNEL …] [--rooms ROOM …] [--out docs]

OpenBLAS (numpy, scipy), MKL, oneDNN and torch choose their kernels by the processor, and each rounds differently. Whatever rounding
decides, such as a basis of equal eigenvalues, a sign or a tie, differs between machines, and so do numbers recorded from it. Each
row makes the libraries believe that they run on another processor. `--rooms .` runs all tests. Exit code 1 if a test fails.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml
from pathlib import Path

from _report import ROOT, Table, finish, machine, options

_OF_SETS = ["metrics", "statistics", "posthoc", "readouts", "cosines", "whatif", "exploring", "watch", "vectors"]
ROOMS = [*_OF_SETS, "lessons", "studies", "methods", "runs", "training/test_resume.py", "test_reference.py"]
_AVX2 = {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
_NO_AVX512 = {"NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}
_NO_AVX2 = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
_OLDEST = {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
KERNELS: dict[str, dict[str, str]] = {
    "own": {},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell", **_AVX2, **_NO_AVX512},
    "Zen": {"OPENBLAS_CORETYPE": "Zen", **_AVX2, "MKL_CBWR": "AVX2,STRICT", **_NO_AVX512},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott", **_OLDEST, **_NO_AVX2},
}
"""Name → environment. `own` is what the libraries choose on this machine: SkylakeX or newer with AVX-512."""
_LOADED = """
import numpy, scipy.linalg, torch, threadpoolctl
blas = {each["architecture"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas" and "architecture" in each}
print(", ".join(sorted(blas)), "/", torch.backends.cpu.get_cpu_capability())
"""


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", choices=KERNELS, default=list(KERNELS), help="some of the kernels")
    parser.add_argument("--rooms", nargs="+", metavar="ROOM", default=ROOMS, help="folders or files in tests/")
    chosen = parser.parse_args()
    table = Table("Tests by processor kernels", ["kernels", "OpenBLAS / torch", "passed", "skipped", "failed"])
    failures = {}
    for name in chosen.only:
        variables = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **KERNELS[name]}
        loaded = subprocess.run([sys.executable, "-c", _LOADED], env=variables, capture_output=True, text=True)
        counts, failed = _run(chosen.rooms, variables)
        table.rows.append([name, loaded.stdout.strip() or "not available", *map(str, counts)])
        failures |= {f"{name}: {test}": reason for test, reason in failed.items()}
        print(table.text(), flush=True)
    for test, reason in failures.items():
        print(f"{test}\n    {reason}", file=sys.stderr)
    where = machine(("numpy", "scipy", "torch"), "one thread")
    return finish(chosen, "kernels", "## Kernels", where, list(failures), table)


def _run(rooms: list[str], variables: dict[str, str]) -> tuple[tuple[int, int, int], dict[str, str]]:
    """Tests passed, skipped and failed; and the failed ones with the first line of their reason."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        places = [str(ROOT / "tests" / room) for room in rooms]
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
