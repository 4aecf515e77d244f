"""Calibrator: the one that plumbline has published, applied in the server."""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _columns, _maps

_log = logging.getLogger("plumbline")
# Bytes of an answer: a record of Kafka has at most 8 MiB by default; a full matrix for 1,000 classes 20 MB.
_MAX_RECORD = 64 << 20
_IDENTITY: dict[str, Any] = {"version": 1, "method": "identity"}


class Calibrator:
    """Probabilities of logits by a calibrator, which follow() replaces as a whole when a newer one is published.

    Where it is not sure - none was fetched, another number of classes, a method that it does not know, numbers that
    are none - it gives the plain softmax, and says so in problem.
    """

    def __init__(self, calibrator: dict[str, Any] | None = None, revision: int = 0) -> None:
        self._now: tuple[dict[str, Any], int, dict[str, float]] = (calibrator or _IDENTITY, revision, {})
        self.problem = "" if calibrator else "no calibrator yet"
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def revision(self) -> int:
        """The number of the calibrator in force; 0 is none."""
        return self._now[1]

    @classmethod
    def follow(cls, url: str, model: str, version: str = "", *, headers: dict[str, str] | None = None,
               wait: float = 40.0) -> Calibrator:
        """The calibrator of a model that the plumbline process at url has, from now on the newest one."""
        c = cls()
        query = {"wait": f"{wait:g}s"}
        if version:
            query["version"] = version
        address = f"{url.rstrip('/')}/api/v1/models/{urllib.parse.quote(model, safe='')}/calibrator"
        c._fetch(address + ("?" + urllib.parse.urlencode({"version": version}) if version else ""), headers or {}, "", 5)
        c._thread = threading.Thread(target=c._run, args=(address + "?" + urllib.parse.urlencode(query), headers or {},
                                                          wait + 10), name="plumbline-calibrator", daemon=True)
        c._thread.start()
        return c

    _etag = ""

    def _run(self, address: str, headers: dict[str, str], timeout: float) -> None:
        pause = 0.5
        while not self._stop.is_set():
            began = time.monotonic()
            if self._fetch(address, headers, self._etag, timeout):
                pause = 0.5
                if time.monotonic() - began < 0.2:  # it answers at once: too many wait there
                    self._stop.wait(5)
            else:
                self._stop.wait(pause)
                pause = min(2 * pause, 30.0)

    def _fetch(self, address: str, headers: dict[str, str], etag: str, timeout: float) -> bool:
        request = urllib.request.Request(address, headers={**headers, **({"If-None-Match": etag} if etag else {})})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                body, tag = answer.read(_MAX_RECORD + 1), answer.headers.get("ETag") or ""
            if len(body) > _MAX_RECORD:
                raise ValueError(f"more than {_MAX_RECORD} bytes, which no calibrator has")
            record = json.loads(body)
            if not isinstance(record, dict):
                raise ValueError("the answer is no object")
        except urllib.error.HTTPError as e:
            if e.code == 304:
                return True
            self._trouble(f"{e.code} from {address}")
            return False
        except (OSError, ValueError) as e:
            self._trouble(f"{address}: {e}")
            return False
        self._take(record)
        self._etag = tag
        return True

    def _take(self, record: dict[str, Any]) -> None:
        c, revision, top = record.get("calibrator") or _IDENTITY, int(record.get("revision", 0)), record.get("top") or {}
        try:
            if c.get("version") != 1:
                raise ValueError(f"version {c.get('version')} of calibrators is not known")
            k = classes(c) or 3
            probe = _maps.calibrate(c, np.linspace(-2, 2, 2 * k).reshape(2, k))
            probe = _maps.correct(top, probe) if top else probe
            if not sane(probe):
                raise ValueError("its probabilities of a probe are none")
        except Exception as e:  # a newer plumbline may publish what this client does not know
            self._now = (_IDENTITY, 0, {})
            self._trouble(f"revision {revision}, method {c.get('method')!r}: {type(e).__name__}: {e}")
            return
        self._now = (c, revision, top)
        self.problem = ""

    def _trouble(self, why: str) -> None:
        if why != self.problem:
            _log.warning("plumbline calibrator: %s", why)
        self.problem = why

    def __call__(self, logits: Any) -> npt.NDArray[np.float64]:
        """Probabilities of logits, of shape (rows, K) or (K,)."""
        z = np.asarray(_columns.host(logits), np.float64)
        one = z.ndim == 1
        z = z.reshape(1, -1) if one else z
        c, _, top = self._now
        try:
            want = classes(c)
            p = _maps.calibrate(c, z) if want in (0, z.shape[1]) else _maps.softmax(z)
            if want not in (0, z.shape[1]):
                self._trouble(f"it is for {want} classes, the logits have {z.shape[1]}")
            if top and want in (0, z.shape[1]):
                p = _maps.correct(top, p)
            bad = ~np.isfinite(p).all(axis=1)
            if bad.any():
                p = np.where(bad[:, None], _maps.softmax(z), p)
        except Exception as e:
            self._trouble(f"{type(e).__name__}: {e}")
            p = _maps.softmax(z)
        return p[0] if one else p

    def close(self) -> None:
        self._stop.set()


def sane(p: npt.NDArray[np.float64]) -> bool:
    return bool(np.isfinite(p).all() and (p >= 0).all() and np.allclose(p.sum(axis=1), 1, atol=1e-6))


def classes(c: dict[str, Any]) -> int:
    """How many classes a calibrator is for; 0 for any."""
    p = c.get("params") or {}
    for name in ("temperatures", "b", "weights"):
        if c.get("method") in ("class_temperature", "vector", "matrix", "dirichlet", "class_weights"):
            if isinstance(p.get(name), list):
                return len(p[name])
    return classes(p["base"]) if isinstance(p.get("base"), dict) else 0
