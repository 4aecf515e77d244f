"""Measures plumbline and its Python peers side by side: python bench/run.py [section ...]. See README.md."""

import os

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "GOMAXPROCS")
for name in THREADS:  # before anything reads them
    os.environ[name] = "1"

import datetime
import json
import logging
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version

import torch

import gobench
import metrics
import others
import report
import temperature
from timing import Worker

RESULTS = pathlib.Path(".cache/bench")
LIBRARIES = ("numpy", "scipy", "scikit-learn", "torch", "torchmetrics", "netcal", "probmetrics", "relplot", "uncertainty-calibration")
SECTIONS = {
    "1": lambda worker, folder: gobench.run_kernel(),
    "2": lambda worker, folder: gobench.run_update(),
    "3": metrics.run,
    "4": temperature.run,
    "5": others.run,
}


def machine():
    """CPU, cores and versions, in one line."""
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.*)", info)[1]
    features = [f for f in ("avx2", "avx512f") if re.search(rf"\b{f}\b", info)]
    go = subprocess.run(["go", "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout.strip()
    libraries = ", ".join(f"{name} {version(name)}" for name in LIBRARIES)
    return f"{model} ({', '.join(features)}), {os.cpu_count()} cores, one used; {go}; Python {platform.python_version()}, {libraries}"


def measure(section, binary, folder):
    worker = Worker(binary, folder)
    try:
        rows = SECTIONS[section](worker, folder)
    finally:
        worker.close()
    return {"section": section, "date": datetime.date.today().isoformat(), "machine": machine(), "rows": rows}


def main():
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    logging.getLogger("netcal").setLevel(logging.ERROR)
    wanted = sys.argv[1:] or list(SECTIONS)
    if unknown := [s for s in wanted if s not in SECTIONS]:
        sys.exit(f"sections {' '.join(unknown)}, allowed are {' '.join(SECTIONS)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    binary = RESULTS / "worker"
    subprocess.run(["go", "-C", "bench", "build", "-o", str(binary.resolve()), "./worker"], check=True)
    if len(wanted) == len(SECTIONS):
        for old in RESULTS.glob("section-*.json"):
            old.unlink()
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        for section in wanted:
            print(f"section {section}", file=sys.stderr, flush=True)
            result = measure(section, binary, pathlib.Path(folder))
            for row in result["rows"]:
                print(report.line(row), *row.get("checks", []), sep="\n  ", file=sys.stderr, flush=True)
            (RESULTS / f"section-{section}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False))
    text = report.table([json.loads(p.read_text()) for p in sorted(RESULTS.glob("section-*.json"))])
    print(text)
    if os.environ.get("PLUMBLINE_DOCS"):
        report.write("peers", text)


if __name__ == "__main__":
    main()
