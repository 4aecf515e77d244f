"""consumer.py BROKER ROWS TOPIC...: reads predictions, and labels where there is a second topic, until all are joined."""
import json
import sys

import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from calibration import Join, Sums

broker, rows, topics = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
consumer = Consumer({
    "bootstrap.servers": broker, "group.id": "e2e-python", "enable.auto.commit": False,
    "fetch.max.bytes": 64 << 20, "max.partition.fetch.bytes": 8 << 20, "queued.min.messages": 1000,
    "check.crcs": True,
})
consumer.assign([TopicPartition(t, p, OFFSET_BEGINNING) for t in topics for p in range(4)])
sums = Sums()
join = Join(sums)
done = 0
while sums.rows + sums.size < rows:
    for message in consumer.consume(500, 0.2):
        if message.error():
            raise SystemExit(message.error())
        value = message.value()
        if not value:
            continue
        take = join.labels if message.topic().endswith("labels") else join.predictions
        for batch in pa.ipc.open_stream(value):
            take(batch)
consumer.close()
print(json.dumps(sums.results()[:1]))
