"""The table, and its place in bench/results."""

import pathlib
import re

from timing import median


def seconds(times, usual=5):
    """A median with its unit, and how many runs it is of where they are fewer than usual."""
    t = median(times)
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if t * scale >= 1 or unit == "µs":
            text = f"{t * scale:.3g} {unit}" if t * scale < 100 else f"{t * scale:.0f} {unit}"
            break
    return text + (f" ({len(times)} run{'s' if len(times) > 1 else ''})" if len(times) < usual else "")


def line(row):
    """One row of the table."""
    if "peers" not in row:
        met = {True: "yes", False: "**no**"}.get(row.get("holds"), "")
        return f"| {row['what']} | {row['ours_text']} | | | {row.get('bar_text', '')} | {met} |"
    rivals = [p for p in row["peers"] if p not in row.get("apart", ())]
    fastest = min(rivals, key=lambda p: median(row["peers"][p]))
    ratio = median(row["peers"][fastest]) / median(row["ours"])
    peers = "; ".join(f"{p} {seconds(t)}" for p, t in sorted(row["peers"].items(), key=lambda i: median(i[1])))
    bar, met = "", ""
    if row["bar"]:
        bar = f"≥ {row['bar']}×" if row["bar"] > 1 else "> 1×"
        met = "yes" if ratio >= row["bar"] and row.get("holds", True) else "**no**"
    return f"| {row['what']} | {seconds(row['ours'])} | {peers} | {ratio:.1f}× | {bar} | {met} |"


def parts(sections):
    """What each library takes for each metric of section 3, and which checks were made: below the table."""
    lines = []
    for section in sections:
        for row in section["rows"]:
            if row.get("parts"):
                lines.append(f"{row['what']}, each alone from float32 probabilities:")
                for metric, times in row["parts"].items():
                    each = "; ".join(f"{lib} {seconds(t, 1)}" for lib, t in sorted(times.items(), key=lambda i: median(i[1])))
                    lines.append(f"- {metric}: {each}")
                lines.append("")
    return lines


def machine_line(section):
    return f"{section['date']}; {section['machine']}."


def table(sections):
    """Markdown of every section that has a result."""
    heads = list(dict.fromkeys(machine_line(s) for s in sections))
    if len({s["machine"] for s in sections}) == 1 and len({s["date"] for s in sections}) == 1:
        text = [heads[0]]
    else:
        text = [f"Section {s['section']}: {machine_line(s)}" for s in sections]
    text += ["", "| measured | ours | peers | to the fastest | bar | met |", "|---|---|---|---|---|---|"]
    text += [line(row) for s in sections for row in s["rows"]]
    # Every one that failed would have ended the run.
    checks = sum(len(row.get("checks", [])) for s in sections for row in s["rows"])
    text += ["", f"Results were compared {checks} times, without a disagreement.", ""]
    return "\n".join(text + parts(sections)).rstrip() + "\n"


def write(name, text):
    """Put text between the markers of that name in its file."""
    path = f"bench/results/{name}.md"
    page = pathlib.Path(path)
    old = page.read_text()
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    new, found = re.subn(re.escape(begin) + ".*?" + re.escape(end), lambda _: begin + text + end, old, flags=re.S)
    if not found:
        raise SystemExit(f"{path} has no section {name}")
    page.write_text(new)
