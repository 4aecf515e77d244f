"""Where messages go: Kafka, or the HTTP of a plumbline process."""

from __future__ import annotations

import base64
import http.client
import json
import multiprocessing.context
import ssl
import time
import urllib.parse
from collections.abc import Callable
from typing import Any, Protocol

import pyarrow as pa

from . import _columns
from ._murmur import partitions

_ANSWER = 1 << 16  # bytes of an answer that are read

Done = Callable[[int, "str | None"], None]  # rows, and why they failed; None: they have arrived


class Transport(Protocol):
    def send(self, kind: str, batch: pa.RecordBatch, done: Done, more: Callable[[], bool]) -> None:
        """Takes a batch; done is called once for each part of it. Raises Later where there is no room or nobody, and
        between parts when there is to be no more."""

    def poll(self, seconds: float) -> None: ...

    def flush(self, seconds: float) -> None: ...


class Later(Exception):
    """Nobody takes it now: the same batch again, later."""


class Kafka:
    """Rows go to the partition of their id, as topics.logits and topics.labels want them."""

    def __init__(self, url: urllib.parse.SplitResult, model: str, version: str, options: dict[str, Any]) -> None:
        from confluent_kafka import Producer  # an extra: pip install plumbline[kafka]

        query = dict(urllib.parse.parse_qsl(url.query))
        self._topics = {"predictions": query.pop("logits", "plumbline.logits"),
                        "labels": query.pop("labels", "plumbline.labels")}
        config = {"bootstrap.servers": url.netloc, "enable.idempotence": True, "linger.ms": 5,
                  "message.timeout.ms": 300_000, "queue.buffering.max.kbytes": 32_768,
                  "compression.type": "lz4", "message.max.bytes": 8 << 20, **query, **options}
        self._largest = min(int(config["message.max.bytes"]) - 4096,  # what a record and its batch need around it
                            int(config["queue.buffering.max.kbytes"]) << 10)
        self._producer = Producer(config)
        self._model, self._version = model, version
        self._partitions: dict[str, int] = {}
        self._asked = 0.0
        self._left: tuple[pa.RecordBatch, list[tuple[int, pa.RecordBatch]]] | None = None

    def _count(self, topic: str) -> int:
        if topic not in self._partitions:
            if time.monotonic() - self._asked < 0.5:
                raise Later
            try:
                found = self._producer.list_topics(topic, timeout=2).topics[topic]
            except Exception as e:
                raise Later(str(e)) from e
            finally:
                self._asked = time.monotonic()
            if found.error is not None or not found.partitions:
                raise Later(f"topic {topic}: {found.error}")
            self._partitions[topic] = len(found.partitions)
            self._asked = 0.0
        return self._partitions[topic]

    def send(self, kind: str, batch: pa.RecordBatch, done: Done, more: Callable[[], bool]) -> None:
        if self._left is None or self._left[0] is not batch:
            self._left = (batch, self._parts(kind, batch))
        parts = self._left[1]  # those that the producer has not taken; the same batch comes again after Later
        while parts:
            if not more():
                raise Later
            partition, part = parts[0]
            value = _columns.encode(part, self._model, self._version)
            if len(value) > self._largest and part.num_rows > 1:
                half = part.num_rows // 2
                parts[:1] = [(partition, part.slice(0, half)), (partition, part.slice(half))]
                continue

            def report(error: Any, _message: Any, rows: int = part.num_rows) -> None:
                done(rows, None if error is None else str(error))

            waiting, why = len(self._producer), None
            if waiting > 2_000:
                raise Later("the producer's queue is full")
            try:
                self._producer.produce(self._topics[kind], value, partition=partition, on_delivery=report)
            except BufferError as e:
                if waiting:  # there is room when some of them have gone
                    raise Later("the producer's queue is full") from e
                why = f"{type(e).__name__}: {e}"
            except Exception as e:  # one that no repetition helps: it must not hold up the others
                why = f"{type(e).__name__}: {e}"
            parts.pop(0)
            if why is not None:
                done(part.num_rows, why)
        self._left = None

    def _parts(self, kind: str, batch: pa.RecordBatch) -> list[tuple[int, pa.RecordBatch]]:
        """The rows of each partition."""
        at = partitions(_columns.id_bytes(batch), self._count(self._topics[kind]))
        order = at.argsort(kind="stable")
        batch, at = batch.take(pa.array(order)), at[order]
        parts = []
        start = 0
        while start < len(at):
            end = int(at.searchsorted(at[start], side="right"))
            parts.append((int(at[start]), batch.slice(start, end - start)))
            start = end
        return parts

    def poll(self, seconds: float) -> None:
        self._producer.poll(seconds)

    def flush(self, seconds: float) -> None:
        self._producer.flush(seconds)


