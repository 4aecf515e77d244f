"""Calibrator: the one that plumbline has published, applied in the server."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _columns, _maps, _transport

_log = logging.getLogger("plumbline")
# Bytes of an answer: a record of Kafka has at most 8 MiB by default; a full matrix for 1,000 classes 20 MB.
_MAX_RECORD = 64 << 20
_IDENTITY: dict[str, Any] = {"version": 1, "method": "identity"}


class Calibrator:
    """Probabilities of logits by a calibrator, which follow() replaces as a whole when a newer one is published. Logits
    of a model that gives probabilities are np.log(np.maximum(probs, 2.0**-149)), as in plumbline.

    Where it is not sure - none was fetched, another number of classes, a method that it does not know, numbers that
    are none - it gives the plain softmax, and says so in problem. A row with a logit that is NaN or infinite has no
    probabilities: they are NaN, and problem says why.
    """

    def __init__(self, calibrator: dict[str, Any] | None = None, revision: int = 0) -> None:
        self._now: tuple[dict[str, Any], int, dict[str, Any]] = (calibrator or _IDENTITY, revision, {})
        # What is wrong with asking for the calibrator, with what came, and with the latest logits.
        self._problems = {"fetch": "", "calibrator": "" if calibrator else "no calibrator yet", "logits": ""}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def revision(self) -> int:
        """The number of the calibrator in force; 0 is none."""
        return self._now[1]

    @property
    def serving(self) -> tuple[int, dict[str, Any]]:
        """The revision, and what corrects it since its effective_from; {} is nothing. Nobody else keeps corrections."""
        return self._now[1], dict(self._now[2])

    @property
    def problem(self) -> str:
        """Why the plain softmax is given, or an older calibrator than there may be, or why rows of the latest logits
        have no probabilities; "" where none of these is."""
        return next((why for why in self._problems.values() if why), "")

    @classmethod
    def follow(cls, url: str, model: str, version: str = "", *, headers: dict[str, str] | None = None,
               wait: float = 40.0) -> Calibrator:
        """The calibrator of a model that the plumbline process at url has, from now on the newest one."""
        c = cls()
        c._wanted, c._headers, c._wait = {"model": model, "version": version}, headers or {}, wait
        query = {"version": version} if version else {}
        c._address = f"{url.rstrip('/')}/api/v1/models/{urllib.parse.quote(model, safe='')}/calibrator?"
        c._fetch(c._address + urllib.parse.urlencode(query), "", 5)
        c._address += urllib.parse.urlencode({"wait": f"{wait:g}s", **query})
        c._follow_on()
        return c

    def _follow_on(self) -> None:
        self._start()
        if hasattr(os, "register_at_fork"):
            me = weakref.ref(self)

            def forked() -> None:
                child = me()
                if child is not None and not child._stop.is_set():
                    child._stop = threading.Event()
                    child._start()

            os.register_at_fork(after_in_child=forked)  # threads stay with the parent

    def __getstate__(self) -> dict[str, Any]:
        if self._headers or _transport.secret(self._address, {}):
            _transport.keep_secret("Calibrator.follow with headers or a password: call it in the worker")
        return self._state()

    def __copy__(self) -> Calibrator:
        c = type(self)()
        c.__setstate__(self._state())
        return c

    def __deepcopy__(self, _memo: Any) -> Calibrator:
        return self.__copy__()  # what is in force is replaced, and not changed

    def _state(self) -> dict[str, Any]:
        state = {k: v for k, v in vars(self).items() if k not in ("_stop", "_thread", "_etag", "_quiet")}
        return {**state, "_address": "" if self._stop.is_set() else self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy, as servers make them for their workers, follows by a thread of its own."""
        vars(self).update(state, _stop=threading.Event(), _thread=None, _problems=dict(state["_problems"]))
        if self._address:
            self._follow_on()

    _etag = _address = ""
    _quiet = 0.0  # until when no problem of logits is logged, of time.monotonic()
    _wait = 40.0
    _headers: dict[str, str] = {}
    _wanted: dict[str, str] = {}

    def _start(self) -> None:
        me, stop = weakref.ref(self), self._stop  # the thread ends with one that nobody has any more

        def run() -> None:
            pause = 0.5
            while not stop.is_set() and (c := me()) is not None:
                began, etag = time.monotonic(), c._etag
                ok = c._fetch(c._address, etag, c._wait + 10)
                same = c._etag == etag
                del c
                if not ok:
                    stop.wait(pause)
                    pause = min(2 * pause, 30.0)
                    continue
                pause = 0.5
                if same and time.monotonic() - began < 0.2:  # nothing new, at once: too many wait there
                    stop.wait(5)

        self._thread = threading.Thread(target=run, name="plumbline-calibrator", daemon=True)
        self._thread.start()

    def _fetch(self, address: str, etag: str, timeout: float) -> bool:
        """Asks once; False where nothing was learnt. What is in force stays, whatever the answer is made of."""
        try:
            request = urllib.request.Request(address, headers={"If-None-Match": etag} if etag else {})
            for name, value in self._headers.items():  # a token, say: a redirection must not take it to another host
                request.add_unredirected_header(name, value)
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                body, tag = answer.read(_MAX_RECORD + 1), answer.headers.get("ETag") or ""
            if len(body) > _MAX_RECORD:
                raise ValueError(f"more than {_MAX_RECORD} bytes, which no calibrator has")
            self._take(*self._read(json.loads(body)))
        except urllib.error.HTTPError as e:
            if e.code == 304:
                self._tell("fetch", "")
                return True
            self._tell("fetch", f"{e.code} from {address}")
            return False
        except Exception as e:  # proxies answer, too
            self._tell("fetch", f"{address}: {type(e).__name__}: {e}"[:500])
            return False
        self._tell("fetch", "")
        self._etag = tag
        return True

    def _read(self, record: Any) -> tuple[dict[str, Any], int, dict[str, Any]]:
        """The parts of an answer. Raises ValueError where it is not that of a plumbline process about the model."""
        if not isinstance(record, dict):
            raise ValueError("the answer is no object")
        for name, want in self._wanted.items():
            if want and record.get(name) != want:
                raise ValueError(f"the answer has {name} {record.get(name)!r}, not {want!r}")
        c, revision, top = record.get("calibrator"), record.get("revision"), record.get("top")
        if not isinstance(c, dict) or type(revision) is not int or not isinstance(top, (dict, type(None))):
            raise ValueError("the answer has no calibrator and revision")
        return c, revision, top or {}

    def _take(self, c: dict[str, Any], revision: int, top: dict[str, Any]) -> None:
        try:
            if c.get("version") != 1:
                raise ValueError(f"version {c.get('version')} of calibrators is not known")
            if not c.get("temperature", 1) > 0:
                raise ValueError(f"temperature {c['temperature']} is not above 0")
            k = classes(c) or 3
            probe = _maps.calibrate(c, np.linspace(-2, 2, 2 * k).reshape(2, k))
            probe = _maps.correct(top, probe) if top else probe
            if not sane(probe):
                raise ValueError("its probabilities of a probe are none")
        except Exception as e:  # a newer plumbline may publish what this client does not know
            self._now = (_IDENTITY, 0, {})
            self._tell("calibrator", f"revision {revision}, method {c.get('method')!r}: {type(e).__name__}: {e}")
            return
        self._now = (c, revision, top)
        self._problems["logits"] = ""
        self._tell("calibrator", "")

    def _tell(self, of: str, why: str) -> None:
        changed, self._problems[of] = why != self._problems[of], why
        if not why or not changed:
            return
        if of == "logits":  # every call may have another problem: once a minute
            if time.monotonic() < self._quiet:
                return
            self._quiet = time.monotonic() + 60
        _log.warning("plumbline calibrator: %s", why)

    def __call__(self, logits: Any) -> npt.NDArray[np.float64]:
        """Probabilities of logits, of shape (rows, K) or (K,); NaN for rows with a logit that is NaN or infinite, of
        which problem tells. Raises ValueError for what has another shape."""
        z = _columns.table(logits, np.float64)
        if z.ndim not in (1, 2) or z.shape[-1] == 0:
            raise ValueError(f"logits of shape {z.shape}: must be (rows, K) or (K,)")
        one = z.ndim == 1
        z = z.reshape(1, -1) if one else z
        none = ~np.isfinite(z).all(axis=1)
        why = ""
        if none.any():
            row = int(none.argmax())
            k = int((~np.isfinite(z[row])).argmax())
            why = f"row {row}: the logit of class {k} is {z[row, k]}, must be a finite number ({none.sum()} such rows)"
            z = np.where(none[:, None], 0, z)
        c, revision, top = self._now
        try:
            want = classes(c)
            if want not in (0, z.shape[1]):
                why = why or f"it is for {want} classes, the logits have {z.shape[1]}"
                p = _maps.softmax(z)
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    p = _maps.calibrate(c, z)
                    p = _maps.correct(top, p) if top else p
            bad = ~np.isfinite(p).all(axis=1)
            if bad.any():
                why = why or f"row {bad.argmax()}: revision {revision} gives no probabilities for logits of this size"
                p = np.where(bad[:, None], _maps.softmax(z), p)
        except Exception as e:
            why, p = f"{type(e).__name__}: {e}", _maps.softmax(z)
        self._tell("logits", why)
        p[none] = np.nan
        return p[0] if one else p

    def close(self) -> None:
        self._stop.set()


def sane(p: npt.NDArray[np.float64]) -> bool:
    return bool(np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, atol=1e-6))


def classes(c: dict[str, Any]) -> int:
    """How many classes a calibrator is for; 0 for any."""
    p = c.get("params") or {}
    if c.get("method") == "parameterised_temperature":
        return int(p["classes"])
    for name in ("temperatures", "b", "weights"):
        if c.get("method") in ("class_temperature", "vector", "matrix", "dirichlet", "class_weights"):
            if isinstance(p.get(name), list):
                return len(p[name])
    return classes(p["base"]) if isinstance(p.get("base"), dict) else 0
