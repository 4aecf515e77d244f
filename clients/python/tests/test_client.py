"""Tests of the client without a broker: python -m unittest discover clients/python/tests."""
import copy
import gc
import http.server
import json
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
import types
import unittest
import unittest.mock
import warnings
import zlib

import numpy as np
import pyarrow as pa

from plumbline import Calibrator, PlumblineLogger
from plumbline import _columns, _maps, _transport, hooks
from plumbline._murmur import partitions

NOBODY = "http://127.0.0.1:9"


class Server:
    """An HTTP server that answers as the test says: answers(path, body) -> (status, headers, body)."""

    def __init__(self, answers, bound=None):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, headers, text = answers(self.path, body)
                self.send_response(status)
                for k, v in {**headers, "Content-Length": str(len(text))}.items():
                    self.send_header(k, v)
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=bound is None)
        if bound is not None:
            self.server.socket.close()
            self.server.socket, self.server.server_address = bound, bound.getsockname()
            self.server.server_activate()
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()


class Receiver(Server):
    """Keeps the rows that it is sent."""

    def __init__(self, statuses=(), bound=None):
        self.rows, self.metadata, self.statuses = {"predictions": [], "labels": []}, [], list(statuses)
        super().__init__(self.take, bound)

    def take(self, path, body):
        if self.statuses:
            return self.statuses.pop(0), {}, b'{"error": "not now"}'
        table = pa.ipc.open_stream(body).read_all()
        self.metadata.append((path, table.schema.metadata))
        self.rows[path.rsplit("/", 1)[1]] += table.drop_columns(["ts"]).to_pylist()
        return 200, {}, json.dumps({"rows": table.num_rows, "rejected": 0}).encode()


class Tensor:
    """As one of torch that needs its gradient: NumPy cannot read it, and its text is no number."""

    def __init__(self, value):
        self.value = np.asarray(value)
        self.ndim = self.value.ndim
        self.nbytes = self.value.nbytes

    def __array__(self, *_, **__):
        raise RuntimeError("detach it first")

    def __len__(self):
        return len(self.value)

    def __str__(self):
        return f"tensor({self.value})"

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.value

    def clone(self):
        return Tensor(self.value.copy())

    def item(self):
        return self.value.item()