class HTTP:
    """POST /api/v1/ingest/{model}/predictions and /labels, Arrow in the body."""

    def __init__(self, url: urllib.parse.SplitResult, model: str, version: str, options: dict[str, Any]) -> None:
        self._url, self._model, self._version = url, model, version
        self._timeout = float(options.get("timeout", 10))
        self._headers = {"Content-Type": "application/vnd.apache.arrow.stream"}
        self._largest = 8 << 20  # what a process takes by default (kafka.message_max_bytes)
        if url.username:
            user = f"{urllib.parse.unquote(url.username)}:{urllib.parse.unquote(url.password or '')}"
            self._headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        if "token" in options:
            self._headers["Authorization"] = "Bearer " + str(options["token"])
        self._tls: ssl.SSLContext | None = options.get("tls")
        self._connection: http.client.HTTPConnection | None = None
        self._wait_until = 0.0
        self._left: tuple[pa.RecordBatch, list[pa.RecordBatch]] | None = None

    def send(self, kind: str, batch: pa.RecordBatch, done: Done, more: Callable[[], bool]) -> None:
        if time.monotonic() < self._wait_until:
            raise Later
        if self._left is None or self._left[0] is not batch:
            self._left = (batch, [batch])
        parts = self._left[1]  # what is too large is halved; the same batch comes again after Later
        while parts:
            if not more():
                raise Later
            status, text, wait = self._try(kind, parts[0])
            if status in (408, 413) and parts[0].num_rows > 1:  # 408: a slow network
                half = parts[0].num_rows // 2
                parts[:1] = [parts[0].slice(0, half), parts[0].slice(half)]
                continue
            if status in (408, 429) or status >= 500:
                self._wait_until = time.monotonic() + _seconds(wait)
                raise Later(f"{status}: {text}")
            part = parts.pop(0)
            rejected, why = _rejected(part.num_rows, status, text)
            if part.num_rows > rejected:
                done(part.num_rows - rejected, None)
            if rejected:
                done(rejected, why)
        self._left = None

    def _try(self, kind: str, batch: pa.RecordBatch) -> tuple[int, str, str | None]:
        path = f"{self._url.path.rstrip('/')}/api/v1/ingest/{urllib.parse.quote(self._model, safe='')}/{kind}"
        body = _columns.encode(batch, self._model, self._version)
        if len(body) > self._largest and batch.num_rows > 1:
            return 413, "", None
        try:
            return self._post(path, body)
        except (OSError, http.client.HTTPException) as e:
            self._connection = None
            self._wait_until = time.monotonic() + 1
            raise Later(str(e)) from e

    def _post(self, path: str, body: bytes) -> tuple[int, str, str | None]:
        if self._connection is None:
            host, port = self._url.hostname or "localhost", self._url.port
            if self._url.scheme == "https":
                self._connection = http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=self._timeout)
        connection = self._connection
        try:
            connection.request("POST", path, body, self._headers)
        except (BrokenPipeError, ConnectionResetError):
            self._connection = None  # a process that refuses a body may answer, and close, before it has read it
        answer = connection.getresponse()
        text = answer.read(_ANSWER).decode(errors="replace").strip()
        try:
            text = str(json.loads(text)["error"]) if answer.status >= 300 else text
        except Exception:  # whatever a proxy answers
            pass
        if 300 <= answer.status < 400:
            text = f"a redirection to {answer.headers.get('Location')}, which is not followed: name that address"
        return answer.status, text, answer.headers.get("Retry-After")

    def poll(self, seconds: float) -> None:
        time.sleep(seconds)

    def flush(self, seconds: float) -> None:
        if self._connection is not None:
            self._connection.close()


def _seconds(retry_after: str | None) -> int:
    """How long to wait; a second where it is not said in seconds: proxies may say it as a date."""
    try:
        return min(max(int(retry_after or 1), 0), 30)
    except ValueError:
        return 1


def _rejected(rows: int, status: int, text: str) -> tuple[int, str]:
    """How many of the rows of a request take no part, and why. Rows of one that was taken may be rejected."""
    if status >= 300:
        return rows, f"{status}: {text}"
    try:
        answer = json.loads(text)
        taken, rejected, first = answer["rows"], answer.get("rejected", 0), answer.get("first_rejected") or [{}]
        if type(taken) is not int or type(rejected) is not int:
            raise ValueError("counts")
        why = [str(first[0][name]) for name in ("reason", "detail") if name in first[0]]
        return min(max(rejected, 0), rows), ": ".join(["rejected", *why])
    except Exception:  # a login page, say: nobody knows what became of the rows
        return rows, f"{status}: not an answer of plumbline: {text[:80]}"


def shown(to: str) -> str:
    """An address without its user and its query, which may have passwords."""
    return to.rpartition("@")[2].partition("?")[0]


_SECRET = ("password", "secret", "token", "jaas", "key.pem", "userinfo", "user.info", "apikey", "api_key", "api-key",
           "oauthbearer.config")


def secret(to: str, options: dict[str, Any]) -> bool:
    """Whether a password is in an address or among options."""
    url = urllib.parse.urlsplit(to)
    names = [*options, *(name for name, _ in urllib.parse.parse_qsl(url.query))]
    return bool(url.username or url.password) or any(s in name.lower() for name in names for s in _SECRET)


def keep_secret(what: str) -> None:
    """Refuses a pickle, which may be a file, unless it is that of a process that multiprocessing begins."""
    if multiprocessing.context.get_spawning_popen() is None:
        raise TypeError(f"{what}; a pickle would hold its password or token")


def connect(to: str, model: str, version: str, options: dict[str, Any]) -> Transport:
    url = urllib.parse.urlsplit(to)
    if url.scheme == "kafka":
        return Kafka(url, model, version, options)
    if url.scheme in ("http", "https"):
        return HTTP(url, model, version, options)
    raise ValueError(f"to={shown(to)!r}: must begin with kafka://, http:// or https://")
