"""Logs rows and labels through a broker at 10,000 rows a second, and prints what it took as JSON. copy is what a copy
of the scores alone takes in the same run, at the place of every second call of log: the machine's load shows in both.

    python broker.py kafka://HOST:PORT?logits=TOPIC&labels=TOPIC ROWS [ROWS_A_CALL]
"""
import dataclasses
import json
import sys
import time

import numpy as np

from plumbline import PlumblineLogger

to, rows, per = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
rng = np.random.default_rng(1)
logits = rng.normal(size=(rows, 5)).astype(np.float32)
y = logits.argmax(axis=1)
logger = PlumblineLogger("client", version="3", to=to)
took, copies, begin = [], [], time.perf_counter()
for i in range(0, rows, per):
    while (wait := begin + i / 10_000 - time.perf_counter()) > 0:
        time.sleep(min(wait, 0.0005))
    ids = [f"row-{per}-{j}" for j in range(i, min(i + per, rows))]
    scores = logits[i : i + per]
    before = time.perf_counter()
    if i // per % 2:
        np.copy(scores)
        copies.append(time.perf_counter() - before)
        logger.log(ids, logits=scores, region="eu")
    else:
        logger.log(ids, logits=scores, region="eu")
        took.append(time.perf_counter() - before)
    logger.label(ids, y[i : i + per])
seconds = time.perf_counter() - begin
stats = logger.close(timeout=60)
p50, p99 = np.percentile(took, [50, 99]) * 1e6
copy50, copy99 = np.percentile(copies, [50, 99]) * 1e6
print(json.dumps({"p50_us": round(p50, 1), "p99_us": round(p99, 1), "copy_p50_us": round(copy50, 1),
                  "copy_p99_us": round(copy99, 1), "rows_s": round(rows / seconds),
                  **dataclasses.asdict(stats)}))
