"""quix.py BROKER ROWS TOPIC...: consumer.py in quixstreams."""
import json
import logging
import sys
import tempfile
import uuid

import pyarrow as pa
from quixstreams import Application

from calibration import Join, Sums

broker, rows, topics = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
app = Application(
    broker_address=broker, consumer_group="e2e-" + uuid.uuid4().hex, auto_offset_reset="earliest", loglevel=logging.ERROR,
    state_dir=tempfile.mkdtemp(), consumer_extra_config={"fetch.max.bytes": 64 << 20, "max.partition.fetch.bytes": 8 << 20},
)
sums = Sums()
join = Join(sums)


def step(take):
    def apply(value):
        if value:
            for batch in pa.ipc.open_stream(value):
                take(batch)
            if sums.rows + sums.size >= rows:
                app.stop()

    return apply


for name in topics:
    topic = app.topic(name, key_deserializer="bytes", value_deserializer="bytes")
    app.dataframe(topic).update(step(join.labels if name.endswith("labels") else join.predictions))
app.run()
print(json.dumps(sums.results()[:1]))
