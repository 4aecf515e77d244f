"""Writes the *.arrow files beside it: messages as pyarrow has them, for the tests of hostile input.

python -m venv v && v/bin/pip install pyarrow==17.0.0 numpy && v/bin/python arrowio/testdata/messages.py
"""
import pathlib

import numpy as np
import pyarrow as pa

HERE = pathlib.Path(__file__).parent
rng = np.random.default_rng(1)
META = {"plumbline.model": "net", "plumbline.version": "2"}


def columns(n, k, score=np.float32):
    z = rng.normal(0, 3, (n, k)).astype(score)
    return {
        "id": pa.array([f"row-{i}" for i in range(n)]),
        "ts": pa.array(1_700_000_000_000_000 + np.arange(n), pa.timestamp("us", "UTC")),
        "logits": pa.FixedSizeListArray.from_arrays(pa.array(z.ravel()), k),
        "label": pa.array([None if i % 3 == 0 else i % k for i in range(n)], pa.int16()),
        "region": pa.array([["eu", "us", None][i % 3] for i in range(n)]).dictionary_encode(),
        "tenant": pa.array([f"t{i % 5}" for i in range(n)]),
        "served": pa.array(rng.uniform(0.2, 1, n).astype(np.float32)),
        "weight": pa.array([None if i % 4 == 0 else 1.5 for i in range(n)], pa.float64()),
        "features": pa.FixedSizeListArray.from_arrays(pa.array(rng.normal(size=n * 4).astype(np.float16)), 4),
    }


def write(name, batches, **options):
    with pa.OSFile(str(HERE / f"{name}.arrow"), "wb") as f:
        with pa.ipc.new_stream(f, batches[0].schema, options=pa.ipc.IpcWriteOptions(**options)) as w:
            for b in batches:
                w.write_batch(b)


def batch(c):
    return pa.record_batch(c).replace_schema_metadata(META)


write("predictions", [batch(columns(20, 10))])
write("batches", [batch(columns(n, 3)) for n in (5, 1, 8)])
write("wide", [batch(columns(3, 100, np.float64))])
write("lz4", [batch(columns(40, 10))], compression="lz4")
write("zstd", [batch(columns(40, 10, np.float16))], compression="zstd")
write("v4", [batch(columns(6, 4))], metadata_version=pa.ipc.MetadataVersion.V4)

c = columns(6, 3)
c["id"] = pa.array(range(6), pa.int64())
c["logits"] = pa.array([[1, 2, 3], None, [0, 0, 1], [4, 5, 6], None, [7, 8, 9]], pa.list_(pa.float32()))
c["model"] = pa.array(["a", "b", "a", None, "b", "a"]).dictionary_encode()
write("lists", [pa.record_batch(c)])

grow = [pa.DictionaryArray.from_arrays(pa.array(i, pa.int8()), pa.array(d)) for i, d in
        (([0, 1], ["eu", "us"]), ([2, 0], ["eu", "us", "ap"]), ([3, 1], ["eu", "us", "ap", "sa"]))]
batches = []
for d in grow:
    c = columns(2, 5)
    c["region"] = d
    batches.append(batch(c))
write("deltas", batches, emit_dictionary_deltas=True)
write("replaced", [batches[0], batches[2], batches[0]])

n = 12
write("labels", [batch({"id": pa.array([f"row-{i}" for i in range(n)]), "label": pa.array(range(n), pa.int64()),
                        "ts": pa.array(range(n), pa.timestamp("ms"))})])
write("binary", [batch({"id": pa.array([b"a", b"", None, b"d"], pa.binary()), "prob": pa.array([0.25, 2, None, 1], pa.float64()),
                        "label": pa.array([1, 0, 1, None], pa.uint8())})])
