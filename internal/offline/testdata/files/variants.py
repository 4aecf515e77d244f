"""Writes the same predictions as people's tools do, and variants.json, which says how to read each file.

    python variants.py DIRECTORY [ROWS]

Needs NumPy, pandas, pyarrow, polars and scikit-learn. Every file must give the numbers of its reference, an .npz
file of the same precision.
The files beside this script are those of 40 rows (NumPy 2.4, pandas 3.1, pyarrow 26, polars 2.1, scikit-learn 1.9).
"""
import csv
import gzip
import json
import pathlib
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
from sklearn.linear_model import LogisticRegression

out = pathlib.Path(sys.argv[1])
rows = int(sys.argv[2]) if len(sys.argv) > 2 else 40
out.mkdir(parents=True, exist_ok=True)
variants = []


def add(name, reference, times=False, **options):
    """A file that is written now must be read as the reference."""
    variants.append({"file": name, "reference": reference, "times": times, "options": options})
    return out / name


# Answers of a real classifier, in float32: every writer can give them back exactly.
rng = np.random.default_rng(7)
centers = rng.normal(size=(3, 4)) * 1.2
y = np.r_[0, 1, 2, rng.integers(0, 3, rows - 3)]
x = centers[y] + rng.normal(size=(rows, 4))
model = LogisticRegression().fit(x, y)
logits = np.asarray(model.decision_function(x), np.float32).astype(float)
probs = np.asarray(model.predict_proba(x), np.float32).astype(float)
y2 = (y > 0).astype(int)
model2 = LogisticRegression().fit(x, y2)
prob = np.asarray(model2.predict_proba(x)[:, 1], np.float32).astype(float)
logit = np.asarray(model2.decision_function(x), np.float32).astype(float)
half = logits.astype(np.float16)
ids = [f"row-{i}" for i in range(rows)]
when = pd.date_range("2026-03-01 10:00:00.250", periods=rows, freq="90s")
ns = when.values.astype("datetime64[ns]")
names, pets = np.array(["no", "yes"]), np.array(["cat", "dog", "bird"])
known = np.where(np.arange(rows) % 5 == 4, -1, y)  # some labels are not known yet
hot = np.eye(3)[y]

np.savez(out / "logits.npz", logits=logits, label=y.astype(np.int32), ts=ns)
np.savez(out / "logits-32.npz", logits=logits.astype(np.float32), label=y.astype(np.int32), ts=ns)
np.savez(out / "probs.npz", probs=probs, label=y.astype(np.int32), ts=ns)
np.savez(out / "half.npz", logits=half, label=y.astype(np.int32))
np.savez(out / "binary.npz", probs=np.stack([1 - prob, prob], 1), label=y2.astype(np.int32), ts=ns)
np.savez(out / "margin.npz", logits=np.stack([0 * logit, logit], 1), label=y2.astype(np.int32))
np.savez(out / "known.npz", probs=probs, label=known.astype(np.int32))

table = lambda a, prefix, keys=range(3): {f"{prefix}{k}": a[:, i] for i, k in enumerate(keys)}
binary = lambda label, score="y_prob", target="y_true": pd.DataFrame({target: label, score: prob})
listed = lambda a: [list(map(float, r)) for r in a]

# CSV by pandas.
binary(y2.astype(float)).to_csv(add("binary.csv", "binary"), index=False)
binary(y2).to_csv(add("index.csv", "binary"))
binary(y2.astype(bool)).to_csv(add("bool.csv", "binary"), index=False)
binary(names[y2]).to_csv(add("text.csv", "binary"), index=False)
binary(np.array(["dog", "cat"])[y2]).to_csv(add("classes.csv", "binary", classes="dog,cat"), index=False)
binary(y2 * 2 - 1).to_csv(add("signs.csv", "binary", classes="-1,1"), index=False)
binary(y2, "score of fraud", "was fraud").to_csv(
    add("named.csv", "binary", prob="score of fraud", label="was fraud"), index=False)
