"""Columns of calls become messages. Everything here runs in the background thread."""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Iterator, KeysView, Set, ValuesView
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

SCORES = ("logits", "probs", "logit", "prob")
LISTS = ("logits", "probs", "features")
MAX_TEXT = 256  # bytes; for one that is longer a process refuses the message, with the rows of other calls


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
    if isinstance(values, (list, tuple)) and values and hasattr(values[0], "detach"):
        return [host(v) for v in values]
    return values


def table(values: Any, kind: Any) -> np.ndarray[Any, Any]:
    """Numbers of rows; a column of lists is an array of objects."""
    x = host(values)
    return np.asarray(x.tolist() if getattr(x, "dtype", None) == object else x, kind)


def plain(v: Any) -> Any:
    """An id; the number in an array of no dimension, which an element of a tensor is, whose text is tensor(7)."""
    return v.item() if getattr(v, "ndim", 1) == 0 and not isinstance(v, np.generic) and hasattr(v, "item") else v


def groups(calls: list[Call]) -> Iterator[tuple[str, list[Call], pa.RecordBatch | Exception]]:
    """The calls as batches, each of calls with the same columns; calls that do not fit each other come alone."""
    same: dict[tuple[Any, ...], list[Call]] = {}
    for call in calls:
        try:
            same.setdefault((call.kind, whole(call.ids), *call.columns), []).append(call)
        except Exception as e:  # ids that cannot be read
            yield call.kind, [call], e
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


def single(ids: Any) -> bool:
    """Whether it is the id of one row."""
    return isinstance(ids, (str, bytes, int, np.generic, uuid.UUID)) or getattr(ids, "ndim", 1) == 0


def whole(ids: Any) -> bool:
    """Whether ids are numbers: 7 and "7" are two ids."""
    if type(ids) in (list, tuple):
        return bool(ids) and isinstance(plain(ids[0]), (int, np.integer))
    return getattr(getattr(host(ids), "dtype", None), "kind", "") in ("i", "u")


def batch_of(calls: list[Call]) -> pa.RecordBatch:
    """The rows of calls, but for labels that are not known. Raises ValueError where they do not fit each other."""
    rows = np.fromiter((c.rows for c in calls), np.int64, len(calls))
    n = int(rows.sum())
    fields: dict[str, pa.Array] = {"id": ids_of(calls)}
    yielded()
    if "ts" not in calls[0].columns:
        now = np.fromiter((c.now for c in calls), np.int64, len(calls))
        fields["ts"] = pa.array(np.repeat(now, rows), pa.timestamp("ns", "UTC"))
    for name in calls[0].columns:
        values = [c.columns[name] for c in calls]
        if name in ("id", "model", "version"):
            raise ValueError(f"{name}: a slice cannot have this name")
        fields[name] = times_of(values, calls) if name == "ts" else column(name, values, calls)
        yielded()
    for name, made in fields.items():
        if len(made) != n:
            raise ValueError(f"{name}: {len(made)} values for {n} ids")
    batch = pa.record_batch(fields)
    if calls[0].kind == "labels" and fields["label"].null_count:
        batch = batch.filter(pc.is_valid(fields["label"]))
    return batch


def yielded() -> None:
    """Lets the serving thread have the interpreter."""
    time.sleep(0)


