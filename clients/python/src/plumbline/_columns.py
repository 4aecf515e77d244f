"""Columns of calls become messages. Everything here runs in the background thread."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

SCORES = ("logits", "probs", "logit", "prob")
LISTS = ("logits", "probs", "features")


@dataclass(slots=True)
class Call:
    """What one call of log or label was given, as it was given, but that arrays are copies."""

    kind: str  # predictions or labels
    ids: Any
    columns: dict[str, Any]
    now: int  # nanoseconds since 1970
    rows: int
    bytes: int


def host(values: Any) -> Any:
    """A NumPy array, or a list of text, of what libraries call an array: torch, pandas, polars, lists."""
    if hasattr(values, "detach"):  # torch; a copy from a device waits for it, here and not in the serving thread
        values = values.detach().cpu()
        if str(getattr(values, "dtype", "")) == "torch.bfloat16":
            values = values.float()
        return values.numpy()
    if hasattr(values, "to_numpy"):  # pandas, polars
        return values.to_numpy()
    return values


def groups(calls: list[Call]) -> Iterator[tuple[str, list[Call], pa.RecordBatch | Exception]]:
    """The calls as batches, each of calls with the same columns; calls that do not fit each other come alone."""
    same: dict[tuple[Any, ...], list[Call]] = {}
    for call in calls:
        same.setdefault((call.kind, whole(call.ids), *call.columns), []).append(call)
    for some in same.values():
        try:
            yield some[0].kind, some, batch_of(some)
            continue
        except Exception as e:
            if len(some) == 1:
                yield some[0].kind, some, e
                continue
        for call in some:
            try:
                yield call.kind, [call], batch_of([call])
            except Exception as e:
                yield call.kind, [call], e


def whole(ids: Any) -> bool:
    """Whether ids are numbers: 7 and "7" are two ids."""
    if type(ids) in (list, tuple):
        return bool(ids) and isinstance(ids[0], (int, np.integer))
    return getattr(getattr(host(ids), "dtype", None), "kind", "") in ("i", "u")


def batch_of(calls: list[Call]) -> pa.RecordBatch:
    """The rows of calls. Raises ValueError where they do not fit each other."""
    rows = np.fromiter((c.rows for c in calls), np.int64, len(calls))
    n = int(rows.sum())
    fields: dict[str, pa.Array] = {"id": ids_of(calls)}
    yielded()
    if "ts" not in calls[0].columns:
        now = np.fromiter((c.now for c in calls), np.int64, len(calls))
        fields["ts"] = pa.array(np.repeat(now, rows), pa.timestamp("ns", "UTC"))
    for name in calls[0].columns:
        values = [c.columns[name] for c in calls]
        fields[name] = times_of(values) if name == "ts" else column(name, values, calls, n)
        yielded()
    for name, made in fields.items():
        if len(made) != n:
            raise ValueError(f"{name}: {len(made)} values for {n} ids")
    return pa.record_batch(fields)


def yielded() -> None:
    """Lets the serving thread have the interpreter."""
    time.sleep(0)


def ids_of(calls: list[Call]) -> pa.Array:
    ids: list[Any] = []
    for call in calls:
        values = host(call.ids)
        ids.extend(values.tolist() if isinstance(values, np.ndarray) else values)
    if whole(calls[0].ids):
        return pa.array([int(v) for v in ids], pa.int64())
    return pa.array([v if type(v) is str else str(v) for v in ids], pa.string())


def times_of(calls: list[Any]) -> pa.Array:
    values = np.concatenate([np.atleast_1d(np.asarray(host(v))) for v in calls])
    if values.dtype.kind == "M":
        values = values.astype("datetime64[ns]").view(np.int64)
    elif values.dtype.kind == "f":  # seconds, as time.time() gives
        values = (values * 1e9).astype(np.int64)
    elif values.dtype.kind == "O":
        values = values.astype("datetime64[ns]").view(np.int64)
    return pa.array(values.astype(np.int64), pa.timestamp("ns", "UTC"))


def column(name: str, values: list[Any], calls: list[Call], n: int) -> pa.Array:
    if name in SCORES or name in LISTS:
        return floats(name, values, calls)
    if name == "label":
        y = np.concatenate([np.asarray(host(v)).reshape(-1) for v in values])
        if y.dtype.kind == "f" and (y != np.trunc(y)).any():
            raise ValueError("label: not a whole number")
        return pa.array(y.astype(np.int32))
    if name in ("served", "weight"):
        flat = [np.broadcast_to(np.asarray(host(v), np.float32).reshape(-1) if np.ndim(host(v)) else
                                np.float32(v), (c.rows,)) for v, c in zip(values, calls)]
        return pa.array(np.concatenate(flat))
    text: list[str | None] = []
    for v, call in zip(values, calls):
        if isinstance(v, str) or v is None or not hasattr(v, "__len__"):
            text.extend([None if v is None else str(v)] * call.rows)
        else:
            text.extend(None if x is None else str(x) for x in host(v))
    return pa.array(text, pa.string())


def floats(name: str, values: list[Any], calls: list[Call]) -> pa.Array:
    parts = []
    for v, call in zip(values, calls):
        x = v if type(v) is np.ndarray and v.dtype == np.float32 else np.asarray(host(v), np.float32)
        if x.ndim != 2:
            x = x.reshape(call.rows, -1)
        parts.append(x)
    x = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if name in ("logit", "prob"):
        if x.shape[1] != 1:
            raise ValueError(f"{name}: {x.shape[1]} numbers a row; call it {name}s=")
        return pa.array(np.ascontiguousarray(x).reshape(-1))
    if x.shape[1] == 1 and name != "features":
        raise ValueError(f"{name}: one number a row; call it {name[:-1]}=")
    return pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(x).reshape(-1)), x.shape[1])


def encode(batch: pa.RecordBatch, model: str, version: str) -> bytes:
    """A batch as a message."""
    metadata = {"plumbline.model": model}
    if version:
        metadata["plumbline.version"] = version
    batch = batch.replace_schema_metadata(metadata)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def id_bytes(batch: pa.RecordBatch) -> list[bytes]:
    """What partitioners hash."""
    ids = batch.column("id")
    if pa.types.is_integer(ids.type):
        raw = ids.to_numpy(zero_copy_only=False).astype(">i8").tobytes()
        return [raw[i : i + 8] for i in range(0, len(raw), 8)]
    return [v.encode() for v in ids.to_pylist()]


def copied(values: Any) -> Any:
    """What the caller may change after the call, copied; the rest as it is."""
    kind = type(values)
    if kind is str:
        return values
    if kind is np.ndarray:
        return values.copy()
    if kind is list:
        return values[:]
    if hasattr(values, "detach"):
        return values.detach().clone()  # a device copies in its own time
    if hasattr(values, "to_numpy"):  # pandas may give a view of what the caller changes
        return np.array(values.to_numpy())
    return values


def size_of(values: Any, rows: int) -> int:
    """About how much memory a column takes."""
    kind = type(values)
    if kind is np.ndarray:
        return int(values.nbytes)
    if kind is str:
        return 64
    if kind is list or kind is tuple:
        first = values[0] if values else ""
        return rows * (64 + (8 * len(first) if isinstance(first, (list, tuple)) else 0))
    return int(getattr(values, "nbytes", 64 * max(rows, 1)))
