"""Sections 1 and 2: the package's own benchmarks of the row kernel and of the accumulators."""

import re
import statistics
import subprocess
import tempfile

LINE = re.compile(r"^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.*)$")
# GB in Go's MB, which are 10^6 bytes.
GIGA = 1e-3


def rounds(package, pattern, count=5, benchtime="0.2s"):
    """Runs the benchmarks count times, each time all of them one after another: [{benchmark: {unit: value}}]."""
    out = []
    with tempfile.TemporaryDirectory() as folder:
        binary = f"{folder}/bench.test"
        subprocess.run(["go", "test", "-c", "-o", binary, package], check=True)
        for _ in range(count):
            command = [binary, "-test.run=^$", f"-test.bench={pattern}", f"-test.benchtime={benchtime}", "-test.benchmem"]
            done = subprocess.run(command, capture_output=True, text=True, cwd=package)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)}:\n{done.stdout}{done.stderr}")
            found = {}
            for line in done.stdout.splitlines():
                if m := LINE.match(line):
                    found[m[1]] = {unit: float(value) for value, unit in re.findall(r"(\S+) (\S+)", m[2])}
            out.append(found)
    return out


def middle(all_rounds, name, f):
    """The median over the rounds of f(units of the benchmark, the round)."""
    return statistics.median(f(r[name], r) for r in all_rounds if name in r)


def kernel_rows(all_rounds):
    """The rows of section 1. A benchmark's path and K are in its name, as in Rows/avx512/K=1000; "/e" also stores e.

    The shares of the read bandwidth are those of the same round, so that a slow minute slows both.
    """

    def bandwidth(r, reader):
        return r.get(f"ReadBandwidth/{reader}", {}).get("MB/s", float("nan"))

    read, ahead = (statistics.median(bandwidth(r, reader) * GIGA for r in all_rounds) for reader in ("sum", "ahead"))
    rows = [{"what": "reading: an AVX-512 sum", "ours_text": f"{read:.1f} GB/s; {ahead:.1f} GB/s with lines and pages asked for ahead"}]
    for name in all_rounds[0]:
        k = re.search(r"K=(\d+)", name)
        if not k:
            continue
        rate = middle(all_rounds, name, lambda u, r: u["MB/s"] * GIGA)
        ns = middle(all_rounds, name, lambda u, r: u["ns/row"])
        share, least = (middle(all_rounds, name, lambda u, r, reader=reader: u["MB/s"] / bandwidth(r, reader)) for reader in ("sum", "ahead"))
        what = f"row kernel, {name.removeprefix('Rows/').replace('/e', ', e stored')}"
        row = {"what": what, "ours_text": f"{ns:,.1f} ns/row, {rate:.2f} GB/s, {share:.0%} of reading ({least:.0%} of reading ahead)"}
        row.update(bar_of(name, int(k[1]), ns, share))
        rows.append(row)
    return rows


def bar_of(name, k, ns, share):
    """The bar of a path at a K, as text, and whether it holds."""
    if "Prob" in name or name.endswith("/e"):
        return {}
    if "avx512" in name.lower():
        if k in (1000, 32000):
            return {"bar_text": "≥ 75 %", "holds": share >= 0.75}
        if k in (10, 100):
            most = {10: 8, 100: 65}[k]
            return {"bar_text": f"≤ {most} ns", "holds": ns <= most}
    if "avx2" in name.lower() and k == 1000:
        return {"bar_text": "≥ 45 %", "holds": share >= 0.45}
    return {}


def update_rows(all_rounds):
    """The rows of section 2: the accumulators' own share of a row, whose bar is 75 ns + 0.4 ns·K."""
    rows = []
    for name, units in all_rounds[0].items():
        if "update-ns" not in units:
            continue
        k = int(re.search(r"K=(\d+)", name)[1])
        update, kernel = (middle(all_rounds, name, lambda u, r, unit=unit: u[unit]) for unit in ("update-ns", "kernel-ns"))
        most = 75 + 0.4 * k
        rows.append(
            {
                "what": f"all accumulators, {name.removeprefix('Update/')}",
                "ours_text": f"{update:.0f} ns/row beside {kernel:.0f} of the kernel",
                "bar_text": f"≤ {most:.0f} ns",
                "holds": update <= most,
            }
        )
    return rows


def run_kernel():
    return kernel_rows(rounds("./calib/kernel", "^Benchmark(ReadBandwidth|Rows|ProbRows)$"))


def run_update():
    return update_rows(rounds("./calib/acc", "^BenchmarkUpdate$"))
