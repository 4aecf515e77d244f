"""River's drift detectors on the streams that the Go harness wrote: first alarm of every run, for a grid of settings.

peers.py DIR reads DIR/streams.json and the arrays beside it, and writes DIR/peers.json:
[{"stream": name, "detector": name, "setting": text, "default": bool, "first": [row or -1, ...]}, ...]
A run is followed to the first alarm after the change; alarms before it are put in "early" (runs with one), and the detector
goes on, as it would in service. Rows count from 1.
"""

import json
import multiprocessing
import sys
from pathlib import Path

import numpy as np
from river import drift
from river.drift import binary

# What each watches: "gap" is a - c, "error" is 1 - a. The first setting is river's default.
GRIDS = {
    "ADWIN (a − c)": ("gap", "delta", [2e-3, 1e-4, 1e-6, 1e-9, 1e-15, 1e-25], lambda v: drift.ADWIN(delta=v)),
    "ADWIN (error)": ("error", "delta", [2e-3, 1e-4, 1e-6, 1e-9, 1e-15, 1e-25], lambda v: drift.ADWIN(delta=v)),
    "Page–Hinkley (a − c)": ("gap", "threshold", [50, 20, 100, 200, 400], lambda v: drift.PageHinkley(threshold=v)),
    "KSWIN (a − c)": ("gap", "alpha", [5e-3, 1e-5, 1e-8, 1e-12], lambda v: drift.KSWIN(alpha=v, seed=1)),
    "DDM (error)": ("error", "drift_threshold", [3.0, 4.0, 5.0, 7.0], lambda v: binary.DDM(drift_threshold=v)),
    "HDDM_A (error)": ("error", "drift_confidence", [1e-3, 1e-5, 1e-8, 1e-12, 1e-18], lambda v: binary.HDDM_A(drift_confidence=v)),
    "HDDM_W (error)": ("error", "drift_confidence", [1e-3, 1e-5, 1e-8, 1e-12, 1e-18], lambda v: binary.HDDM_W(drift_confidence=v)),
}

# KSWIN sorts two windows at every row: a hundred times slower than the others, so it has fewer runs.
SLOW = {"KSWIN (a − c)": 10}


def first_alarm(make, value, rows, change):
    """Row of the first alarm after the change, -1 for none, and whether there was one before."""
    detector, early = make(value), False
    update = detector.update
    for i, x in enumerate(rows, 1):
        update(x)
        if detector.drift_detected:
            if i > change:
                return i, early
            early = True
    return -1, early


def work(job):
    folder, stream, name, value, runs = job
    signal, _, values, make = GRIDS[name]
    n = stream["rows"]
    c = np.load(folder / stream["confidence"], mmap_mode="r").reshape(-1, n)
    right = np.load(folder / stream["right"], mmap_mode="r").reshape(-1, n)
    first, early = [], 0
    for run in range(min(runs, len(c))):
        a = right[run].astype(float)
        rows = a - c[run] if signal == "gap" else 1 - a
        at, before = first_alarm(make, value, rows.tolist(), stream["change"])
        first.append(at)
        early += before
    return {
        "stream": stream["name"], "group": stream["group"], "detector": name, "setting": f"{GRIDS[name][1]} = {value:g}",
        "default": value == values[0], "first": first, "early": early,
    }


def main():
    folder, processes = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else multiprocessing.cpu_count()
    streams = json.loads((folder / "streams.json").read_text())
    jobs = []
    for stream in streams:
        for name, (_, _, values, _) in GRIDS.items():
            runs = stream["runs"] if name not in SLOW else max(1, stream["runs"] // SLOW[name])
            jobs += [(folder, stream, name, value, runs) for value in values]
    results = []
    with multiprocessing.Pool(processes) as pool:
        for k, result in enumerate(pool.imap(work, jobs), 1):
            results.append(result)
            print(f"\r{k}/{len(jobs)} {result['stream']}: {result['detector']}".ljust(100), end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    (folder / "peers.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