pd.DataFrame({"y": y2, "decision_function": logit}).to_csv(add("margin.csv", "margin"), index=False)
pd.DataFrame({"y": y2, "z": logit}).to_csv(add("logit-named.csv", "margin", logits="z"), index=False)
pd.DataFrame({"target": y, **table(probs, "proba_")}).to_csv(add("proba.csv", "probs"), index=False)
pd.DataFrame({"target": y, **table(probs, "p")}).to_csv(add("p0.csv", "probs"), index=False)
pd.DataFrame({"Label": y, **table(probs, "Prob ")}).to_csv(add("capital.csv", "probs"), index=False)
pd.DataFrame(probs).assign(y=y).to_csv(add("predict-proba.csv", "probs"))
pd.DataFrame({**table(probs, "proba_", [2, 0, 1]), "label": np.array([2, 0, 1])[y]}).to_csv(
    add("order.csv", "probs", prob="proba_2,proba_0,proba_1", classes="2,0,1"), index=False)
pd.DataFrame({**table(probs, "proba_", pets), "label": pets[y]}).to_csv(add("class-names.csv", "probs"), index=False)
pd.DataFrame({**table(probs, "prob_", [1, 2, 3]), "label": y + 1}).to_csv(add("from-one.csv", "probs"), index=False)
pd.DataFrame({"label": y, **table(logits, "logits_")}).to_csv(add("logits.csv", "logits"), index=False)
pd.DataFrame({"label": y, **table(probs, "probs_")}).to_csv(
    add("semicolon.csv", "probs"), index=False, sep=";", lineterminator="\r\n")
pd.DataFrame({"label": y, **table(probs, "probs_")}).to_csv(add("tabs.tsv", "probs"), index=False, sep="\t")
pd.DataFrame({"label": y, **table(probs, "probs_")}).to_csv(add("packed.csv.gz", "probs"), index=False)
pd.DataFrame({"label": y, **table(probs, "probs_")}).to_csv(add("mark.csv", "probs"), index=False, encoding="utf-8-sig")
pd.DataFrame({"label": y, **table(probs, "probs_")}).to_csv(
    add("quoted.csv", "probs"), quoting=csv.QUOTE_ALL, index_label="")
pd.DataFrame({"label": y, "probs": listed(probs)}).to_csv(add("list-cells.csv", "probs"), index=False)
pd.DataFrame({"label": y, "probs": list(probs)}).to_csv(add("numpy-cells.csv", "half-text"), index=False)
pd.DataFrame({**table(probs, "probs_"), **table(hot.astype(bool), "label_")}).to_csv(
    add("dummies.csv", "probs"), index=False)
pd.DataFrame({"label": np.where(known < 0, np.nan, known), **table(probs, "probs_")}).to_csv(
    add("unknown.csv", "known"), index=False)
pd.DataFrame({"label": np.where(known < 0, -100, known), **table(probs, "probs_")}).to_csv(
    add("ignored.csv", "known"), index=False)
binary(y2).assign(timestamp=when).to_csv(add("pandas-times.csv", "binary", times=True), index=False)
binary(y2).assign(timestamp=when.tz_localize("UTC").tz_convert("Europe/Berlin")).to_csv(
    add("zone.csv", "binary", times=True), index=False)
