"""A minimal producer: sends one batch of logits with ids, then their labels, to plumbline's topics."""

import argparse
import collections
import time
import uuid

import numpy as np
import pyarrow as pa
from kafka import KafkaProducer
from kafka.partitioner.default import murmur2

CLASSES = 10
METADATA = {"plumbline.model": "example", "plumbline.version": "1"}


def encode(columns):
    """Returns an Arrow IPC stream of one record."""
    batch = pa.record_batch(columns).replace_schema_metadata(METADATA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def now(n):
    return pa.array(np.full(n, time.time_ns()), pa.timestamp("ns", "UTC"))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--brokers", default="localhost:9092")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--logits", default="plumbline.logits", help="topic")
    parser.add_argument("--labels", default="plumbline.labels", help="topic")
    args = parser.parse_args()
    producer = KafkaProducer(bootstrap_servers=args.brokers.split(","))

    ids = [str(uuid.uuid4()) for _ in range(args.rows)]
    rng = np.random.default_rng(1)
    logits = rng.normal(0, 3, (args.rows, CLASSES)).astype("f4")  # here your model's logits
    labels = rng.integers(0, CLASSES, args.rows).astype("i4")  # here the true classes, when you know them

    # Rows go to the partition of their id, so that a prediction and its label meet: one message for each partition,
    # whose key is an id that belongs there.
    partitions = len(producer.partitions_for(args.logits))
    split = collections.defaultdict(list)
    for row, name in enumerate(ids):
        split[(murmur2(name.encode()) & 0x7FFFFFFF) % partitions].append(row)

    for rows in split.values():
        names = pa.array([ids[row] for row in rows])
        slab = pa.FixedSizeListArray.from_arrays(pa.array(logits[rows].ravel()), CLASSES)
        value = encode({"id": names, "ts": now(len(rows)), "logits": slab})
        producer.send(args.logits, key=ids[rows[0]].encode(), value=value).get(timeout=30)
    for rows in split.values():
        names = pa.array([ids[row] for row in rows])
        value = encode({"id": names, "ts": now(len(rows)), "label": pa.array(labels[rows])})
        producer.send(args.labels, key=ids[rows[0]].encode(), value=value).get(timeout=30)
    producer.close()
    print(f"sent {args.rows} predictions and their labels to {args.logits} and {args.labels}")


if __name__ == "__main__":
    main()
