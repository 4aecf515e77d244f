"""jsonconsumer.py BROKER ROWS LOGITS LABELS: consumer.py of records in JSON, of a row or a list."""
import json
import sys

import numpy as np
import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from calibration import Sums

broker, rows, topics = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
consumer = Consumer({
    "bootstrap.servers": broker, "group.id": "e2e-python", "enable.auto.commit": False,
    "fetch.max.bytes": 64 << 20, "max.partition.fetch.bytes": 8 << 20, "check.crcs": True,
})
consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t in topics for p in range(4)])
sums, scores, labels, waiting, early = Sums(), [], [], {}, {}


def take(z, y):
    scores.append(z)
    labels.append(y)
    if len(labels) == 4096:
        add()


def add():
    if labels:
        sums.add(np.array(scores, np.float32), np.array(labels), np.zeros(len(labels), np.int64))
        scores.clear()
        labels.clear()


while sums.rows + sums.size + len(labels) < rows:
    for message in consumer.consume(500, 0.2):
        if message.error():
            raise SystemExit(message.error())
        value = message.value()
        if not value:
            continue
        record = orjson.loads(value)
        for row in record if isinstance(record, list) else (record,):
            at = row["id"]
            if "label" in row:
                z = waiting.pop(at, None)
                if z is None:
                    early[at] = row["label"]
                else:
                    take(z, row["label"])
            else:
                y = early.pop(at, None)
                if y is None:
                    waiting[at] = row["logits"]
                else:
                    take(row["logits"], y)
add()
consumer.close()
print(json.dumps(sums.results()[:1]))
