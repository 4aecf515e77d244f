"""River's drift detectors on the streams that the Go harness wrote: first alarm of every run, for a grid of settings.

peers.py DIR reads DIR/streams.json, DIR/frozen.json and the arrays beside them. Every run is kept as it ends, a line of
DIR/peers.jsonl, and not run again. DIR/peers.json has by stream, detector and setting the row of the first alarm after the change
in every run, from 1 (-1: none), and in "early" how many runs had one before it (the detector goes on then, as it would in service).

Order of work: settings on the boundary stream and the calibrated one, from the most sensitive to the first with alarms in at most
1 % of the runs, the calm one (a setting is given up at the alarm that makes it more); then the default and the calm setting on all
other streams. First with --few runs of everything, then with all.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import river
from river import drift
from river.drift import binary

# What each watches: "gap" is a - c, "error" is 1 - a. Settings go from sensitive to calm; the first is river's default.
GRIDS = {
    "Page–Hinkley (a − c)": ("gap", "threshold", [50, 100, 150, 200, 300, 400, 600], lambda v: drift.PageHinkley(threshold=v)),
    "DDM (error)": ("error", "drift_threshold", [3, 3.5, 4, 4.5, 5, 6, 7], lambda v: binary.DDM(drift_threshold=v)),
    "ADWIN (a − c)": ("gap", "delta", [2e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10], lambda v: drift.ADWIN(delta=v)),
    "HDDM_A (error)": ("error", "drift_confidence", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10], lambda v: binary.HDDM_A(drift_confidence=v)),
    "HDDM_W (error)": ("error", "drift_confidence", [1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10], lambda v: binary.HDDM_W(drift_confidence=v)),
    "KSWIN (a − c)": ("gap", "alpha", [5e-3, 1e-5, 1e-8, 1e-12], lambda v: drift.KSWIN(alpha=v, seed=1)),
}

# KSWIN sorts two windows at every row: a hundred times slower than the others, so it has fewer runs.
SLOW = {"KSWIN (a − c)": 2}

CALM_SHARE = 0.01
BOUNDARY = ("±ε in turns", "calibrated")


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


class Bench:
    def __init__(self, folder, deadline):
        self.folder, self.deadline = folder, deadline
        self.streams = json.loads((folder / "streams.json").read_text())
        for s in json.loads((folder / "frozen.json").read_text()):
            s["id"] = hashlib.sha256((folder / s["right"]).read_bytes() + (folder / s["confidence"]).read_bytes()).hexdigest()[:12]
            self.streams.append(s)
        self.path = folder / "peers.jsonl"
        self.kept = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                r = json.loads(line)
                self.kept[tuple(r["key"])] = (r["first"], r["early"])
        self.stamp = {"commit": subprocess.run(["git", "describe", "--always", "--exclude=*"], capture_output=True, text=True).stdout.strip(),
                      "river": river.__version__}
        self.log = self.path.open("a")

    def run(self, stream, name, value, run):
        """First alarm of one run and whether there was an early one, kept or measured now."""
        if time.monotonic() > self.deadline:
            raise TimeoutError
        key = (stream["id"], name, f"{value:g}", run, river.__version__)
        if key not in self.kept:
            n = stream["rows"]
            c = np.load(self.folder / stream["confidence"], mmap_mode="r").reshape(-1, n)[run]
            a = np.load(self.folder / stream["right"], mmap_mode="r").reshape(-1, n)[run].astype(float)
            rows = a - c if GRIDS[name][0] == "gap" else 1 - a
            self.kept[key] = first_alarm(GRIDS[name][3], value, rows.tolist(), stream["change"])
            first, early = self.kept[key]
            self.log.write(json.dumps({"key": key, "stream": stream["name"], "first": first, "early": early, **self.stamp}, ensure_ascii=False) + "\n")
            self.log.flush()
        return self.kept[key]

    def calm(self, name, value, runs):
        """Whether the setting alarms in at most 1 % of that many runs of the boundary streams."""
        for stream in self.streams:
            if stream["name"] in BOUNDARY:
                alarms = 0
                for run in range(min(runs, stream["runs"])):
                    alarms += self.run(stream, name, value, run)[0] >= 0
                    if alarms > CALM_SHARE * min(runs, stream["runs"]):
                        return False
        return True

    def campaign(self, calm_runs, other_runs):
        for name, (_, _, values, _) in GRIDS.items():
            most = SLOW.get(name, calm_runs)
            default = values[0]
            for stream in self.streams:  # the default's level of false alarms is reported, however high
                if stream["name"] in BOUNDARY:
                    for run in range(min(most, 20, stream["runs"])):
                        self.run(stream, name, default, run)
            calm = next((v for v in values if self.calm(name, v, most)), None)
            for value in dict.fromkeys([default] if calm is None else [default, calm]):
                for stream in self.streams:
                    if stream["name"] not in BOUNDARY:
                        for run in range(min(other_runs, most, stream["runs"])):
                            self.run(stream, name, value, run)
            print(f"{name}: {GRIDS[name][1]} = {calm} is calm in {most} runs", file=sys.stderr, flush=True)
            self.write()

    def write(self):
        results = []
        for stream in self.streams:
            every = stream.get("every", 1)
            for name, (_, parameter, values, _) in GRIDS.items():
                for order, value in enumerate(values):
                    runs = []
                    while (k := (stream["id"], name, f"{value:g}", len(runs), river.__version__)) in self.kept:
                        runs.append(self.kept[k])
                    if runs:
                        results.append({"stream": stream["name"], "group": stream["group"], "detector": name, "setting": f"{parameter} = {value:g}",
                                        "order": order, "first": [f * every if f >= 0 else -1 for f, _ in runs], "early": sum(bool(e) for _, e in runs)})
        (self.folder / "peers.json").write_text(json.dumps(results))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--few", type=int, default=20, help="runs of everything in the first round")
    parser.add_argument("--calm-runs", type=int, default=100, help="runs of the boundary streams in the end")
    parser.add_argument("--runs", type=int, default=40, help="runs of the other streams in the end")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time, with what there is")
    args = parser.parse_args()
    bench = Bench(args.folder, time.monotonic() + args.seconds)
    try:
        bench.campaign(args.few, args.few)
        bench.campaign(args.calm_runs, args.runs)
    except TimeoutError:
        print("time is up", file=sys.stderr)
    bench.write()


if __name__ == "__main__":
    main()
