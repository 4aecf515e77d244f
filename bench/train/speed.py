"""Training of heads beside PyTorch on the CPU, in turn: python bench/train/speed.py WORKER [case ...].

WORKER is the binary of bench/train/speed. Both sides have the same rows, initial weights, mini-batches, steps and
threads; before anything is timed, the losses of two epochs in file order are compared. Results go to
.cache/bench/train/speed.json, from which `make bench-train` makes the table.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np
import torch

import head

RESULT = pathlib.Path(".cache/bench/train/speed.json")
STEP = {"lr": 0.01, "momentum": 0.9, "decay": 5e-4}
ROUNDS = 4
# A round trains for about so long, and at least three epochs.
SECONDS = 0.2
# More threads than one are for heads of so many features.
MANY = 512
# Of the mean losses of the epochs that are compared; float32 sums in other orders.
AGREE = 2e-5
OURS = [("gorgonia", "openblas"), ("go", "openblas")]
# Without OpenBLAS, where an epoch has no more operations than this.
PLAIN = [("gorgonia", "gonum"), ("go", "gonum")]
PLAIN_LIMIT = 1e9


def ours_of(c):
    operations = 6 * c["rows"] * sum(d * k for d, k in zip(c["dims"], c["dims"][1:]))
    return OURS + (PLAIN if operations <= PLAIN_LIMIT else [])



def case(title, rows, dims, batch=128, loss="ce", keep=0.0):
    return {"title": title, "rows": rows, "dims": dims, "batch": batch, "loss": loss, "keep": keep}


CASES = {
    "linear64": case("linear, CE", 5000, [64, 10]),
    "au64": case("linear, AU", 5000, [64, 10], loss="au"),
    "bottleneck64": case("bottleneck, CE", 5000, [64, 64, 10]),
    "maccal64": case("bottleneck, MaC-Cal's masks", 5000, [64, 64, 10], keep=0.5),
    "linear512": case("linear, CE", 20000, [512, 100]),
    "bottleneck512": case("bottleneck, CE", 10000, [512, 512, 100]),
    "maccal512": case("bottleneck, MaC-Cal's masks", 10000, [512, 512, 100], keep=0.5),
    "linear2048": case("linear, CE", 10000, [2048, 1000], batch=1024),
    "au2048": case("linear, AU", 10000, [2048, 1000], batch=1024, loss="au"),
}


class Worker:
    """The Go side: one process, one task a line."""

    def __init__(self, binary, threads):
        env = dict(os.environ, GOMAXPROCS=str(threads))
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def do(self, task):
        self.process.stdin.write(json.dumps(task) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer.get("error"):
            raise RuntimeError(f"{task}: {answer['error']}")
        return answer["seconds"], answer["loss"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def write(folder, c):
    """Rows and initial weights of a case, as files and as tensors."""
    rng = np.random.default_rng(1)
    dims = c["dims"]
    x = np.maximum(rng.standard_normal((c["rows"], dims[0]), dtype=np.float32), 0)
    teacher = rng.standard_normal((dims[0], dims[-1]), dtype=np.float32)
    y = np.argmax(x @ teacher + 3 * rng.standard_normal((c["rows"], dims[-1])), axis=1).astype(np.int32)
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", y)
    layers = []
    for i, (d, k) in enumerate(zip(dims, dims[1:])):
        bound = d**-0.5
        w = rng.uniform(-bound, bound, (k, d)).astype(np.float32)
        b = rng.uniform(-bound, bound, k).astype(np.float32)
        np.save(folder / f"w{i}.npy", w)
        np.save(folder / f"b{i}.npy", b)
        layers.append((torch.from_numpy(w), torch.from_numpy(b)))
    return torch.from_numpy(x), torch.from_numpy(y.astype(np.int64)), layers


def measure(binary, name, threads):
    c = CASES[name]
    torch.set_num_threads(threads)
    worker = Worker(binary, threads)
    with tempfile.TemporaryDirectory(prefix="plumbline-bench-") as folder:
        x, y, layers = write(pathlib.Path(folder), c)
        base = {"folder": folder, "threads": threads, "loss": c["loss"], "batch": c["batch"], "keep": c["keep"], **STEP}

        def ours(which, epochs, shuffle=True):
            return worker.do({**base, "backend": which[0], "blas": which[1], "epochs": epochs, "shuffle": shuffle})

        def theirs(kind, epochs, shuffle=True):
            return head.train(x, y, layers, c["batch"], epochs, c["loss"], c["keep"], shuffle, kind, **STEP)

        if not c["keep"]:  # masks come from other generators
            want = theirs("eager", 2, False)[1]
            for which in ours_of(c):
                got = ours(which, 2, False)[1]
                for a, b in zip(got, want):
                    if not abs(a - b) <= AGREE * max(1, abs(b)):
                        raise RuntimeError(f"{name}: {which}: losses {got}, PyTorch's {want}, allowed is a difference of {AGREE:g}")
        sides = {" ".join(w): (lambda e, w=w: ours(w, e)) for w in ours_of(c)} | {k: (lambda e, k=k: theirs(k, e)) for k in head.KINDS}
        times = in_turn(sides)
    worker.close()
    return {"case": name, **c, "threads": threads, "seconds": {k: {"min": min(v), "median": statistics.median(v)} for k, v in times.items()}}


def in_turn(sides):
    """{name: seconds of every epoch but the first of each round}, the sides one after the other in each round."""
    epochs = {}
    for name, side in sides.items():
        epochs[name] = max(3, int(SECONDS / min(side(3)[0][1:])))
    times = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            times[name] += side(epochs[name])[0][1:]
    return times


def machine():
    info = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.*)", info)[1]
    go = subprocess.run(["go", "env", "GOVERSION"], check=True, capture_output=True, text=True).stdout.strip()
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    return f"{model}, {os.cpu_count()} cores; {go}; Python {platform.python_version()}, PyTorch {torch.__version__} ({torch.backends.mkl.is_available() and 'MKL'}); commit {commit}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("worker")
    parser.add_argument("cases", nargs="*", metavar="case", help=f"of {', '.join(CASES)}; all where none is named, and only then are results kept")
    parser.add_argument("--resume", action="store_true", help="keep the cases that are there, of a run that was stopped")
    parser.add_argument("--threads", type=int, nargs="*", default=sorted({1, os.cpu_count()}))
    args = parser.parse_args()
    if unknown := [c for c in args.cases if c not in CASES]:
        parser.error(f"cases {' '.join(unknown)}, allowed are {' '.join(CASES)}")
    rows, about = [], machine()
    if args.resume and RESULT.exists():
        rows = json.loads(RESULT.read_text())["rows"]
    done = {(row["case"], row["threads"]) for row in rows}
    for threads in args.threads:
        for name in args.cases or CASES:
            if not args.cases and (threads > 1 and CASES[name]["dims"][0] < MANY or (name, threads) in done):
                continue
            row = measure(args.worker, name, threads)
            rows.append(row)
            shown = "; ".join(f"{k} {1e3 * v['min']:.2f} ms" for k, v in row["seconds"].items())
            print(f"{name}, {threads} threads: {shown}", file=sys.stderr, flush=True)
            if not args.cases:
                RESULT.parent.mkdir(parents=True, exist_ok=True)
                RESULT.write_text(json.dumps({"date": datetime.date.today().isoformat(), "machine": about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