def ids_of(calls: list[Call]) -> pa.Array:
    """The ids of calls: all numbers, all text or all bytes; one that is missing is null, which no process takes."""
    ids: list[Any] = []
    for call in calls:
        values = host(call.ids)
        if isinstance(values, np.ndarray):
            if values.ndim != 1:
                raise ValueError(f"id: shape {values.shape}, must be (rows,)")
            values = values.tolist()
        ids.extend(values)
    if set(map(type, ids)) == {str}:
        return pa.array(ids, pa.string())
    ids = [None if missing(v) else v for v in map(plain, ids)]
    kinds = {int if isinstance(v, (int, np.integer)) else bytes if isinstance(v, bytes) else str
             for v in ids if v is not None}
    if len(kinds) > 1:
        raise ValueError("id: numbers, text and bytes in one call: 7 and \"7\" are two ids")
    if kinds == {int}:
        most = max(int(v) for v in ids if v is not None)
        if most >= 1 << 64:
            raise ValueError(f"id: {most} has more than 64 bits: send it as text, with its labels")
        return pa.array([None if v is None else int(v) for v in ids], pa.uint64() if most >= 1 << 63 else pa.int64())
    if kinds == {bytes}:
        return pa.array(ids, pa.binary())
    return pa.array([v if v is None or type(v) is str else str(v) for v in ids], pa.string())


def missing(v: Any) -> bool:
    """None, NaN, and what pandas calls missing."""
    return v is None or type(v).__name__ in ("NAType", "NaTType") or isinstance(v, float) and v != v


def times_of(values: list[Any], calls: list[Call]) -> pa.Array:
    parts = [np.broadcast_to(nanoseconds(v), (c.rows,)) if np.ndim(host(v)) == 0 else
             parted("ts", nanoseconds(v), c.rows) for v, c in zip(values, calls)]
    return pa.array(np.concatenate(parts), pa.timestamp("ns", "UTC"))


def nanoseconds(values: Any) -> np.ndarray[Any, Any]:
    """Times since 1970. The size of a number tells whether it counts s, ms, µs or ns, as in a process."""
    x = np.asarray(host(values))
    if x.dtype.kind == "M":
        return x.astype("datetime64[ns]").view(np.int64)
    if x.dtype.kind in "iuf":
        most = float(np.abs(x).max(initial=0))
        unit = next((u for below, u in ((1e11, 10**9), (1e14, 10**6), (1e17, 10**3)) if most < below), 1)
        if not most * unit < 9.2e18:
            raise ValueError(f"ts: {most:g} is no time")
        if x.dtype.kind == "f":
            return (np.trunc(x).astype(np.int64) * unit) + np.round((x - np.trunc(x)) * unit).astype(np.int64)
        return x.astype(np.int64) * unit
    return np.vectorize(moment, otypes=[np.int64])(x) if x.size else x.astype(np.int64)


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def moment(value: Any) -> int:
    """A datetime, or text as RFC 3339, in ns since 1970; without a zone in UTC."""
    if isinstance(value, np.datetime64):
        return int(value.astype("datetime64[ns]").view(np.int64))
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip().replace("Z", "+00:00").replace("z", "+00:00"))
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    return round((value - _EPOCH) / datetime.timedelta(microseconds=1)) * 1000


def parted(name: str, part: Any, rows: int) -> Any:
    """A part of a column, which has a value for each row of its call: what is one call's is no other's."""
    if len(part) != rows:
        raise ValueError(f"{name}: {len(part)} values for {rows} ids")
    return part


def by_row(name: str, values: Any, rows: int) -> Any:
    """An array with one entry for each row, of all shapes that a column may have, or with one entry for all rows. What
    column refuses is refused here: it could fit what is left of the rows."""
    if values.ndim == 0 or len(values) == rows:
        return values
    if name in SCORES or name in LISTS:
        return parted(name, values if values.ndim == 2 else values.reshape(rows, -1), rows)
    if name in ("label", "served", "weight"):
        values = values.reshape(-1)
    return values if name in ("served", "weight") and len(values) == 1 else parted(name, values, rows)