class TestLogger(unittest.TestCase):
    def receiver(self, *statuses):
        r = Receiver(statuses)
        self.addCleanup(r.close)
        return r

    def total(self, s):
        return s.sampled_out + s.dropped + s.refused + s.failed + s.sent + s.waiting

    def test_rows_arrive_as_they_were_at_the_call(self):
        r = self.receiver(503, 429)
        with PlumblineLogger("a/b", version="7", to=r.url, linger=0.01) as logger:
            z = np.arange(6, dtype=np.float64).reshape(2, 3)
            logger.log(["x", "y"], logits=z, region="eu", tier=["1", "2"], features=z[:, :2], served=[0.5, 0.6])
            z[:] = -1  # the buffer of the server
            logger.log(["z"], logits=[[7.0, 8.0, 9.0]], region="us", tier="3", features=[[1.0, 2.0]], served=0.7)
            logger.label(["x", "y"], np.array([2, 0]))
            logger.label(7, 1)
        self.assertEqual(logger.stats().sent, 6, logger.stats())
        rows = r.rows["predictions"]
        self.assertEqual([(q["id"], q["logits"], q["region"], q["tier"]) for q in rows],
                         [("x", [0, 1, 2], "eu", "1"), ("y", [3, 4, 5], "eu", "2"), ("z", [7, 8, 9], "us", "3")])
        self.assertEqual(rows[1]["features"], [3, 4])
        self.assertEqual([(q["id"], q["label"]) for q in r.rows["labels"]], [("x", 2), ("y", 0), (7, 1)])
        path, metadata = r.metadata[0]
        self.assertTrue(path.startswith("/api/v1/ingest/a%2Fb/"))
        self.assertEqual(metadata, {b"plumbline.model": b"a/b", b"plumbline.version": b"7"})

    def test_libraries(self):
        r = self.receiver()
        calls = 0
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            try:
                import pandas as pd
                logger.log(pd.Series(["p", "q"]), probs=pd.DataFrame({"a": [0.25, 0.5], "b": [0.75, 0.5]}),
                           ts=pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"])), s=pd.Series(["x", "y"]))
                calls += 2
            except ImportError:
                pass
            try:
                import polars as pl
                logger.log(pl.Series(["r"]), probs=pl.DataFrame({"a": [0.25], "b": [0.75]}), s=pl.Series(["z"]))
                calls += 1
            except ImportError:
                pass
            try:
                import torch
                logger.log(["t"], logits=torch.tensor([[1.0, 2.0]], requires_grad=True))
                calls += 1
            except ImportError:
                pass
            logger.log(np.array([5, 6]), prob=np.array([0.25, 0.5]), label=[True, False])
            logger.log((i for i in ()), probs=[])  # no length: refused, not raised
        s = logger.stats()
        self.assertEqual((s.sent, s.refused), (calls + 2, 1), s)
        self.assertEqual([q["prob"] for q in r.rows["predictions"] if "prob" in q], [0.25, 0.5])

    def test_columns_of_lists(self):
        """A DataFrame keeps the scores of a row as a list, in a column that NumPy takes for objects."""
        r = self.receiver()
        column = np.empty(2, object)
        column[:] = [np.array([0.25, 0.75]), [0.5, 0.5]]
        frame = types.SimpleNamespace(to_numpy=lambda: column)
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.log(["a", "b"], probs=column)
            logger.log(["c", "d"], probs=frame, features=column)
        with PlumblineLogger("m", to=r.url, linger=0.01, sample=0.999999) as sampled:
            sampled.log(["e", "f"], probs=column)
        self.assertEqual((logger.stats().sent, sampled.stats().sent), (4, 2), (logger.stats(), sampled.stats()))
        self.assertEqual([q["probs"] for q in r.rows["predictions"]], [[0.25, 0.75], [0.5, 0.5]] * 3)

        np.testing.assert_allclose(Calibrator()(frame)[1], [0.5, 0.5])

    def test_lists_of_tensors(self):
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.05) as logger:
            z = Tensor([1.0, 2.0])
            logger.log([Tensor(7), Tensor(8)], logits=[z, Tensor([3.0, 4.0])], region=[Tensor(1), Tensor(2)])
            z.value[:] = -1
            logger.label([Tensor(7)], [Tensor(1)])
            logger.label(Tensor(8), Tensor(0))
            logger.label([2**70], [1])
        self.assertEqual([(q["id"], q["logits"], q["region"]) for q in r.rows["predictions"]],
                         [(7, [1, 2], "1"), (8, [3, 4], "2")], logger.stats())
        self.assertEqual([(q["id"], q["label"]) for q in r.rows["labels"]], [(7, 1), (8, 0)])
        self.assertEqual(list(logger.stats().errors),
                         [f"ValueError: id: {2**70} has more than 64 bits: send it as text, with its labels"])

    def test_what_does_not_fit_is_refused_alone(self):
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.05) as logger:
            logger.log(["a"], probs=[[0.5, 0.5]])
            logger.log(["b", "c"], probs=[[0.5, 0.5]])
            logger.log(["d"], probs="text")
            logger.log(["e"], probs=[[0.5, 0.25, 0.25]])
        s = logger.stats()
        self.assertEqual((s.logged, s.sent, s.refused), (5, 2, 3), s)
        self.assertTrue(s.errors)

    def test_scores_that_are_no_table_are_named(self):
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.log(["a", "b"], logits=[[1, 2], [1, 2, 3]])
            logger.log(["a", "b"], probs=[[0.5, 0.5]] * 2, features=[[1, 2], None])
        s = logger.stats()
        self.assertEqual((s.sent, s.refused), (0, 4), s)
        for name, why in zip(("logits", "features"), s.errors, strict=True):
            self.assertTrue(why.startswith(f"ValueError: {name}: must be numbers, as many in each row"), why)

    def test_wrong_lengths_that_add_up_are_refused(self):
        """Calls become one batch, in which two mistakes must not make up for each other."""
        p = [0.5, 0.5]
        for wrong in (lambda log: (log.label(["a", "b"], [1]), log.label(["c"], [0, 1])),
                      lambda log: (log.log(["a", "b"], probs=[p] * 3), log.log(["c", "d", "e"], probs=[p] * 2)),
                      lambda log: (log.log(["a", "b"], probs=[p] * 2, s=["x"]),
                                   log.log(["c"], probs=[p], s=["y", "z"])),
                      lambda log: (log.log(["a", "b"], probs=[p] * 2, ts=[1.0]),
                                   log.log(["c"], probs=[p], ts=[1.0, 2.0]))):
            r = self.receiver()
            with PlumblineLogger("m", to=r.url, linger=0.3) as logger:
                wrong(logger)
            s = logger.stats()
            self.assertEqual((s.sent, s.refused), (0, s.logged), s)

    def test_values_that_no_column_has(self):
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            for label in (2**32, 1e12, -(2**40), 0.5, float("inf"), float("nan")):
                logger.label(["a"], np.array([label]))
            for ids in ([1, "1"], ["a", b"b"], np.array([["a"]]), ["a", 1]):
                logger.label(ids, [1] * len(ids))
            for name in ("id", "model", "version"):
                logger.log(["a"], probs=[[0.5, 0.5]], **{name: "x"}) if name != "id" else logger._put(
                    "predictions", ["a"], {"probs": [[0.5, 0.5]], "id": "x"})
            logger.log(["a"], probs=[[0.5, 0.5]], ts=["yesterday"])
        s = logger.stats()
        self.assertEqual((s.sent, s.refused), (0, s.logged), s)
        self.assertIn("ValueError: label: 4294967296 is no class", s.errors)

    def test_labels_that_are_not_known(self):
        """What is known of a call goes on without them, and a prediction has one later."""
        for y in ([2, None, 0], np.array([2, np.nan, 0]), np.array([2, None, 0], object), ["2", None, "0"]):
            r = self.receiver()
            with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
                logger.label(["a", "b", "c"], y)
                logger.label(["d"], [None])
                logger.log(["a", "b", "c"], probs=[[0.5, 0.25, 0.25]] * 3, label=y)
            s = logger.stats()
            self.assertEqual([(q["id"], q["label"]) for q in r.rows["labels"]], [("a", 2), ("c", 0)])
            self.assertEqual([q["label"] for q in r.rows["predictions"]], [2, None, 0])
            self.assertEqual((s.sent, s.refused, s.errors), (5, 2, {"label: not known": 2}))
            self.assertEqual((self.total(s), s.waiting, s.waiting_bytes), (s.logged, 0, 0))

    def test_names_of_classes_are_no_labels(self):
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.label(["a"], ["cat"])
            logger.label(["b"], np.array([1, 1.5], object)[1:])
        self.assertEqual(logger.stats().refused, 2)
        first, second = logger.stats().errors
        self.assertEqual(first, "ValueError: label: 'cat', must be the number of a class, by the order of the scores")
        self.assertEqual(second, "ValueError: label: 1.5 is no class")

    def test_a_text_that_no_process_takes_is_refused_alone(self):
        """A process refuses the whole message for it, and with it the rows of other calls."""
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.3) as logger:
            for region in ("eu", "x" * 257, "\ud800", None, "y" * 256):
                logger.log(["a"], probs=[[0.5, 0.5]], region=[region])
        s = logger.stats()
        self.assertEqual((s.sent, s.refused), (3, 2), s)
        self.assertIn("ValueError: region: a text of 257 bytes, at most 256", s.errors)
        for model, version in (("", ""), ("m" * 257, ""), ("m", "v" * 257), ("\ud800", "")):
            with self.assertRaises(ValueError):
                PlumblineLogger(model, version)

    def test_ids(self):
        import uuid
        r = self.receiver()
        name = uuid.uuid4()
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            for ids in ([None, float("nan"), "x"], [b"abc"], np.array([2**64 - 1], np.uint64), np.int64(5), name,
                        {"k": 1}.keys()):
                logger.label(ids, [1] * (len(ids) if hasattr(ids, "__len__") else 1))
        self.assertCountEqual([q["id"] for q in r.rows["labels"]],
                              [None, None, "x", b"abc", 2**64 - 1, 5, str(name), "k"], logger.stats())

    def test_times(self):
        want = 1_700_000_000_123_000_000
        got = [_columns.nanoseconds(v).tolist() for v in (
            [1_700_000_000], [1_700_000_000_123], [1_700_000_000_123_000], [want], [1_700_000_000.123],
            ["2023-11-14T22:13:20.123Z"], ["2023-11-14T23:13:20.123+01:00"], [7])]
        self.assertEqual(got[0], [1_700_000_000 * 10**9])
        self.assertEqual(got[1:4] + got[5:], [[want]] * 5 + [[7 * 10**9]])  # as schema.md says
        self.assertLess(abs(got[4][0] - want), 1000)
        r = self.receiver()
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.log(["a", "b"], probs=[[0.5, 0.5]] * 2, ts=time.time())  # one for all rows
        self.assertEqual(logger.stats().sent, 2, logger.stats())

    def test_a_call_copies_nested_lists(self):
        r = self.receiver()
        rows, ids = [[0.25, 0.75], [0.5, 0.5]], {"x": 1, "y": 2}
        with PlumblineLogger("m", to=r.url, linger=0.2) as logger:
            logger.log(ids.keys(), probs=rows)
            rows[0][0], rows[1] = 9.0, [7.0, 7.0]
            ids.clear()
        self.assertEqual([(q["id"], q["probs"]) for q in r.rows["predictions"]], [("x", [0.25, 0.75]), ("y", [0.5, 0.5])])

    def test_a_large_batch_meets_a_process_that_does_not_read_it(self):
        """A process refuses by Content-Length, and may close before the body has come."""
        taken, listener = [], socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            while True:
                try:
                    conn, _ = listener.accept()
                except OSError:
                    return
                with conn, conn.makefile("rb") as f:
                    while line := f.readline():
                        head = [line]
                        while (line := f.readline()).strip():
                            head.append(line)
                        n = next(int(h.split(b":")[1]) for h in head if h.lower().startswith(b"content-length"))
                        if n > 1 << 20:
                            conn.sendall(b"HTTP/1.1 413 x\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
                            conn.shutdown(socket.SHUT_WR)
                            time.sleep(0.2)  # the answer comes before the reset
                            break
                        rows = pa.ipc.open_stream(f.read(n)).read_all().num_rows
                        taken.append(rows)
                        body = json.dumps({"rows": rows, "rejected": 0}).encode()
                        conn.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))

        threading.Thread(target=serve, daemon=True).start()
        logger = PlumblineLogger("m", to=f"http://127.0.0.1:{listener.getsockname()[1]}", linger=0.01, max_bytes=1 << 28)
        n = 12_000  # 48 MB
        logger.log([f"r{i}" for i in range(n)], logits=np.zeros((n, 1000), np.float32))
        logger.label(["a"], [1])
        s = logger.close(timeout=60)
        self.assertEqual((s.sent, s.failed, s.dropped), (n + 1, 0, 0), s)
        self.assertEqual(sum(taken), n + 1)

    def test_what_is_no_answer_is_no_success(self):
        def refused(_path, _body):
            return 400, {}, b"[" * 60_000

        server = Server(refused)
        self.addCleanup(server.close)
        with PlumblineLogger("m", to=server.url, linger=0.01, sample=0.999) as logger:
            logger.label({"a": 1}.keys(), [1])
        self.assertEqual(logger.stats().failed, 1, logger.stats())
        for body in (b"<html>", b"[1]", b"{}", b'{"rows": "x"}', b'{"rows": 1, "rejected": null}',
                     b'{"rows": 1, "rejected": 99, "first_rejected": "x"}', b"[" * 100_000):
            server = Server(lambda _path, _body, body=body: (200, {}, body))
            self.addCleanup(server.close)
            with PlumblineLogger("m", to=server.url, linger=0.01) as logger:
                logger.label(["a"], [1])
            s = logger.stats()
            self.assertEqual((s.sent, s.failed, s.dropped), (0, 1, 0), (body[:40], s))

    def test_a_redirection_is_named(self):
        server = Server(lambda _path, _body: (301, {"Location": "https://elsewhere/"}, b""))
        self.addCleanup(server.close)
        with PlumblineLogger("m", to=server.url, linger=0.01) as logger:
            logger.label(["a"], [1])
        why = "301: a redirection to https://elsewhere/, which is not followed: name that address"
        self.assertEqual(logger.stats().errors, {why: 1})

    def test_children_of_multiprocessing_send_what_lingers(self):
        r = self.receiver()
        program = f"""
import multiprocessing
from plumbline import PlumblineLogger
def child():
    logger = PlumblineLogger("m", to={r.url!r}, linger=60)
    logger.label(["child"], [1])
if __name__ == "__main__":
    p = multiprocessing.get_context("fork").Process(target=child)
    p.start()
    p.join()
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True)
        self.assertEqual((done.returncode, [q["id"] for q in r.rows["labels"]]), (0, ["child"]), done.stderr)

    def test_a_copy_for_a_worker_is_a_logger_of_its_own(self):
        r = self.receiver()
        logger = PlumblineLogger("m", "7", r.url, linger=60, sample=0.5, block=0.25, batch_rows=9, max_bytes=1 << 20,
                                 options={"timeout": 3}, on_drop=print)
        logger.label(["a"], [1])
        for copied in (pickle.loads(pickle.dumps(logger)), copy.copy(logger), copy.deepcopy(logger)):
            self.assertEqual(copied.stats().logged, 0)
            copied.label(["b", "c"], [0, 1])
            self.assertEqual(copied.close().logged, 2)
            kept = {k: v for k, v in vars(copied).items() if isinstance(v, (str, int, float, dict)) and k in (
                "model", "version", "to", "_max_bytes", "_block", "_sample", "_linger", "_batch_rows", "_options")}
            self.assertEqual(kept, {k: vars(logger)[k] for k in kept})
        self.assertEqual(logger.close().logged, 1)

    def test_a_logger_that_nobody_has_sends_what_waits_and_ends(self):
        r = self.receiver()

        def threads():
            gc.collect()
            return sum(t.name == "plumbline" for t in threading.enumerate())

        before = threads()
        for i in range(20):
            PlumblineLogger("m", to=r.url, linger=0.05).label([i], [1])
        end = time.monotonic() + 8
        while threads() > before and time.monotonic() < end:
            time.sleep(0.05)
        self.assertEqual(threads(), before)
        self.assertEqual(sorted(q["id"] for q in r.rows["labels"]), list(range(20)))

    def test_no_pickle_has_a_password(self):
        for to, options in (("http://ann:pa55@h", {}), ("http://h", {"token": "pa55"})):
            logger = PlumblineLogger("m", to=to, options=options, max_bytes=1)
            with self.assertRaisesRegex(TypeError, "make it in the worker; a pickle would hold its password or token"):
                pickle.dumps(logger)
            self.assertEqual(copy.deepcopy(logger).to, to)
            with self.assertLogs("plumbline") as said:
                logger.label(["a"], [1])
            self.assertNotIn("pa55", repr(logger) + "".join(said.output))
            with unittest.mock.patch("multiprocessing.context.get_spawning_popen", return_value=1):
                self.assertEqual(pickle.loads(pickle.dumps(logger)).to, to)  # a process begins: no file has it
        for to in ("kafka://h:9?sasl.password=pa55", "http://TOKEN@h", "http://h?apikey=TOKEN", "http://h?api-key=TOKEN",
                   "kafka://h:9?basic.auth.user.info=a:pa55", "kafka://h:9?sasl.oauthbearer.config=pa55"):
            self.assertTrue(_transport.secret(to, {}), to)
        self.assertFalse(_transport.secret("kafka://h:9?security.protocol=SSL", {"timeout": 3, "acks": 1}))
        c = Calibrator()
        c._headers = {"Authorization": "Bearer pa55"}
        with self.assertRaisesRegex(TypeError, "call it in the worker; a pickle would hold"):
            pickle.dumps(c)
        self.assertEqual(copy.copy(c)._headers, c._headers)

    def test_retry_after(self):
        answers = [(503, {"Retry-After": "Fri, 31 Dec 2027 23:59:59 GMT"}, b'{"error": "busy"}'),
                   (429, {"Retry-After": "0"}, b"{}"), (200, {}, b'{"rows": 1}')]
        now, at = [0.0], []
        clock = types.SimpleNamespace(monotonic=lambda: now[0],
                                      sleep=lambda seconds: now.__setitem__(0, now[0] + seconds))
        server = Server(lambda _path, _body: (at.append(now[0]), answers.pop(0))[1])
        self.addCleanup(server.close)
        with unittest.mock.patch.object(_transport, "time", clock), self.assertLogs("plumbline") as said:
            with PlumblineLogger("m", to=server.url, linger=0.01) as logger:
                logger.label("a", 1)
                logger.close(timeout=60)
        self.assertEqual(logger.stats().sent, 1)
        self.assertTrue(1 <= at[1] - at[0] < 2, at)  # the date is no number: a second
        self.assertLess(at[2] - at[1], 1)
        self.assertIn("503: busy", said.output[0])
        for text, seconds in (("7", 7), ("1000000", 30), ("-3", 0), ("nan", 1), ("", 1), (None, 1), ("soon", 1)):
            self.assertEqual(_transport._seconds(text), seconds, text)

    def test_refused_by_the_process(self):
        r = self.receiver(400)
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.log(["a"], probs=[[0.5, 0.5]])
        s = logger.stats()
        self.assertEqual((s.failed, s.errors), (1, {"400: not now": 1}))

    def test_what_is_refused_for_good_is_counted_and_the_rest_goes_on(self):
        for code in (401, 403, 404, 413, 422):
            dropped = []
            r = self.receiver(code)
            with PlumblineLogger("m", to=r.url, linger=0.01, on_drop=lambda rows, _why: dropped.append(rows)) as logger:
                logger.log(["a"], probs=[[0.5, 0.5]])
                time.sleep(0.1)
                logger.label(["a"], [1])
            s = logger.stats()
            self.assertEqual((s.failed, s.sent, dropped, s.errors), (1, 1, [1], {f"{code}: not now": 1}))

    def test_a_slow_network_loses_nothing(self):
        r = self.receiver(408, 408)
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            logger.label(["a", "b"], [0, 1])
        self.assertEqual((logger.stats().sent, [q["id"] for q in r.rows["labels"]]), (2, ["a", "b"]))

    def test_too_large_is_halved(self):
        r = self.receiver()
        take = r.take

        def small(path, body):
            return (413, {}, b"{}") if len(body) > 3000 else take(path, body)

        s = Server(small)
        self.addCleanup(s.close)
        ids = [f"row-{i}" for i in range(300)]
        with PlumblineLogger("m", to=s.url, linger=0.01) as logger:
            logger.label(ids, np.zeros(300, int))
            logger.log(["large"], probs=np.full((1, 2000), 1 / 2000))
            logger.label("after", 1)
        got = logger.stats()
        self.assertEqual((got.sent, got.failed), (301, 1), got)
        self.assertEqual([q["id"] for q in r.rows["labels"]], [*ids, "after"])

    def test_at_the_end_of_the_process(self):
        """What was logged arrives without close(), also when an error ends the process; children of a pool do not
        hang or send twice."""
        r = self.receiver()
        program = f"""
