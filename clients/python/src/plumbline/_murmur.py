"""The partition of ids: Kafka's default partitioner, over all ids of a batch at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_M = np.uint32(0x5BD1E995)
_SEED = 0x9747B28C


def partitions(ids: list[bytes], n: int) -> npt.NDArray[np.int64]:
    """(murmur2(id) & 0x7fffffff) % n for every id."""
    lengths = np.fromiter((len(i) for i in ids), np.int64, len(ids))
    out = np.empty(len(ids), np.int64)
    for size in np.unique(lengths):
        at = np.flatnonzero(lengths == size)
        data = b"".join(ids[i] for i in at)
        rows = np.frombuffer(data, np.uint8).reshape(len(at), int(size))
        out[at] = (_murmur2(rows) & np.uint32(0x7FFFFFFF)).astype(np.int64) % n
    return out


def _murmur2(rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """MurmurHash2 of rows of equal length, 32 bits, little endian."""
    count, size = rows.shape
    h = np.full(count, (_SEED ^ size) & 0xFFFFFFFF, np.uint32)
    whole = size // 4
    if whole:
        words = np.ascontiguousarray(rows[:, : whole * 4]).view("<u4")
        for j in range(whole):
            k = words[:, j] * _M
            k ^= k >> np.uint32(24)
            h = h * _M ^ k * _M
    rest = size - whole * 4
    if rest:
        for j in range(rest - 1, -1, -1):
            h ^= rows[:, whole * 4 + j].astype(np.uint32) << np.uint32(8 * j)
        h = h * _M
    h ^= h >> np.uint32(13)
    h = h * _M
    return h ^ h >> np.uint32(15)