def column(name: str, values: list[Any], calls: list[Call]) -> pa.Array:
    if name in SCORES or name in LISTS:
        return floats(name, values, calls)
    if name == "label":
        return classes(values, calls)
    if name in ("served", "weight"):
        flat = [np.broadcast_to(np.asarray(host(v), np.float32).reshape(-1) if np.ndim(host(v)) else
                                np.float32(v), (c.rows,)) for v, c in zip(values, calls)]
        return pa.array(np.concatenate(flat))
    text: list[str | None] = []
    for v, call in zip(map(host, values), calls):
        if isinstance(v, str) or v is None or not hasattr(v, "__len__") or getattr(v, "ndim", 1) == 0:
            text.extend([None if v is None else str(v)] * call.rows)
        else:
            text.extend(None if x is None else str(x) for x in parted(name, v, call.rows))
    made = pa.array(text, pa.string())
    if (longest := pc.max(pc.binary_length(made)).as_py()) is not None and longest > MAX_TEXT:
        raise ValueError(f"{name}: a text of {longest} bytes, at most {MAX_TEXT}")
    return made


def number(v: Any) -> bool:
    try:
        float(v)
    except (TypeError, ValueError):
        return False
    return True


def classes(values: list[Any], calls: list[Call]) -> pa.Array:
    """Labels; null where none is known yet: None, NaN and what pandas calls missing."""
    y = np.concatenate([parted("label", np.asarray(host(v)).reshape(-1), c.rows) for v, c in zip(values, calls)])
    none = np.array([missing(v) for v in y], bool) if y.dtype.kind == "O" else y != y
    if none.any():
        y[none] = 0
    try:
        x = y.astype(np.float64)
    except (TypeError, ValueError):
        name = next((v for v in y.tolist() if not number(v)), None)
        raise ValueError(f"label: {name!r}, must be the number of a class, by the order of the scores") from None
    if (bad := y[(x != np.trunc(x)) | (np.abs(x) >= 2**31)]).size:
        raise ValueError(f"label: {bad[0]} is no class")
    return pa.array(x.astype(np.int32), mask=none)


def floats(name: str, values: list[Any], calls: list[Call]) -> pa.Array:
    parts = []
    for v, call in zip(values, calls):
        try:
            x = table(v, np.float32)
        except (TypeError, ValueError) as e:
            raise ValueError(f"{name}: must be numbers, as many in each row: {e}") from None
        if x.ndim != 2:
            x = x.reshape(call.rows, -1)
        parts.append(parted(name, x, call.rows))
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
        kind = ">u8" if ids.type == pa.uint64() else ">i8"
        raw = ids.fill_null(0).to_numpy(zero_copy_only=False).astype(kind).tobytes()
        return [raw[i : i + 8] for i in range(0, len(raw), 8)]
    if pa.types.is_binary(ids.type):
        return [v or b"" for v in ids.to_pylist()]
    return [(v or "").encode() for v in ids.to_pylist()]


def copied(values: Any) -> Any:
    """What the caller may change after the call, copied; the rest as it is."""
    kind = type(values)
    if kind is str:
        return values
    if kind is np.ndarray:
        return values.copy()
    if kind is list or kind is tuple:
        nested = values and (isinstance(values[0], (list, tuple, np.ndarray)) or hasattr(values[0], "detach"))
        return [copied(v) for v in values] if nested else values[:]
    if hasattr(values, "detach"):
        return values.detach().clone()  # a device copies in its own time
    if hasattr(values, "to_numpy"):  # pandas may give a view of what the caller changes
        return np.array(values.to_numpy())
    if isinstance(values, (Set, KeysView, ValuesView)):
        return list(values)
    return values


def size_of(values: Any, rows: int) -> int:
    """About how much memory a column takes; items of a list are taken to be like the first."""
    kind = type(values)
    if kind is list or kind is tuple:
        return 56 + len(values) * (8 + _item_size(values[0])) if values else 56
    return 128 + int(getattr(values, "nbytes", 64 * max(rows, 1)))


def _item_size(value: Any) -> int:
    if isinstance(value, (str, bytes)):
        return 52 + len(value)
    if isinstance(value, (list, tuple)):
        return 56 + 32 * len(value)
    return 28 + int(getattr(value, "nbytes", 0))
