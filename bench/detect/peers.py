"""River's drift detectors on the streams that the Go harness wrote: first alarm of every run, for a grid of settings.

peers.py DIR reads DIR/streams.json and the arrays beside it, and writes DIR/peers.json: by stream, detector and setting the
row of the first alarm after the change in every run, from 1 (-1: none), and in "early" how many runs had one before it (the
detector goes on then, as it would in service).
"""

import argparse
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
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10**9, help="runs of a stream, at most those in the files")
    parser.add_argument("--quick", action="store_true", help="every second setting (of slow detectors the default), and no late labels")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    args = parser.parse_args()
    jobs = []
    for stream in json.loads((args.folder / "streams.json").read_text()) + json.loads((args.folder / "frozen.json").read_text()):
        # One kind of boundary stream decides the level of false alarms; the others are for detectors with a guarantee.
        if stream["group"] == "false alarms" and stream["name"] not in ("calibrated", "±ε in turns"):
            continue
        if args.quick and stream["group"] == "late labels":
            continue
        runs = min(args.runs, stream["runs"])
        for name, (_, _, values, _) in GRIDS.items():
            few = max(1, runs // SLOW.get(name, 1))
            if args.quick:
                values = values[:1] if name in SLOW else values[::2]
            jobs += [(args.folder, stream, name, value, few) for value in values]
    results = []
    with multiprocessing.Pool(args.processes) as pool:
        for k, result in enumerate(pool.imap_unordered(work, jobs), 1):
            results.append(result)
            print(f"{k}/{len(jobs)} {result['stream']}: {result['detector']}, {result['setting']}", file=sys.stderr, flush=True)
    results.sort(key=lambda r: (r["stream"], r["detector"], not r["default"], r["setting"]))
    (args.folder / "peers.json").write_text(json.dumps(results))


if __name__ == "__main__":
    main()
