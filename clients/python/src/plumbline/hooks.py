"""Hooks: scikit-learn, PyTorch, FastAPI. None of them is imported before it is used."""

from __future__ import annotations

import contextvars
import functools
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from . import _columns
from ._logger import PlumblineLogger, new_ids

_ids: contextvars.ContextVar[Any] = contextvars.ContextVar("plumbline_ids", default=None)
_slices: contextvars.ContextVar[dict[str, Any]] = contextvars.ContextVar("plumbline_slices", default={})


@contextmanager
def rows(ids: Any, **slices: Any) -> Iterator[Any]:
    """The ids, and slices, of what is predicted within."""
    a, b = _ids.set(ids), _slices.set(slices)
    try:
        yield ids
    finally:
        _ids.reset(a)
        _slices.reset(b)


def current_ids(n: int) -> Any:
    """The ids of rows(), or of the request in FastAPI; ID/0, ID/1, … where one stands for several rows."""
    ids = _ids.get()
    if ids is None:
        return new_ids(n)
    if isinstance(ids, str):
        return [ids] if n == 1 else [f"{ids}/{i}" for i in range(n)]
    return ids


class LoggedClassifier:
    """A scikit-learn classifier whose predict_proba logs; the ids of the last call are in last_ids of the thread."""

    def __init__(self, estimator: Any, logger: PlumblineLogger, *, features: bool = False) -> None:
        self._estimator, self._logger, self._features = estimator, logger, features
        self._last: contextvars.ContextVar[Any] = contextvars.ContextVar("plumbline_last_ids", default=None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle ask before there is an estimator
            raise AttributeError(name)
        return getattr(self._estimator, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, as servers make them for their workers, has calls of its own."""
        return functools.partial(type(self), features=self._features), (self._estimator, self._logger)

    @property
    def last_ids(self) -> Any:
        return self._last.get()

    def predict_proba(self, X: Any) -> Any:
        p = self._estimator.predict_proba(X)
        ids = current_ids(len(p))
        self._last.set(ids)
        self._logger.log(ids, probs=p, features=X if self._features else None, **_slices.get())
        return p

    def label(self, ids: Any, y: Any, *, ts: Any = None) -> None:
        """Logs what was true, as the estimator names its classes; what is none of them counts as not known."""
        try:
            number = {name: k for k, name in enumerate(np.asarray(self._estimator.classes_).tolist())}
            y = [number.get(name) for name in np.atleast_1d(np.asarray(_columns.host(y))).tolist()]
        except Exception as e:  # what serves must not end because of what is logged
            y = [f"{type(e).__name__}: {e}"]
        self._logger.label(ids, y, ts=ts)

    def predict(self, X: Any) -> Any:
        return self._estimator.classes_[self.predict_proba(X).argmax(axis=1)]


def log_module(module: Any, logger: PlumblineLogger) -> Any:
    """Logs what a torch.nn.Module gives in eval mode as logits; remove() of what is returned ends it."""

    def hook(module: Any, _inputs: Any, output: Any) -> None:
        if not module.training:
            logits = getattr(output, "logits", output)
            logger.log(current_ids(len(logits)), logits=logits, **_slices.get())

    return module.register_forward_hook(hook)


class RequestIDs:
    """ASGI middleware: app.add_middleware(RequestIDs). The id of a request is its header X-Request-ID, or a new one;
    the answer has it too, so that who learns the truth can send it as the label's id."""

    def __init__(self, app: Callable[..., Awaitable[None]], header: str = "x-request-id") -> None:
        self._app, self._header = app, header.lower().encode()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = dict(scope["headers"]).get(self._header, b"").decode("latin-1")
        name = given or uuid.uuid4().hex

        async def answer(message: Any) -> None:
            if message["type"] == "http.response.start":
                message.setdefault("headers", []).append((self._header, name.encode("latin-1")))
            await send(message)

        with rows(name):
            await self._app(scope, receive, answer)
