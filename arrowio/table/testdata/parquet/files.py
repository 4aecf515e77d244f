"""Makes the Parquet files of the tests and, of the same rows, the Arrow files that they are compared with.

Run with pyarrow (made with 26.0): python3 files.py
"""
import datetime
import decimal
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

N, K, D = 11, 3, 2


def lists(rng, typ, k, nulls=False, scale=1.0):
    rows = [[float(np.float16(x)) * scale for x in rng.normal(size=k)] for _ in range(N)]
    if nulls:
        rows[0] = rows[4] = None
    if pa.types.is_float16(typ.value_type):
        rows = [r if r is None else [np.float16(x) for x in r] for r in rows]
    return pa.array(rows, typ)


def table(seed, scores="logits", score_type=pa.list_(pa.float32()), ts=pa.timestamp("ns", tz="UTC"),
          label=pa.int32(), ids=pa.string(), text=pa.string(), floats=pa.float32(), features=pa.list_(pa.float32())):
    rng = np.random.default_rng(seed)
    columns = {}
    if pa.types.is_integer(ids):
        columns["id"] = pa.array(range(100, 100 + N), ids)
    elif pa.types.is_decimal(ids):
        columns["id"] = pa.array([decimal.Decimal(i) / 4 - 1 for i in range(N)], ids)
    elif pa.types.is_date(ids):
        columns["id"] = pa.array([datetime.date(2020, 1, 1 + i) for i in range(N)], ids)
    elif pa.types.is_binary(ids) or pa.types.is_fixed_size_binary(ids):
        columns["id"] = pa.array([b"row%02d" % i for i in range(N)], ids)
    else:
        columns["id"] = pa.array(["row%d" % i if i != 3 else "é" * 40 for i in range(N)], ids)
    base = 1_600_000_000
    unit = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[ts.unit]
    columns["ts"] = pa.array([(base + 7 * i) * unit + (i if unit > 1 else 0) for i in range(N)], pa.int64()).cast(ts)
    if scores in ("logit", "prob"):
        columns[scores] = pa.array(rng.uniform(size=N), score_type)
    else:
        columns[scores] = lists(rng, score_type, K)
    columns["label"] = pa.array([None if i % 4 == 1 else i % 3 % (2 if scores in ("logit", "prob") else 3) for i in range(N)], label)
    columns["features"] = lists(rng, features, D, nulls=True)
    columns["weight"] = pa.array([None if i == 5 else 1 + i / 4 for i in range(N)], floats)
    columns["served"] = pa.array([None if i == 2 else i / 16 for i in range(N)], floats)
    columns["region"] = pa.array([["eu", None, "us", "eu"][i % 4] for i in range(N)], pa.string()).cast(text)
    columns["model"] = pa.array(["m"] * N)
    columns["other"] = pa.array([[{"a": 1}, {"a": 2}]] * N)  # a column that is not read
    return pa.table(columns).replace_schema_metadata({"plumbline.version": "7"})


def write(name, t, **options):
    pq.write_table(t, name + ".parquet", **options)
    feather.write_feather(t, name + ".arrow", compression="uncompressed")


# The codecs and encodings are compared with one Arrow file.
plain = table(1)
feather.write_feather(plain, "plain.arrow", compression="uncompressed")
for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
    pq.write_table(plain, f"plain-{codec}.parquet", compression=codec)
for page, dictionary in itertools.product(("1.0", "2.0"), (True, False)):
    name = f"plain-page{page[0]}-{'dictionary' if dictionary else 'values'}.parquet"
    pq.write_table(plain, name, data_page_version=page, use_dictionary=dictionary, row_group_size=4, compression="snappy")
micros = table(30, ts=pa.timestamp("us", tz="UTC"))
feather.write_feather(micros, "micros.arrow", compression="uncompressed")
for version in ("1.0", "2.4"):
    pq.write_table(micros, f"micros-version{version[0]}.parquet", version=version)
pq.write_table(plain, "plain-pages.parquet", data_page_size=1, write_batch_size=2, use_dictionary=False)
pq.write_table(plain, "plain-items.parquet", use_compliant_nested_type=False)
pq.write_table(plain, "plain-int96.parquet", use_deprecated_int96_timestamps=True)
pq.write_table(plain, "plain-delta.parquet", use_dictionary=False, data_page_version="2.0", column_encoding={
    "id": "DELTA_BYTE_ARRAY", "ts": "DELTA_BINARY_PACKED", "label": "DELTA_BINARY_PACKED",
    "region": "DELTA_LENGTH_BYTE_ARRAY", "weight": "BYTE_STREAM_SPLIT", "logits.list.element": "BYTE_STREAM_SPLIT"})

# The types, each with its own Arrow file.
write("doubles", table(2, "probs", pa.list_(pa.float64()), floats=pa.float64(), ids=pa.int64(), features=pa.list_(pa.float64())))
write("halves", table(3, score_type=pa.list_(pa.float16()), features=pa.list_(pa.float16(), D)))
write("fixed", table(4, score_type=pa.list_(pa.float32(), K), features=pa.list_(pa.float32(), D), ts=pa.timestamp("us")))
write("large", table(5, score_type=pa.large_list(pa.float32()), text=pa.large_string(), ids=pa.large_string(), ts=pa.timestamp("ms")))
write("binary", table(6, "logit", pa.float64(), ids=pa.binary(), text=pa.dictionary(pa.int8(), pa.string()), ts=pa.timestamp("s")))
write("prob", table(7, "prob", pa.float32(), ids=pa.uint64(), label=pa.int8()))
for i, typ in enumerate((pa.uint8(), pa.int16(), pa.uint16(), pa.uint32(), pa.int64(), pa.uint64())):
    ids = (pa.int8(), pa.uint32(), pa.decimal128(9, 2), pa.decimal128(30, 2), pa.date32(), pa.binary(5))[i]
    write(f"label-{typ}", table(10 + i, label=typ, ids=ids))
write("decimal-integer", table(20, ids=pa.decimal128(9, 2)), store_decimal_as_integer=True)
