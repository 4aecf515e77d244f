"""Sends records with the serializers of Confluent's client, which register their schemas.

registered.py BROKERS REGISTRY avro|protobuf: each line of the input is {"topic", "rows": predictions|labels, "key",
"time": milliseconds, "values": [...]}, and each value a record.
"""

import json
import sys

from confluent_kafka import Producer
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, timestamp_pb2

AVRO = {
    "predictions": {
        "type": "record", "name": "Response", "namespace": "serving", "fields": [
            {"name": "request_id", "type": "string"},
            {"name": "served_at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "latency", "type": ["null", "double"]},
            {"name": "model", "type": ["null", "string"]},
            {"name": "version", "type": "string"},
            {"name": "outputs", "type": {"type": "array", "items": {
                "type": "record", "name": "Output", "fields": [
                    {"name": "logits", "type": {"type": "array", "items": "float"}}]}}}]},
    "labels": {
        "type": "record", "name": "Outcome", "namespace": "orders", "fields": [
            {"name": "prediction", "type": "string"}, {"name": "truth", "type": "int"}]},
}


def messages():
    """The same as message types, made here instead of by protoc."""
    pool = descriptor_pool.DescriptorPool()
    pool.Add(descriptor_pb2.FileDescriptorProto.FromString(timestamp_pb2.DESCRIPTOR.serialized_pb))
    file = descriptor_pb2.FileDescriptorProto(
        name="serving.proto", package="serving", syntax="proto3", dependency=["google/protobuf/timestamp.proto"])
    kind = descriptor_pb2.FieldDescriptorProto

    def add(name, *fields):
        m = file.message_type.add(name=name)
        for n, (field, t, many, of) in enumerate(fields, 1):
            label = kind.LABEL_REPEATED if many else kind.LABEL_OPTIONAL
            m.field.add(name=field, number=n, type=t, label=label, type_name=of)

    add("Output", ("logits", kind.TYPE_FLOAT, True, None))
    add("Response", ("request_id", kind.TYPE_STRING, False, None),
        ("served_at", kind.TYPE_MESSAGE, False, ".google.protobuf.Timestamp"),
        ("latency", kind.TYPE_DOUBLE, False, None), ("model", kind.TYPE_STRING, False, None),
        ("version", kind.TYPE_STRING, False, None), ("outputs", kind.TYPE_MESSAGE, True, ".serving.Output"))
    add("Outcome", ("prediction", kind.TYPE_STRING, False, None), ("truth", kind.TYPE_INT32, False, None))
    pool.Add(file)
    get = lambda name: message_factory.GetMessageClass(pool.FindMessageTypeByName("serving." + name))
    return {"predictions": get("Response"), "labels": get("Outcome")}


def main(brokers, registry, form):
    client = SchemaRegistryClient({"url": registry})
    if form == "avro":
        serialize = {rows: AvroSerializer(client, json.dumps(schema)) for rows, schema in AVRO.items()}
        value_of = lambda rows, v: v
    else:
        types = messages()
        serialize = {rows: ProtobufSerializer(t, client, {"skip.known.types": True}) for rows, t in types.items()}

        def value_of(rows, v):
            m = types[rows]()
            if "served_at" in v:
                v["served_at"] = timestamp(v["served_at"])
            json_format.ParseDict(v, m)
            return m

    producer = Producer({"bootstrap.servers": brokers})
    for line in sys.stdin:
        r = json.loads(line)
        for v in r["values"]:
            value = serialize[r["rows"]](value_of(r["rows"], v), SerializationContext(r["topic"], MessageField.VALUE))
            producer.produce(r["topic"], key=r["key"], value=value, timestamp=r["time"])
            producer.poll(0)
    if producer.flush(60) > 0:
        sys.exit("not all records were taken")


def timestamp(ms):
    t = timestamp_pb2.Timestamp()
    t.FromMilliseconds(ms)
    return t.ToJsonString()


main(*sys.argv[1:])
