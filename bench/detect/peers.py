"""River itself on the first runs of the streams: the harness's detectors are held against it, and KSWIN has its only runs here.

peers.py DIR reads DIR/peers.json (what the harness measured with detectors written after river's) and the streams in DIR/streams.json
and DIR/frozen.json with the arrays beside them. It runs river on the first --runs runs of every stream, detector and setting, compares
first alarms, and writes DIR/river.json: how many runs were compared and how many agree, and KSWIN's first alarms. Every run is kept
as it ends, a line of DIR/river.jsonl, and not run again.
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

# What each watches: "gap" is a - c, "error" is 1 - a.
DETECTORS = {
    "Page–Hinkley (a − c)": ("gap", lambda v: drift.PageHinkley(threshold=v)),
    "DDM (error)": ("error", lambda v: binary.DDM(drift_threshold=v)),
    "ADWIN (a − c)": ("gap", lambda v: drift.ADWIN(delta=v)),
    "HDDM_A (error)": ("error", lambda v: binary.HDDM_A(drift_confidence=v)),
    "HDDM_W (error)": ("error", lambda v: binary.HDDM_W(drift_confidence=v)),
    "KSWIN (a − c)": ("gap", lambda v: drift.KSWIN(alpha=v, seed=1)),
}

# KSWIN sorts two windows at every row, a hundred times slower than the others, and draws from them at random: the default alone.
KSWIN = ("KSWIN (a − c)", "alpha", 0.005)
KSWIN_RUNS = 2


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
        streams = json.loads((folder / "streams.json").read_text())
        for s in json.loads((folder / "frozen.json").read_text()):
            s["id"] = hashlib.sha256((folder / s["right"]).read_bytes() + (folder / s["confidence"]).read_bytes()).hexdigest()[:12]
            streams.append(s)
        self.streams = {s["name"]: s for s in streams}
        self.path = folder / "river.jsonl"
        self.kept = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                r = json.loads(line)
                self.kept[tuple(r["key"])] = (r["first"], r["early"])
        self.stamp = {"commit": subprocess.run(["git", "describe", "--always", "--exclude=*"], capture_output=True, text=True).stdout.strip()}
        self.log = self.path.open("a")

    def run(self, stream, name, value, run):
        """First alarm of one run and whether there was an early one, kept or measured now."""
        key = (stream["id"], name, f"{value:g}", run, river.__version__)
        if key not in self.kept:
            if time.monotonic() > self.deadline:
                raise TimeoutError
            n = stream["rows"]
            c = np.load(self.folder / stream["confidence"], mmap_mode="r").reshape(-1, n)[run]
            a = np.load(self.folder / stream["right"], mmap_mode="r").reshape(-1, n)[run].astype(float)
            rows = a - c if DETECTORS[name][0] == "gap" else 1 - a
            self.kept[key] = first_alarm(DETECTORS[name][1], value, rows.tolist(), stream["change"])
            first, early = self.kept[key]
            self.log.write(json.dumps({"key": key, "stream": stream["name"], "first": first, "early": early, **self.stamp}, ensure_ascii=False) + "\n")
            self.log.flush()
        first, early = self.kept[key]
        every = stream.get("every") or 1
        return first * every if first > 0 else -1, early

    def check(self, peers, runs, out):
        """Compares the first runs of every stream, detector and setting."""
        for run in range(runs):
            for p in peers:
                stream = self.streams.get(p["Stream"])
                if not stream:  # not exported
                    continue
                if run >= min(len(p["First"]), stream["runs"]):
                    continue
                first, _ = self.run(stream, p["Detector"], float(p["Setting"].split(" = ")[1]), run)
                out["compared"] += 1
                if first == p["First"][run]:
                    out["equal"] += 1
                else:
                    out["different"].append([p["Stream"], p["Detector"], p["Setting"], run, first, p["First"][run]])

    def kswin(self, out):
        """KSWIN's first alarms, one run of every stream after the other; what is there when time is up counts."""
        name, parameter, value = KSWIN
        runs = {s: [] for s in self.streams}
        out["peers"] = [{"Stream": s["name"], "Group": s["group"], "Detector": name, "Setting": f"{parameter} = {value:g}", "Order": 0,
                         "First": runs[s["name"]], "Early": 0} for s in self.streams.values()]
        for run in range(KSWIN_RUNS):
            for p, stream in zip(out["peers"], self.streams.values()):
                if run < stream["runs"]:
                    first, early = self.run(stream, name, value, run)
                    p["First"].append(first)
                    p["Early"] += bool(early)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=3, help="runs of every stream, detector and setting to compare")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time, with what there is")
    args = parser.parse_args()
    bench = Bench(args.folder, time.monotonic() + args.seconds)
    out = {"river": river.__version__, "compared": 0, "equal": 0, "different": [], "peers": []}
    for step in (lambda: bench.check(json.loads((args.folder / "peers.json").read_text()), args.runs, out), lambda: bench.kswin(out)):
        try:
            step()
        except TimeoutError:
            print("time is up", file=sys.stderr)
    (args.folder / "river.json").write_text(json.dumps(out))
    print(f"{out['equal']} of {out['compared']} first alarms agree with river {river.__version__}", file=sys.stderr)
    for d in out["different"][:20]:
        print("different:", d, file=sys.stderr)


if __name__ == "__main__":
    main()
