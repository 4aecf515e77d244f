"""PlumblineLogger: what a model answered, and what was true, on its way to plumbline."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  pandas wants it, which pyarrow loads with the first rows: maybe at exit
import functools
import logging
import multiprocessing.util
import os
import threading
import time
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from time import time_ns
from typing import Any

from numpy import ndarray

from . import _columns, _transport
from ._columns import Call, copied, size_of
from ._transport import Done, Later, Transport, connect

_log = logging.getLogger("plumbline")


@dataclass
class Stats:
    """Rows, counted since the logger was made. logged = sampled_out + dropped + refused + failed + sent + waiting."""

    logged: int = 0  # rows that log and label were given
    sampled_out: int = 0
    dropped: int = 0  # there was no room, or the logger was closed
    refused: int = 0  # their columns do not fit each other, or their label is not known
    failed: int = 0  # the broker or the process did not take them
    sent: int = 0  # arrived
    waiting: int = 0
    waiting_bytes: int = 0
    errors: dict[str, int] = field(default_factory=dict)  # rows by why they failed or were refused


class PlumblineLogger:
    """Sends predictions and labels in the background.

    to is kafka://HOST:PORT[,HOST:PORT][?logits=TOPIC&labels=TOPIC] or the http:// address of a plumbline process.
    A call copies what it is given, and never waits for more than block seconds (0: not at all) for room; beyond
    max_bytes rows are dropped, counted in stats() and logged once a minute. sample keeps that share of ids, the
    same for labels, and gives what it keeps the weight that makes up for it. Rows that were not sent are lost with
    the process: at most those of linger seconds, while somebody takes them. close() sends what is left.
    """

    def __init__(self, model: str, version: str = "", to: str = "kafka://localhost:9092", *, max_bytes: int = 64 << 20,
                 block: float = 0.0, sample: float = 1.0, linger: float = 0.5, batch_rows: int = 4000,
                 options: dict[str, Any] | None = None, on_drop: Callable[[int, str], None] | None = None) -> None:
        if not 0 < sample <= 1:
            raise ValueError(f"sample={sample}: must be above 0, and at most 1")
        if not model:
            raise ValueError("model: must not be empty")
        for name, text in (("model", model), ("version", version)):
            if (size := len(text.encode())) > _columns.MAX_TEXT:  # what is not UTF-8 raises, too
                raise ValueError(f"{name}: {size} bytes, at most {_columns.MAX_TEXT}")
        self.model, self.version, self.to = model, version, to
        self._max_bytes, self._block, self._linger, self._batch_rows = max_bytes, block, linger, batch_rows
        self._options, self._on_drop = options or {}, on_drop
        self._hurry = max_bytes // 4
        self._sample, self._below = sample, int(sample * (1 << 32))
        self._lock = threading.Lock()
        self._calls: deque[tuple[str, Any, dict[str, Any], int, int, int]] = deque()  # what a Call has
        self._stats = Stats()
        # Rows and bytes that came and went. The background thread has a lock of its own: one that it holds while it
        # waits for the interpreter would let the serving thread wait, too.
        self._came = self._came_bytes = self._went = self._went_bytes = 0
        self._full = 0  # rows that were dropped before they came
        self._went_lock = threading.Lock()
        self._wake, self._room, self._closed = threading.Event(), threading.Event(), False
        self._ended = False  # what still waited has been counted as dropped
        self._thread: threading.Thread | None = None
        self._pid = 0
        self._warned = -60.0
        connect_check(to)
        self._alive: list[PlumblineLogger] = []  # this one, while rows wait: they are sent if nobody has it any more
        _loggers.add(self)

    def log(self, ids: Any, *, logits: Any = None, probs: Any = None, logit: Any = None, prob: Any = None,
            label: Any = None, features: Any = None, served: Any = None, weight: Any = None, ts: Any = None,
            **slices: Any) -> None:
        """Logs predictions: one id a row, scores of shape (rows, K), or logit= and prob= of a binary classifier.

        ts is their time (default: now; a datetime without a zone is UTC); label, where it is known already; slices
        are text, one for all rows or one a row. Raises nothing for what is wrong with the values: it is counted, and
        logged.
        """
        if logits is not None:
            slices["logits"] = logits
        if probs is not None:
            slices["probs"] = probs
        if logit is not None or prob is not None or label is not None or features is not None:
            more = {"logit": logit, "prob": prob, "label": label, "features": features}
            slices.update((k, v) for k, v in more.items() if v is not None)
        if served is not None or weight is not None or ts is not None:
            more = {"served": served, "weight": weight, "ts": ts}
            slices.update((k, v) for k, v in more.items() if v is not None)
        self._put("predictions", ids, slices)

    def label(self, ids: Any, y: Any, *, ts: Any = None) -> None:
        """Logs what was true, by the ids of the predictions: classes 0 to K-1, in the order of the scores.

        Rows whose label is None or NaN are not sent, and counted as refused: send them when it is known.
        """
        self._put("labels", ids, {"label": y} if ts is None else {"label": y, "ts": ts})

    def _put(self, kind: str, ids: Any, columns: dict[str, Any]) -> None:
        # Every line here is time of the server, whose caches this code has left after each call: few calls, one lock.
        rows = 1  # where nobody knows
        try:
            if type(ids) is not list and type(ids) is not ndarray and _columns.single(ids):
                ids = (ids,)
            rows = kept = len(ids)
            if self._below < 1 << 32:
                ids, columns, kept = self._sampled(kind, ids, columns, rows)
            elif type(ids) is list:
                ids = ids[:]  # the ids themselves do not change
            else:
                ids = copied(ids)
            size = 350 + size_of(ids, kept)
            for k, v in columns.items():
                if type(v) is str:
                    size += 52 + len(v)
                elif type(v) is ndarray:
                    columns[k] = v = v.copy()
                    size += 128 + v.nbytes
                else:
                    columns[k] = v = copied(v)
                    size += size_of(v, kept)
        except Exception as e:  # what serves must not end because of what is logged
            self._refuse(rows, f"{type(e).__name__}: {e}")
            return
        if not kept:  # it needs no room
            with self._lock:
                self._stats.sampled_out += rows
            return
        waiting = self._came_bytes - self._went_bytes + size
        if waiting > self._hurry:
            if waiting > self._max_bytes and not self._closed and not self._wait_for(size):
                self._drop(rows, kept, f"no room: {self._max_bytes} bytes wait for {_transport.shown(self.to)}")
                return
            if not self._wake.is_set():  # waking costs more than all else: linger does it
                self._wake.set()
        call = (kind, ids, columns, time_ns(), kept, size)
        with self._lock:
            closed = self._closed
            if not closed:
                if not self._alive:
                    self._alive.append(self)
                self._came += kept
                self._came_bytes += size
                self._calls.append(call)
                if kept < rows:
                    self._stats.sampled_out += rows - kept
        if closed:  # nobody sends it any more
            self._drop(rows, kept, "the logger is closed")
        elif self._pid == 0:
            self._start()

    def _drop(self, rows: int, kept: int, why: str) -> None:
        with self._lock:
            self._stats.sampled_out += rows - kept
            self._stats.dropped += kept
            self._full += kept
        self._warn(kept, why)

    def _sampled(self, kind: str, ids: Any, columns: dict[str, Any], rows: int) -> tuple[Any, dict[str, Any], int]:
        """The rows whose id's hash is below the share: a prediction and its label are kept or left together."""
        import numpy as np

        values = _columns.host(ids)
        values = values if hasattr(values, "__getitem__") else list(values)
        keep = [i for i, v in enumerate(values) if zlib.crc32(str(_columns.plain(v)).encode()) < self._below]
        if len(keep) < rows:
            out: dict[str, Any] = {}
            for name, v in columns.items():
                if isinstance(v, str) or not hasattr(v, "__len__"):
                    out[name] = v
                elif isinstance(v, (list, tuple)) and len(v) == rows:
                    out[name] = [v[i] for i in keep]
                else:
                    v = v if hasattr(v, "__getitem__") else list(v)
                    v = v if hasattr(v, "detach") else np.asarray(_columns.host(v))
                    v = _columns.by_row(name, v, rows)
                    out[name] = v[keep] if v.ndim and len(v) == rows else v
            columns = out
            ids = [values[i] for i in keep]
        if kind == "predictions":
            w = columns.get("weight", 1.0)
            columns["weight"] = np.asarray(_columns.host(w), np.float32) / np.float32(self._sample)
        return ids, columns, len(keep)

    def _wait_for(self, size: int) -> bool:
        end = time.monotonic() + self._block
        while self._block > 0 and time.monotonic() < end:
            self._room.clear()
            if self._came_bytes - self._went_bytes + size <= self._max_bytes:
                return True
            self._room.wait(max(0.0, min(0.05, end - time.monotonic())))
        return self._came_bytes - self._went_bytes + size <= self._max_bytes

    def _start(self) -> None:
        with self._lock:
            if self._pid == 0 and not self._closed:
                self._pid = os.getpid()
                self._thread = threading.Thread(target=_run, name="plumbline", daemon=True, args=(
                    weakref.ref(self, functools.partial(_woken, self._wake)), self._wake, self._linger, self._alive))
                self._thread.start()
                if multiprocessing.parent_process() is not None:  # its children end without atexit
                    multiprocessing.util.Finalize(None, _close_all, exitpriority=10)

    def _forked(self) -> None:
        """Begins anew in a forked process: what was logged before is sent by the parent."""
        self._lock, self._went_lock = threading.Lock(), threading.Lock()
        self._wake, self._room = threading.Event(), threading.Event()
        self._calls, self._alive, self._stats, self._full = deque(), [], Stats(), 0
        self._came = self._came_bytes = self._went = self._went_bytes = self._pid = 0
        self._thread = None

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as servers make them for their workers, is a new logger with the same settings: what was logged
        before is sent by this one."""
        if _transport.secret(self.to, self._options):
            _transport.keep_secret("PlumblineLogger: make it in the worker")
        return self._again(), (self.model, self.version, self.to)

    def __copy__(self) -> PlumblineLogger:
        return self._again()(self.model, self.version, self.to)

    def __deepcopy__(self, _memo: Any) -> PlumblineLogger:
        return self.__copy__()

    def _again(self) -> functools.partial[PlumblineLogger]:
        settings: dict[str, Any] = {
            "max_bytes": self._max_bytes, "block": self._block, "sample": self._sample, "linger": self._linger,
            "batch_rows": self._batch_rows, "options": dict(self._options), "on_drop": self._on_drop}
        return functools.partial(type(self), **settings)

    def _turn(self, sent: _Sent) -> bool:
        """Sends what is there; False at the end."""
        try:
            sent.transport = sent.transport or connect(self.to, self.model, self.version, self._options)
            self._take(sent.pending)
            self._send(sent.transport, sent.pending)
        except Exception as e:
            self._warn(0, f"{type(e).__name__}: {e}")
            time.sleep(min(1.0, self._linger))
        if self._closed and not self._calls and not sent.pending or not self._in_time():
            if sent.transport is not None:
                sent.transport.flush(max(0.0, self._deadline - time.monotonic()))
            self._alive.clear()
            return False
        with self._lock:
            if not self._calls and not sent.pending:
                self._alive.clear()
        return True

    def _in_time(self) -> bool:
        return not self._closed or time.monotonic() <= self._deadline

    def _take(self, pending: deque[tuple[str, Any, Done]]) -> None:
        """Makes batches of calls, a bounded number at a time: others want the interpreter too."""
        while self._calls and len(pending) < 64:
            calls: list[_columns.Call] = []
            rows = 0
            while self._calls and rows < self._batch_rows:
                calls.append(Call(*self._calls.popleft()))
                rows += calls[-1].rows
            for kind, some, batch in _columns.groups(calls):
                rows, size = sum(c.rows for c in some), sum(c.bytes for c in some)
                if isinstance(batch, Exception):
                    self._refuse(rows, f"{type(batch).__name__}: {batch}", size)
                    continue
                if unknown := rows - batch.num_rows:
                    part = max(1, size * unknown // rows)
                    self._refuse(unknown, "label: not known", part)
                    rows, size = rows - unknown, size - part
                if rows:
                    pending.append((kind, batch, self._counter(rows, size)))

    def _send(self, transport: Transport, pending: deque[tuple[str, Any, Done]]) -> None:
        while pending and self._in_time():
            kind, batch, done = pending[0]
            try:
                transport.send(kind, batch, done, self._in_time)
            except Later as e:
                if str(e):
                    self._warn(0, str(e))
                transport.poll(0.05)
                return
            pending.popleft()
            transport.poll(0)
        transport.poll(0)

    def _counter(self, rows: int, size: int) -> Done:
        """Counts what became of the rows of a batch, which may come in parts, and gives back their room."""
        left = [rows, size]

        def done(rows: int, why: str | None) -> None:
            part = left[1] if rows >= left[0] else left[1] * rows // left[0]
            left[0] -= rows
            left[1] -= part
            with self._went_lock:
                if self._ended:  # it came after close() had counted them
                    if why is None:
                        self._stats.dropped -= rows
                        self._stats.sent += rows
                    return
                self._went += rows
                self._went_bytes += part
                if why is None:
                    self._stats.sent += rows
                else:
                    self._stats.failed += rows
                    self._count(why, rows)
            self._room.set()
            if why is not None:
                self._warn(rows, why)

        return done

    def _count(self, why: str, rows: int) -> None:
        if why in self._stats.errors or len(self._stats.errors) < 32:
            self._stats.errors[why] = self._stats.errors.get(why, 0) + rows

    def _refuse(self, rows: int, why: str, size: int = 0) -> None:
        """Counts rows that cannot be sent: of so many bytes that waited, or that never came to wait."""
        with self._went_lock:
            if size:
                if self._ended:
                    return
                self._went += rows
                self._went_bytes += size
            else:
                self._stats.logged += rows
            self._stats.refused += rows
            self._count(why, rows)
        self._room.set()
        self._warn(rows, why)

    def _warn(self, rows: int, why: str) -> None:
        if self._on_drop is not None and rows:
            try:
                self._on_drop(rows, why)
            except Exception:  # neither what serves nor what sends may end because of it
                _log.exception("plumbline %s: on_drop", self.model)
        now = time.monotonic()
        if now - self._warned >= 60:
            self._warned = now
            _log.warning("plumbline %s: %s; %s", self.model, why, self.stats())

    def stats(self) -> Stats:
        """What became of the rows so far."""
        with self._lock, self._went_lock:
            s = Stats(**{**self._stats.__dict__, "errors": dict(self._stats.errors)})
            s.waiting, s.waiting_bytes = self._came - self._went, self._came_bytes - self._went_bytes
            s.logged += self._came + s.sampled_out + self._full
        return s

    _deadline = 0.0

    def close(self, timeout: float = 10.0) -> Stats:
        """Sends what waits, for so many seconds at most, and ends. What is left then is dropped; rows
        of a request that was on its way are sent, should it arrive."""
        if not self._closed:
            self._deadline = time.monotonic() + timeout
            with self._lock:
                self._closed = True
            self._wake.set()
            if self._thread is not None and self._pid == os.getpid():
                self._thread.join(timeout + 1)
            with self._lock, self._went_lock:
                self._stats.dropped += self._came - self._went
                self._went, self._went_bytes = self._came, self._came_bytes
                self._ended = True
        return self.stats()

    def __enter__(self) -> PlumblineLogger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Sent:
    """What the thread of a logger has at hand."""

    transport: Transport | None = None

    def __init__(self) -> None:
        self.pending: deque[tuple[str, Any, Done]] = deque()  # batches that nobody took yet


def _run(me: weakref.ref[PlumblineLogger], wake: threading.Event, pause: float, _alive: list[PlumblineLogger]) -> None:
    """The thread of a logger, which it has in a turn, and by _alive while rows wait: nobody else may have it."""
    sent = _Sent()
    while True:
        wake.wait(pause)
        wake.clear()
        logger = me()
        if logger is None:
            if sent.transport is not None:
                sent.transport.flush(10.0)
            return
        if not logger._turn(sent):
            return
        pause = 0.0 if logger._closed else logger._linger
        del logger


def _woken(wake: threading.Event, _gone: Any) -> None:
    wake.set()


_loggers: weakref.WeakSet[PlumblineLogger] = weakref.WeakSet()


def _close_all() -> None:
    for logger in list(_loggers):
        logger.close()


def _forked_all() -> None:
    for logger in list(_loggers):
        logger._forked()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked_all)


def connect_check(to: str) -> None:
    """Refuses at once what can never work, and loads what is slow to load: connections are made in the background."""
    if to.startswith("kafka://"):
        try:
            import confluent_kafka  # noqa: F401
        except ImportError as e:
            raise ImportError('to="kafka://…" needs confluent-kafka: pip install "plumbline[kafka]"') from e
    elif not to.startswith(("http://", "https://")):
        raise ValueError(f"to={_transport.shown(to)!r}: must begin with kafka://, http:// or https://")


def new_ids(n: int) -> Sequence[str]:
    """Ids for rows that have none."""
    import uuid

    first = uuid.uuid4().hex
    return [f"{first}-{i}" for i in range(n)]