import multiprocessing, sys
from plumbline import PlumblineLogger
logger = PlumblineLogger("m", to={r.url!r}, linger=60)
def child(i):
    logger.log([f"child-{{i}}"], probs=[[0.5, 0.5]])
    return logger.close().sent
logger.log(["parent"], probs=[[0.5, 0.5]])
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert sum(pool.map(child, range(1))) == 1
raise SystemExit(7)
"""
        done = subprocess.run([sys.executable, "-c", program], timeout=60, capture_output=True)
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertEqual(sorted(q["id"] for q in r.rows["predictions"]), ["child-0", "parent"])

    def test_a_kill_loses_no_more_than_what_lingers(self):
        r = self.receiver()
        program = f"""
import os, signal, time
from plumbline import PlumblineLogger
logger = PlumblineLogger("m", to={r.url!r}, linger=0.05)
for i in range(100):
    while i == 50 and logger.stats().waiting:  # a linger has passed
        time.sleep(0.01)
    logger.label(i, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""
        subprocess.run([sys.executable, "-c", program], timeout=60)
        got = [q["id"] for q in r.rows["labels"]]
        self.assertEqual(got, list(range(len(got))))
        self.assertGreaterEqual(len(got), 50)

    def test_bounded_and_fast_without_anybody(self):
        dropped = []
        logger = PlumblineLogger("m", to=NOBODY, max_bytes=1 << 20, linger=0.01,
                                 on_drop=lambda rows, why: dropped.append(rows))
        z = np.zeros((10, 10), np.float32)
        for i in range(3000):
            logger.log([f"{i}-{j}" for j in range(10)], logits=z)
        s = logger.stats()
        self.assertLessEqual(s.waiting_bytes, 1 << 20)
        self.assertGreater(s.dropped, 1000)
        self.assertEqual((s.logged, self.total(s), sum(dropped)), (30000, 30000, s.dropped))
        s = logger.close(timeout=0.5)  # returns, though nobody comes
        self.assertEqual((s.sent, self.total(s)), (0, 30000))

    def test_max_bytes_is_what_is_kept(self):
        def ids(at, n):
            return [f"prediction-{at}-{i}" for i in range(n)]

        for name, call in {
            "a row with slices": lambda at: (ids(at, 1), {"logits": np.zeros((1, 3)), "region": f"eu-{at}",
                                                          "tenant": f"{at}" * 20, "device": f"d-{at}"}),
            "a batch with all": lambda at: (ids(at, 64), {"logits": np.zeros((64, 10)), "region": ids(at, 64),
                                                          "features": np.zeros((64, 10)), "label": ids(at, 64)}),
            "lists": lambda at: (ids(at, 9), {"logits": [[at + .1 * i, .5 * at] for i in range(9)]}),
            "long ids": lambda at: (["x" * 400 + f"{at}"], {"probs": np.zeros((1, 3))}),
        }.items():
            with self.subTest(name):
                logger = PlumblineLogger("m", to=NOBODY, max_bytes=4 << 20, linger=3600)
                logger._start = lambda: None  # nobody takes calls out
                tracemalloc.start()
                before, at = tracemalloc.get_traced_memory()[0], 0
                while not logger.stats().dropped:
                    rows, columns = call(at)
                    logger.log(rows, **columns)
                    at += 1
                kept = tracemalloc.get_traced_memory()[0] - before
                tracemalloc.stop()
                self.assertLessEqual(logger.stats().waiting_bytes, 4 << 20)
                self.assertAlmostEqual(kept / logger.stats().waiting_bytes, 1, delta=0.2)
                logger.close(timeout=0)

    def test_block_waits_as_long_as_set(self):
        logger = PlumblineLogger("m", to=NOBODY, max_bytes=1000, block=0.2, linger=0.01)
        for _ in range(3):
            logger.log(["a"], logits=np.zeros((1, 50), np.float32))
        began = time.monotonic()
        logger.log(["a"], logits=np.zeros((1, 50), np.float32))
        self.assertGreater(time.monotonic() - began, 0.15)
        logger.close(timeout=0)

    def test_it_goes_on_when_somebody_comes(self):
        bound = socket.socket()  # and does not listen yet: connections are refused, and nobody else gets the port
        self.addCleanup(bound.close)
        bound.bind(("127.0.0.1", 0))
        logger = PlumblineLogger("m", to=f"http://127.0.0.1:{bound.getsockname()[1]}", linger=0.01)
        with self.assertLogs("plumbline") as said:
            logger.log(["a"], probs=[[0.5, 0.5]])
            while not said.output:
                time.sleep(0.01)
        self.assertEqual(logger.stats().waiting, 1)
        again = Receiver(bound=bound)
        self.addCleanup(again.close)
        self.assertEqual(logger.close(timeout=60).sent, 1)
        self.assertEqual(len(again.rows["predictions"]), 1)

    def test_sample_keeps_predictions_and_labels_of_the_same_ids(self):
        r = self.receiver()
        ids = [f"row-{i}" for i in range(4000)]
        with PlumblineLogger("m", to=r.url, sample=0.25, linger=0.01) as logger:
            logger.log(ids, probs=np.full((4000, 2), 0.5), s=["a"] * 4000)
            logger.label(ids, np.zeros(4000, int))
        kept = [q["id"] for q in r.rows["predictions"]]
        self.assertEqual(kept, [q["id"] for q in r.rows["labels"]])
        self.assertTrue(850 < len(kept) < 1150, len(kept))
        self.assertEqual({q["weight"] for q in r.rows["predictions"]}, {4.0})
        s = logger.stats()
        self.assertEqual((s.logged, s.sampled_out + s.sent), (8000, 8000))

    def test_sampled_rows_are_those_without_sampling(self):
        """Whatever shape a column has, a row keeps its own values; what does not fit is refused."""
        ids, half = [f"row-{i}" for i in range(4)], {"logits": np.arange(8.0).reshape(4, 2)}
        good = ({"logits": np.arange(8, dtype=np.float32)}, {"logits": list(range(8))}, {"probs": np.arange(8) / 8},
                {"logits": np.arange(8).reshape(1, 4, 2)}, {**half, "features": np.arange(12)},
                {**half, "label": np.arange(4).reshape(1, 4)}, {**half, "served": [0.5]}, {**half, "weight": [2.0]},
                {**half, "served": np.arange(4).reshape(1, 4) / 4}, {**half, "s": {i: 1 for i in "abcd"}.keys()},
                {**half, "ts": np.array(1.7e9)}, {**half, "s": "x", "t": None}, {**half, "s": ("a", "b", "c", "d")},
                {"logit": np.arange(4).reshape(1, 4, 1)})
        bad = ({"logits": np.arange(8).reshape(2, 4)}, {"logits": np.arange(6)}, {**half, "label": [0, 1]},
               {**half, "served": [0.5, 0.5]}, {**half, "s": ["x", "y"]}, {**half, "ts": [1.0, 2.0]},
               {**half, "weight": [1.0, 2.0]}, {**half, "s": np.array(["x", "y"])})
        r = self.receiver()
        for columns, refused in [(c, 0) for c in good] + [(c, 4) for c in bad]:
            got = []
            for sample in (1.0, 0.6):
                r.rows["predictions"].clear()
                with PlumblineLogger("m", to=r.url, linger=0.01, sample=sample) as logger:
                    logger.log(ids, **columns)
                s = logger.stats()
                self.assertEqual((s.logged, s.refused, self.total(s)), (4, refused, 4), (columns, s))
                got.append({q["id"]: {k: v for k, v in q.items() if k != "weight"} for q in r.rows["predictions"]})
            if not refused:
                self.assertEqual((len(got[0]), len(got[1])), (4, 2), columns)
            self.assertEqual(got[1], {i: got[0][i] for i in got[1]}, columns)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_what_sampling_leaves_out_takes_no_room(self):
        logger = PlumblineLogger("m", to=NOBODY, sample=0.01, max_bytes=1000, block=5)
        ids = [f"row-{i}" for i in range(1000)]
        kept = [i for i in ids if zlib.crc32(i.encode()) < int(0.01 * (1 << 32))]
        logger.log(kept[:3], probs=np.full((3, 2), 0.5))  # nobody takes them, and others would wait for room
        full, began = logger.stats().waiting_bytes, time.monotonic()
        for i in [i for i in ids if i not in kept][:10]:
            logger.log([i], probs=[[0.5, 0.5]])
        s = logger.stats()
        self.assertLess(time.monotonic() - began, 5)
        self.assertEqual((s.sampled_out, s.waiting, s.waiting_bytes), (10, 3, full))
        self.assertEqual(logger.close(0).logged, 13)

    def test_calls_after_close_are_said_to_be(self):
        said, r = [], self.receiver()
        logger = PlumblineLogger("m", to=r.url, linger=0.01, on_drop=lambda *a: said.append(a))
        logger.close()
        logger.label(["a", "b"], [0, 1])
        s = logger.stats()
        self.assertEqual((s.dropped, s.waiting, s.waiting_bytes, s.logged), (2, 0, 0, 2))
        self.assertEqual(said, [(2, "the logger is closed")])

    def test_a_row_counts_once_when_close_does_not_wait_for_it(self):
        for status, text, sent in ((200, b'{"rows": 3}', 3), (400, b"{}", 0)):
            begun, go, asked = threading.Event(), threading.Event(), []

            def answer(_path, _body, begun=begun, go=go, asked=asked, status=status, text=text):
                asked.append(1)
                begun.set()
                go.wait(20)
                return status, {}, text

            server = Server(answer)
            self.addCleanup(server.close)
            logger = PlumblineLogger("m", to=server.url, linger=0.05, batch_rows=3)
            for i in range(6):  # a batch each
                logger.label([f"{i}-{j}" for j in range(3)], [0, 1, 2])
            self.assertTrue(begun.wait(10))
            s = logger.close(timeout=0)
            self.assertEqual((s.logged, s.dropped, s.waiting, s.waiting_bytes), (18, 18, 0, 0), s)
            go.set()
            logger._thread.join(10)
            s = logger.stats()
            self.assertEqual((s.logged, s.sent, s.dropped, s.failed, s.waiting, s.waiting_bytes, self.total(s)),
                             (18, sent, 18 - sent, 0, 0, 0, 18), s)
            self.assertEqual(len(asked), 1, "requests after close()")

    def test_a_large_batch_ends_with_close(self):
        begun, go, asked = threading.Event(), threading.Event(), []

        def answer(_path, body):
            asked.append(len(body))
            begun.set()
            go.wait(20)
            return 200, {}, json.dumps({"rows": pa.ipc.open_stream(body).read_all().num_rows}).encode()

        server = Server(answer)
        self.addCleanup(server.close)
        logger = PlumblineLogger("m", to=server.url, linger=0.05)
        logger.log([f"r{i}" for i in range(4000)], logits=np.zeros((4000, 2000), np.float32))  # four requests
        self.assertTrue(begun.wait(10))
        self.assertEqual(logger.close(timeout=0).dropped, 4000)
        go.set()
        logger._thread.join(10)
        s = logger.stats()
        self.assertEqual((len(asked), s.sent, s.dropped, s.waiting), (1, 1000, 3000, 0), s)

    def test_close_tries_again_without_lingering(self):
        r = self.receiver(503)
        logger = PlumblineLogger("m", to=r.url, linger=60)
        logger.label(["a"], [1])
        self.assertEqual(logger.close(timeout=60).sent, 1)

    def test_what_raises_loses_no_other_rows(self):
        class Away:  # ids on a device that has failed, say
            def __len__(self):
                return 3

            def detach(self):
                return self

            clone = cpu = detach

            def numpy(self):
                raise RuntimeError("no device")

        class Uncopied(Away):
            def clone(self):
                raise RuntimeError("no copy")

        def raises(_rows, _why):
            raise KeyError("on_drop")

        r = self.receiver()
        with self.assertLogs("plumbline") as said:
            with PlumblineLogger("m", to=r.url, linger=0.2, on_drop=raises) as logger:
                logger.label("a", 1)
                logger.label(Away(), [0, 1, 2])
                logger.label(["b", "c"], [1, 2])
                logger.label(["d", "e", "f"], Uncopied())
                logger.label(["g", "h"], [1])
                logger.label("i", 1)
        s = logger.stats()
        self.assertEqual((s.logged, s.refused, s.sent, s.dropped, s.waiting), (12, 8, 4, 0, 0), s)
        self.assertEqual(s.errors, {"RuntimeError: no device": 3, "RuntimeError: no copy": 3,
                                    "ValueError: label: 1 values for 2 ids": 2})
        self.assertEqual([q["id"] for q in r.rows["labels"]], ["a", "b", "c", "i"])
        self.assertIn("on_drop", "".join(said.output))

    def test_fork(self):
        r = self.receiver()
        logger = PlumblineLogger("m", to=r.url, linger=0.2)
        logger.log(["parent"], probs=[[0.5, 0.5]])
        if (child := os.fork()) == 0:
            logger.log(["child"], probs=[[0.5, 0.5]])
            sent = logger.close().sent
            os._exit(0 if sent == 1 else 1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(logger.close().sent, 1)
        self.assertEqual(sorted(q["id"] for q in r.rows["predictions"]), ["child", "parent"])

    def test_wrong_address(self):
        with self.assertRaisesRegex(ValueError, "kafka://"):
            PlumblineLogger("m", to="localhost:9092")


class Producer:
    """Stands in for that of confluent_kafka: bounded by bytes as librdkafka is, and delivers in poll when it may."""

    delivers = True

    def __init__(self, config):
        self.room, self.largest = config["queue.buffering.max.kbytes"] << 10, config["message.max.bytes"]
        self.queue, self.ids = [], []
        Producer.made = self

    def list_topics(self, topic, timeout):
        found = types.SimpleNamespace(error=None, partitions={0: None, 1: None, 2: None})
        return types.SimpleNamespace(topics={topic: found})

    def __len__(self):
        return len(self.queue)

    def produce(self, topic, value, partition, on_delivery):
        assert len(value) <= self.largest
        if sum(len(v) for v, _ in self.queue) + len(value) > self.room:
            raise BufferError("Local: Queue full")
        self.queue.append((value, on_delivery))

    def poll(self, seconds):
        if self.delivers:
            queue, self.queue = self.queue, []
            for value, report in queue:
                self.ids += pa.ipc.open_stream(value).read_all()["id"].to_pylist()
                report(None, None)
        else:
            time.sleep(seconds)

    flush = poll


class TestKafka(unittest.TestCase):
    def setUp(self):
        patch = unittest.mock.patch.dict(sys.modules, confluent_kafka=types.SimpleNamespace(Producer=Producer))
        patch.start()
        self.addCleanup(patch.stop)
        self.addCleanup(setattr, Producer, "delivers", True)

    def test_a_call_may_be_as_large_as_the_room_of_the_logger(self):
        for room in (32 << 10, 1 << 10):  # KiB of the producer
            with PlumblineLogger("m", to="kafka://x:1", linger=0.01,
                                 options={"queue.buffering.max.kbytes": room}) as logger:
                ids = [f"r{i}" for i in range(4000)]
                logger.log(ids, logits=np.zeros((4000, 2000), np.float32))  # 30.5 MiB
                logger.label("after", 1)
            s = logger.stats()
            self.assertEqual((s.sent, s.waiting_bytes, s.errors), (4001, 0, {}))
            self.assertEqual(sorted(Producer.made.ids), sorted([*ids, "after"]))

    def test_rows_wait_for_room_in_the_producer(self):
        Producer.delivers = False
        logger = PlumblineLogger("m", to="kafka://x:1", linger=0.01, options={"queue.buffering.max.kbytes": 4096})
        ids = [f"r{i}" for i in range(4000)]
        for at in range(0, 4000, 1000):
            logger.log(ids[at : at + 1000], logits=np.zeros((1000, 1000), np.float32))
            time.sleep(0.1)
        s = logger.stats()
        self.assertEqual((s.waiting, s.failed, s.sent), (4000, 0, 0), s)
        Producer.delivers = True
        s = logger.close()
        self.assertEqual((s.sent, s.waiting_bytes, s.errors), (4000, 0, {}))
        self.assertEqual(sorted(Producer.made.ids), sorted(ids))

    def test_a_message_that_never_fits_fails_alone(self):
        with PlumblineLogger("m", to="kafka://x:1", linger=0.01, options={"queue.buffering.max.kbytes": 64}) as logger:
            logger.log("large", logits=np.zeros((1, 50_000), np.float32))
            logger.label("after", 1)
        s = logger.stats()
        self.assertEqual((s.sent, s.errors), (1, {"BufferError: Local: Queue full": 1}))


class TestPartitions(unittest.TestCase):
    def test_murmur2_is_that_of_kafka(self):
        # Apache Kafka, UtilsTest.testMurmur2.
        for text, hashed in ((b"21", -973932308), (b"foobar", -790332482), (b"a-little-bit-long-string", -985981536),
                             (b"a-little-bit-longer-string", -1486304829), (b"abc", 479470107),
                             (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971)):
            n = 1_000_003
            self.assertEqual(int(partitions([text, b"x"], n)[0]), (hashed & 0x7FFFFFFF) % n, text)

    def test_integers_are_eight_bytes(self):
        batch = _columns.batch_of([_columns.Call("labels", np.array([258]), {"label": [1]}, 0, 1, 0)])
        self.assertEqual(_columns.id_bytes(batch), [b"\0\0\0\0\0\0\1\2"])


class TestCalibrator(unittest.TestCase):
    def test_an_answer_is_bounded(self):
        for body, problem in ((b" " * ((64 << 20) + 1), "more than 67108864 bytes"), (b"[1]", "no object")):
            server = Server(lambda path, _body, body=body: (200, {}, body))
            c = Calibrator.follow(server.url, "m", wait=2)
            self.assertIn(problem, c.problem)
            self.assertEqual(c.revision, 0)
            c.close()
            server.close()

    def test_it_is_the_reference(self):
        here = pathlib.Path(__file__).resolve()
        reference = here.parents[3] / "examples" / "calibrate" / "calibrate.py"
        self.assertEqual(reference.read_text(), pathlib.Path(_maps.__file__).read_text())

    def test_follow(self):
        now, changed = {"record": None}, threading.Event()

        def answer(path, _body):
            if now["record"] is None:
                return 503, {}, b"{}"
            if "wait=" in path and not changed.wait(2):
                return 304, {}, b""
            changed.clear()
            return 200, {"ETag": f'"{now["record"].get("revision")}"'}, json.dumps(now["record"]).encode()

        server = Server(answer)
        self.addCleanup(server.close)
        z = np.array([[1.0, 2.0, 4.0]])
        c = Calibrator.follow(server.url, "m", wait=2)
        self.addCleanup(c.close)
        np.testing.assert_allclose(c(z), _maps.softmax(z))
        self.assertIn("503", c.problem)

        def publish(record, revision, **more):
            now["record"] = {"model": "m", "version": "1", "revision": revision, "calibrator": record, **more}
            changed.set()
            end = time.monotonic() + 10
            while time.monotonic() < end and c.revision != revision and not c.problem.startswith(f"revision {revision}"):
                time.sleep(0.01)

        publish({"version": 1, "method": "temperature", "temperature": 2.0}, 1)
        np.testing.assert_allclose(c(z), _maps.softmax(z / 2))
        np.testing.assert_allclose(c(z[0]), _maps.softmax(z / 2)[0])
        self.assertEqual((c.revision, c.problem), (1, ""))
        publish({"version": 1, "method": "vector", "params": {"w": [1, 1], "b": [0, 0]}}, 2)
        np.testing.assert_allclose(c(z), _maps.softmax(z))  # it is for two classes
        self.assertIn("2 classes", c.problem)
        self.assertEqual(c.serving, (2, {}))
        top = {"slope": 1, "intercept": -0.5, "effective_from": "2026-01-01T00:01:00Z"}
        publish({"version": 1, "method": "identity"}, 3, top=top)
        self.assertEqual(c.serving, (3, top))
        p = _maps.softmax(z)[0]
        want = 1 / (1 + np.exp(0.5) * (1 - p[2]) / p[2])
        np.testing.assert_allclose(c(z)[0], [*(p[:2] * (1 - want) / (1 - p[2])), want])
        self.assertEqual(c.problem, "")
        own = [{"class": 2, "slope": 1, "intercept": -0.5}, {"class": 7, "slope": 1, "intercept": 9}]
        publish({"version": 1, "method": "identity"}, 4, top={"slope": 1, "intercept": 0, "apart": own})
        np.testing.assert_allclose(c(z)[0], [*(p[:2] * (1 - want) / (1 - p[2])), want])  # its predicted class is 2
        np.testing.assert_allclose(c(z[:, ::-1])[0], p[::-1])
        self.assertEqual(c.problem, "")
        publish({"version": 1, "method": "identity"}, 5, top={"power": 0.5, "slope": 1, "intercept": 0})
        np.testing.assert_allclose(c(z), _maps.softmax(z / 2))
        publish({"version": 1, "method": "of next year"}, 6)
        np.testing.assert_allclose(c(z), _maps.softmax(z))
        self.assertIn("of next year", c.problem)

    def test_logits_that_are_no_numbers(self):
        c = Calibrator()
        for calibrator in ({"version": 1, "method": "identity"},
                           {"version": 1, "method": "metacal",
                            "params": {"threshold": 0.5, "base": {"version": 1, "method": "identity"}}}):
            c._take(calibrator, 1, {})
            good = c([[3.0, 0.0], [0.0, 4.0]])
            for bad in (np.nan, np.inf, -np.inf):
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    p = c([[3.0, 0.0], [1.0, bad], [0.0, 4.0], [bad, bad]])
                np.testing.assert_array_equal(p[[0, 2]], good)
                self.assertTrue(np.isnan(p[[1, 3]]).all())
                self.assertEqual(c.problem, f"row 1: the logit of class 1 is {bad}, must be a finite number "
                                            "(2 such rows)")
                self.assertTrue(np.isnan(c([bad, 0.0])).all())
                self.assertIn("row 0: the logit of class 0", c.problem)
                c([3.0, 0.0])
                self.assertEqual(c.problem, "")
        c._take({"version": 1, "method": "vector", "params": {"w": [1e6, 1e6], "b": [0, 0]}}, 2, {})
        np.testing.assert_allclose(c([[1e305, 1e305], [0, 0]]), 0.5)
        self.assertIn("row 0: revision 2 gives no probabilities", c.problem)
        with self.assertLogs("plumbline", "WARNING") as said:  # one line a minute
            c._quiet = 0
            for i in range(9):
                c([0.0] * i + [np.nan])
        self.assertEqual(len(said.records), 1)

    def test_what_is_no_answer_changes_nothing(self):
        good = {"model": "m", "version": "1", "revision": 1,
                "calibrator": {"version": 1, "method": "temperature", "temperature": 2.0}}
        z, answers = np.array([[1.0, 2.0, 4.0]]), []
        server = Server(lambda _path, _body: answers[0] if len(answers) == 1 else answers.pop(0))
        self.addCleanup(server.close)
        answers[:] = [(200, {}, json.dumps(good).encode())]
        c = Calibrator.follow(server.url, "m", wait=0.05)
        self.addCleanup(c.close)
        c._stop.set()  # the test asks
        c._thread.join()
        for answer in ({}, {"status": "ok"}, {**good, "model": "other"}, {**good, "revision": None},
                       {**good, "revision": "x"}, {**good, "calibrator": [1]}, {**good, "calibrator": None},
                       {**good, "top": [1]}, None, "x", 3):
            answers[:] = [(200, {}, json.dumps(answer).encode())]
            self.assertFalse(c._fetch(c._address, "", 2), answer)
            self.assertTrue(c.problem, answer)
            np.testing.assert_allclose(c(z), _maps.softmax(z / 2))
        for raw in (b"[" * 100_000, b"{", b"\xff"):
            answers[:] = [(200, {}, raw)]
            self.assertFalse(c._fetch(c._address, "", 2), raw[:10])
        answers[:] = [(200, {"X": "y" * 70_000}, b"{}")]  # http.client.LineTooLong
        self.assertFalse(c._fetch(c._address, "", 2))
        self.assertEqual(c.revision, 1)
        answers[:] = [(304, {}, b"")]
        self.assertTrue(c._fetch(c._address, "x", 2))
        self.assertEqual(c.problem, "")
        for bad in (-2.0, 0.0, float("nan")):
            c._take({"version": 1, "method": "temperature", "temperature": bad}, 2, {})
            self.assertIn("temperature", c.problem)
            self.assertEqual(c.revision, 0)

    def test_every_method_says_its_classes(self):
        k, top, hidden = 5, 4, 2
        deep = {"version": 1, "method": "parameterised_temperature",
                "params": {"classes": k, "top": top, "hidden": hidden, "w1": [0.1] * (hidden * (top - 1)),
                           "b1": [0.0] * hidden, "w2": [0.1] * hidden**2, "b2": [0.0] * hidden, "w3": [0.5] * hidden,
                           "b3": 0.0}}
        for calibrator in (deep, {"version": 1, "method": "vector", "params": {"w": [1.0] * k, "b": [0.1] * k}},
                           {"version": 1, "method": "class_weights",
                            "params": {"base": deep, "weights": [1.0] * k}}):
            c = Calibrator()
            c._take(calibrator, 1, {})
            self.assertEqual((c.problem, c.revision), ("", 1))
            z = np.arange(2.0 * k).reshape(2, k)
            np.testing.assert_allclose(c(z), _maps.calibrate(calibrator, z))
            np.testing.assert_allclose(c(z[:, :3]), _maps.softmax(z[:, :3]))
            self.assertIn(f"{k} classes", c.problem)
            c(z)
            self.assertEqual(c.problem, "")  # of the latest logits

    def test_logits_of_no_shape(self):
        for bad in ([], 3.0, None, np.zeros((2, 2, 2)), np.zeros((2, 0)), "text"):
            with self.assertRaises((ValueError, TypeError)):
                Calibrator()(bad)
        self.assertEqual(Calibrator()(np.zeros((0, 3))).shape, (0, 3))

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_a_wrong_address_shows_no_password(self):
        with self.assertRaisesRegex(ValueError, "'h': must begin with") as raised:
            PlumblineLogger("m", to="htps://user:secret@h")
        self.assertNotIn("secret", str(raised.exception))

    def test_a_token_stays_with_its_host(self):
        """A proxy that redirects to a login page of another host does not get the token there."""
        seen = []

        class Login(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                seen.append(dict(self.headers))
                self.send_error(403)

            def log_message(self, *_):
                pass

        login = http.server.HTTPServer(("127.0.0.1", 0), Login)
        threading.Thread(target=login.serve_forever, daemon=True).start()
        self.addCleanup(login.server_close)
        self.addCleanup(login.shutdown)
        to = {"Location": f"http://localhost:{login.server_address[1]}/login"}
        server = Server(lambda _path, _body: (302, to, b""))
        self.addCleanup(server.close)
        c = Calibrator.follow(server.url, "m", headers={"Authorization": "Bearer secret"})
        self.addCleanup(c.close)
        self.assertIn("403", c.problem)
        self.assertTrue(seen)
        self.assertNotIn("Bearer secret", str(seen))

    def test_it_follows_in_a_forked_process(self):
        c, now = followed(self)
        if (child := os.fork()) == 0:
            end = time.monotonic() + 20
            while c.revision != 2 and time.monotonic() < end:
                time.sleep(0.02)
            os._exit(0 if c.revision == 2 else 1)
        now["revision"] = 2
        self.assertEqual(os.waitpid(child, 0)[1], 0)


def followed(test):
    """A calibrator that follows a server, and the revision that the server has: "revision" may be set."""
    now = {"revision": 1}

    def answer(_path, _body):
        time.sleep(0.05)
        return 200, {}, json.dumps({"model": "m", "revision": now["revision"],
                                    "calibrator": {"version": 1, "method": "identity"}}).encode()

    server = Server(answer)
    test.addCleanup(server.close)
    c = Calibrator.follow(server.url, "m", wait=1)
    test.addCleanup(c.close)
    return c, now


class TestCopiesOfACalibrator(unittest.TestCase):
    """What a copy takes over, and when it ends."""

    def test_a_copy_for_a_worker_follows_by_itself(self):
        c, now = followed(self)
        copies = [pickle.loads(pickle.dumps(c)), copy.deepcopy(c)]
        c.close()
        now["revision"] = 2
        for copied in copies:
            self.addCleanup(copied.close)
            end = time.monotonic() + 20
            while copied.revision != 2 and time.monotonic() < end:
                time.sleep(0.02)
            self.assertEqual((copied.revision, copied.problem), (2, ""))
        fixed = pickle.loads(pickle.dumps(Calibrator({"version": 1, "method": "temperature", "temperature": 2}, 5)))
        self.assertEqual(fixed.revision, 5)
        self.assertAlmostEqual(fixed([0.0, 2.0])[1], 1 / (1 + np.exp(-1)))

    def test_a_copy_that_nobody_has_ends(self):
        c, _ = followed(self)
        state = pickle.dumps(c)
        for _ in range(20):
            pickle.loads(state)
        end = time.monotonic() + 8

        def threads():
            gc.collect()
            return sum(t.name == "plumbline-calibrator" for t in threading.enumerate())

        while threads() > 1 and time.monotonic() < end:
            time.sleep(0.1)
        self.assertEqual(threads(), 1)

    def test_a_copy_has_no_clock_of_another_machine(self):
        c, _ = followed(self)
        c._quiet = time.monotonic() + 8_640_000  # of a machine that has been up for longer
        copied = pickle.loads(pickle.dumps(c))
        self.addCleanup(copied.close)
        with self.assertLogs("plumbline", "WARNING"):
            copied([float("nan"), 0.0])


class TestHooks(unittest.TestCase):
    def test_scikit_learn(self):
        try:
            from sklearn.linear_model import LogisticRegression
        except ImportError:
            self.skipTest("no scikit-learn")
        r = Receiver()
        self.addCleanup(r.close)
        x = np.random.default_rng(1).normal(size=(50, 3))
        y = np.where(x[:, 0] > 0, "yes", "no")
        with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
            model = hooks.LoggedClassifier(LogisticRegression().fit(x, y), logger)
            with hooks.rows([f"r{i}" for i in range(50)], region="eu"):
                got = model.predict(x)
            model.predict_proba(x[:2])
            self.assertEqual(len(model.last_ids), 2)
        self.assertEqual(list(got), list(model._estimator.predict(x)))
        self.assertEqual(len(r.rows["predictions"]), 52)
        self.assertEqual(r.rows["predictions"][0]["region"], "eu")

    def test_labels_as_the_estimator_names_them(self):
        """Classes from 1 on would be taken for the next ones, without a word."""
        for names, y, want in ((["no", "yes"], ["yes", "no", None, "maybe"], [("a", 1), ("b", 0)]),
                               ([1, 2, 3], np.array([3, 1, 2, 4]), [("a", 2), ("b", 0), ("c", 1)])):
            r = Receiver()
            self.addCleanup(r.close)
            with PlumblineLogger("m", to=r.url, linger=0.01) as logger:
                model = hooks.LoggedClassifier(types.SimpleNamespace(classes_=np.array(names)), logger)
                model.label(["a", "b", "c", "d"], y)
                model.label("e", names[0])
                hooks.LoggedClassifier(object(), logger).label(["f"], [1])
            self.assertEqual([(q["id"], q["label"]) for q in r.rows["labels"]], [*want, ("e", 0)], logger.stats())
            self.assertEqual(logger.stats().refused, 4 - len(want) + 1, logger.stats())

    def test_a_logged_classifier_is_copied_for_workers(self):
        r = Receiver()
        self.addCleanup(r.close)
        model = hooks.LoggedClassifier(types.SimpleNamespace(classes_=np.array(["no", "yes"])),
                                       PlumblineLogger("m", to=r.url, linger=0.01))
        for copied in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            copied.label("a", "yes")
            copied._logger.close()
        self.assertEqual([(q["id"], q["label"]) for q in r.rows["labels"]], [("a", 1)] * 2)

    def test_request_ids(self):
        import asyncio

        r, sent = Receiver(), []
        self.addCleanup(r.close)
        logger = PlumblineLogger("m", to=r.url, linger=0.01)

        async def app(scope, receive, send):
            logger.log(hooks.current_ids(2), probs=[[0.5, 0.5], [0.5, 0.5]])
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def send(message):
            sent.append(message)

        scope = {"type": "http", "headers": [(b"x-request-id", b"abc")]}
        asyncio.run(hooks.RequestIDs(app)(scope, None, send))
        logger.close()
        self.assertEqual([q["id"] for q in r.rows["predictions"]], ["abc/0", "abc/1"])
        self.assertEqual(sent[0]["headers"], [(b"x-request-id", b"abc")])


if __name__ == "__main__":
    unittest.main()
