"""Sends predictions as spans and labels as log records with OpenTelemetry's SDK.

otlp.py ENDPOINT: each line of the input is {"id", "ts": nanoseconds, "logits", "label"}.
"""

import json
import sys

from opentelemetry._logs import LogRecord
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def main(endpoint):
    # After its timeout the SDK drops a batch; a busy machine may need longer than the default, ten seconds.
    timeout = 60
    resource = Resource.create({"service.name": "digits", "service.version": "1"})
    traces = TracerProvider(resource=resource)
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint + "/v1/traces",
                                                                  timeout=timeout),
                                                 max_queue_size=1 << 16))
    logs = LoggerProvider(resource=resource)
    logs.add_log_record_processor(BatchLogRecordProcessor(
        OTLPLogExporter(endpoint=endpoint + "/v1/logs", compression=Compression.Gzip, timeout=timeout),
        max_queue_size=1 << 16))
    tracer, logger = traces.get_tracer("test"), logs.get_logger("test")
    for line in sys.stdin:
        row = json.loads(line)
        span = tracer.start_span("chat digits", start_time=row["ts"] - 1_000_000, attributes={
            "gen_ai.operation.name": "chat", "gen_ai.response.id": row["id"], "plumbline.logits": row["logits"]})
        span.end(end_time=row["ts"])
        logger.emit(LogRecord(timestamp=row["ts"], event_name="gen_ai.evaluation.result", attributes={
            "gen_ai.response.id": row["id"], "gen_ai.evaluation.name": "class", "plumbline.label": row["label"]}))
    if not traces.force_flush(60_000) or not logs.force_flush(60_000):
        sys.exit("not all was exported")
    traces.shutdown()
    logs.shutdown()


main(sys.argv[1])