binary(y2).assign(time=ns.astype(np.int64) / 1e9).to_csv(add("seconds.csv", "binary", times="us"), index=False)
binary(y2).assign(at=ns.astype(np.int64) // 10**6).to_csv(add("millis.csv", "binary", times=True, ts="at"), index=False)

# NannyML's and Evidently's tables.
pd.DataFrame({"identifier": ids, "timestamp": when, "y_pred_proba": prob, "y_pred": (prob > 0.5).astype(int),
              "y_true": y2}).to_csv(add("nannyml-binary.csv", "binary", times=True), index=False)
cards = ["highstreet_card", "prepaid_card", "upmarket_card"]
pd.DataFrame({"timestamp": when, **table(probs, "y_pred_proba_", cards),
              "y_pred": np.array(cards)[probs.argmax(1)], "y_true": np.array(cards)[y]}).to_parquet(
    add("nannyml-classes.parquet", "probs", times=True))
pd.DataFrame({"target": y2, "prediction": prob}).to_csv(add("evidently-binary.csv", "binary"), index=False)
pd.DataFrame({"target": pets[y], **table(probs, "", pets), "prediction": pets[probs.argmax(1)]}).to_csv(
    add("evidently-classes.csv", "probs", classes="cat,dog,bird"), index=False)

# Parquet and Feather by pandas, pyarrow and polars.
frame = pd.DataFrame({"id": ids, "ts": when, "label": y, **table(probs, "probs_")})
frame.to_parquet(add("pandas.parquet", "probs", times=True))
frame.set_index("id").to_parquet(add("pandas-index.parquet", "probs", times=True))
frame.sample(frac=1, random_state=1).sort_values("ts").to_parquet(add("range-index.parquet", "probs", times=True))
frame.astype({"label": "Int64"}).to_parquet(add("nullable.parquet", "probs", times=True), compression="gzip")
frame.assign(label=pd.Categorical(pets[y], categories=pets)).to_parquet(
    add("categories.parquet", "probs", times=True, classes="cat,dog,bird"), compression="zstd")
frame.assign(label=y.astype(np.float32)).to_parquet(add("float-label.parquet", "probs", times=True), compression="brotli")
binary(y2.astype(bool)).to_parquet(add("bool.parquet", "binary"))
pd.DataFrame({"probs": listed(probs), "label": y}).to_parquet(add("lists.parquet", "probs"))
pd.DataFrame({"scores": listed(probs), "labels": listed(hot)}).to_parquet(add("hot-lists.parquet", "probs"))
pd.DataFrame({"proba": [[p] for p in prob], "y": [[int(v)] for v in y2]}).to_parquet(add("ones.parquet", "binary"))
pd.DataFrame({"y_true": y2, "y_prob": [Decimal(float(p)).quantize(Decimal("1e-15")) for p in prob]}).to_parquet(
    add("decimal.parquet", "decimal"))
fixed = pa.FixedSizeListArray.from_arrays(pa.array(logits.ravel(), pa.float32()), 3)
arrow = pa.table({"logits": fixed, "label": pa.array(y, pa.uint16()), "event_time": pa.array(when, pa.timestamp("ms", "UTC"))})
pa.parquet.write_table(arrow, add("pyarrow.parquet", "logits-32", times=True))
pa.feather.write_feather(arrow, add("pyarrow.feather", "logits-32", times=True))
pa.feather.write_feather(arrow, add("zstd.feather", "logits-32", times=True), compression="zstd")
pa.csv.write_csv(pa.table({"label": y, **{f"logits_{k}": logits[:, k] for k in range(3)}}), add("pyarrow.csv", "logits"))
with pa.OSFile(str(add("stream.arrows", "logits-32", times=True)), "wb") as f, pa.ipc.new_stream(f, arrow.schema) as w:
    w.write_table(arrow)
halves = pa.FixedSizeListArray.from_arrays(pa.array(half.ravel(), pa.float16()), 3)
pa.parquet.write_table(pa.table({"logits": halves, "label": y}), add("half.parquet", "half"))
frame.to_feather(add("pandas.feather", "probs", times=True))
lazy = pl.DataFrame({"id": ids, "timestamp": list(when.to_pydatetime()), "target": pets[y].tolist(), "probs": listed(probs)})
lazy.write_parquet(add("polars.parquet", "probs", times=True, classes="cat,dog,bird"))
lazy.write_ipc(add("polars.arrow", "probs", times=True, classes="cat,dog,bird"))
lazy.write_ipc(add("polars-lz4.arrow", "probs", times=True, classes="cat,dog,bird"), compression="lz4")
lazy.write_ndjson(add("polars.jsonl", "probs", times=True, classes="cat,dog,bird"))
lazy.with_columns(pl.col("probs").list.to_array(3), pl.col("target").cast(pl.Categorical)).write_parquet(
    add("polars-array.parquet", "probs", times=True, classes="cat,dog,bird"))
pl.DataFrame({"y_true": y2.astype(bool), "y_prob": prob}).write_csv(add("polars.csv", "binary"))

# JSON.
frame.to_json(add("pandas.jsonl", "probs-15", times=True), orient="records", lines=True, double_precision=15)
frame.to_json(add("records.json", "probs-15", times=True), orient="records", double_precision=15, date_format="iso")
dump = lambda name, what: (out / name).write_text(what) and name
lines = lambda of: "".join(json.dumps(r) + "\n" for r in of)
dump(add("hugging-face.jsonl", "logits").name, lines({"logits": l, "label_ids": int(v)} for l, v in zip(listed(logits), y)))
dump(add("nested.jsonl", "logits", logits="output.logits", label="truth.class").name,
     lines({"output": {"logits": l}, "truth": {"class": int(v)}} for l, v in zip(listed(logits), y)))
dump(add("later.jsonl", "known").name, lines(
    {"probs": p, **({"label": int(v)} if v >= 0 else {})} for p, v in zip(listed(probs), np.where(np.arange(rows) < 0, 0, known))))
dump(add("columns.json", "probs").name, json.dumps({"probs": listed(probs), "labels": y.tolist()}, indent=1))
dump(add("binary.json", "binary").name, json.dumps({"y_true": y2.tolist(), "y_prob": prob.tolist()}))
with gzip.open(add("packed.jsonl.gz", "binary"), "wt") as f:
    f.write(lines({"prob": p, "label": bool(v)} for p, v in zip(prob.tolist(), y2)))

# NumPy.
np.savez(add("sklearn.npz", "binary"), y_true=y2, y_prob=prob)
np.savez(add("column.npz", "binary"), probs=prob[:, None], labels=y2[:, None])
np.savez(add("hot.npz", "probs"), y_pred_proba=probs, y_true=hot)
np.savez(add("hot-ints.npz", "probs"), probs=probs, labels=hot.astype(np.int64))
np.savez(add("floats.npz", "probs"), probs=probs, y=y.astype(float))
np.savez(add("bools.npz", "binary"), prob=prob, label=y2.astype(bool))
np.savez(add("texts.npz", "probs", classes="cat,dog,bird"), probs=probs, label=pets[y])
np.savez(add("trainer-output.npz", "logits-32"), predictions=logits.astype(np.float32), label_ids=y)
np.savez(add("fortran.npz", "logits"), logits=np.asfortranarray(logits), labels=y.astype(np.int8))
np.savez_compressed(add("packed.npz", "probs", times=True), probs=probs, target=y, timestamp=ns)
np.savez(add("named.npz", "probs", prob="out", label="gold"), out=probs, gold=y, other=logits)
np.save(out / "y-true.npy", y)
np.save(add("test_probs.npy", "probs", label="y-true.npy"), probs)
np.save(add("answers.npy", "logits", label="y-true.npy"), logits)

# Texts with fewer digits are references of their own: what the tool wrote is what must be read.
cells = np.array([np.fromstring(str(r)[1:-1], sep=" ") for r in probs])
np.savez(out / "half-text.npz", probs=cells, label=y.astype(np.int32))
decimals = np.array([float(Decimal(float(p)).quantize(Decimal("1e-15"))) for p in prob])
np.savez(out / "decimal.npz", probs=np.stack([1 - decimals, decimals], 1), label=y2.astype(np.int32))
fifteen = np.array([[float(f"{p:.15f}") for p in r] for r in probs])
np.savez(out / "probs-15.npz", probs=fifteen, label=y.astype(np.int32), ts=ns)

(out / "variants.json").write_text(json.dumps(variants, indent=1) + "\n")
print(len(variants), "files")
