"""ECE, class-wise ECE, NLL and Brier of joined rows, by key; and the join, by a dict."""
import itertools

import numpy as np

BINS = 15


class Sums:
    def __init__(self):
        self.names, self.k, self.rows = {}, 0, 0
        self.held, self.size = [], 0

    def add(self, z, y, key):
        """Rows are scored some thousands at a time: numpy's calls cost as much as a few hundred rows."""
        self.held.append((z, y, key))
        self.size += len(y)
        if self.size >= 4096 or self.size * z.shape[1] >= 1 << 21:
            self.flush()

    def flush(self):
        if self.held:
            z, y, key = (np.concatenate(x) if len(x) > 1 else x[0] for x in zip(*self.held))
            self.held, self.size = [], 0
            self.score(z, y, key)

    def grow(self, keys, k):
        room = max(1, 2 * len(self.tops) // BINS if self.rows else 0, keys)
        tops, classes = np.zeros((room * BINS, 3)), np.zeros((room * k * BINS, 3))
        totals = np.zeros((room, 4))
        if self.rows:
            tops[: len(self.tops)], classes[: len(self.classes)] = self.tops, self.classes
            totals[: len(self.totals)] = self.totals
        self.tops, self.classes, self.totals, self.k = tops, classes, totals, k

    def score(self, z, y, key):
        n, k = z.shape
        keys = max(len(self.names), 1)
        if not self.rows or keys > len(self.totals):
            self.grow(keys, k)
        at = np.arange(n)
        top = z.argmax(1)
        highest = z[at, top]
        p = np.exp(z - highest[:, None])
        total = p.sum(1)
        nll = np.log(total) - (z[at, y] - highest)
        p /= total[:, None]
        brier = np.einsum("ij,ij->i", p, p) - 2 * p[at, y] + 1
        conf, hit = p[at, top], top == y
        self.sum(self.totals, key, (None, nll, brier, hit))
        cell = np.minimum((conf * BINS).astype(np.int64), BINS - 1) + key * BINS
        self.sum(self.tops, cell, (None, conf, hit))
        cells = np.minimum((p * BINS).astype(np.int32), BINS - 1)
        cells = cells + (np.arange(k) * BINS) + (key * (k * BINS))[:, None]
        self.sum(self.classes[:, :2], cells.ravel(), (None, p.ravel()))
        self.sum(self.classes[:, 2:], cells[at, y], (None,))
        self.rows += n

    @staticmethod
    def sum(into, cells, columns):
        for c, weights in enumerate(columns):
            if len(into) <= 4 * len(cells):
                into[:, c] += np.bincount(cells, weights, len(into))
            else:  # most cells have no row
                np.add.at(into[:, c], cells, 1 if weights is None else weights)

    def results(self):
        self.flush()
        out = []
        for key in range(max(len(self.names), 1)):
            n, nll, brier, hits = self.totals[key]
            if n == 0:
                continue
            t = self.tops[key * BINS : (key + 1) * BINS]
            c = self.classes[key * self.k * BINS : (key + 1) * self.k * BINS]
            out.append(dict(rows=int(n), nll=nll / n, brier=brier / n, accuracy=hits / n,
                            ece=np.abs(t[:, 1] - t[:, 2]).sum() / n,
                            cwece=np.abs(c[:, 1] - c[:, 2]).sum() / n / self.k))
        return out


class Join:
    """Predictions wait in one array of rows, whose numbers a dict has by id; labels that come first wait as well."""

    def __init__(self, sums):
        self.sums, self.waiting, self.early = sums, {}, {}
        self.free, self.z = [], None

    def keys(self, table):
        if "tenant" not in table.schema.names:
            return np.zeros(table.num_rows, np.int64)
        column = table.column("tenant")
        if hasattr(column, "indices"):
            names = column.dictionary.to_pylist()
            of = np.array([self.sums.names.setdefault(v, len(self.sums.names)) for v in names])
            return of[column.indices.to_numpy()]
        known = self.sums.names
        return np.array([known.setdefault(v, len(known)) for v in column.to_pylist()])

    @staticmethod
    def ids(table):
        return table.column("id").to_numpy(zero_copy_only=False).tolist()

    def predictions(self, table):
        scores = table.column("logits")
        z = scores.flatten().to_numpy().reshape(len(scores), -1)
        key = self.keys(table)
        if "label" in table.schema.names:
            self.sums.add(z, table.column("label").to_numpy(), key)
            return
        ids = self.ids(table)
        if self.early:
            y = np.fromiter(map(self.early.pop, ids, itertools.repeat(-1)), np.int64, len(ids))
            met = y >= 0
            if met.any():
                self.sums.add(z[met], y[met], key[met])
                rest = np.flatnonzero(~met)
                ids, z, key = [ids[i] for i in rest], z[rest], key[rest]
        if not ids:
            return
        if len(self.free) < len(ids):
            self.grow(max(1024, len(ids)), z.shape[1])
        slots = self.free[-len(ids) :]
        del self.free[-len(ids) :]
        self.z[slots], self.key[slots] = z, key
        self.waiting.update(zip(ids, slots))

    def grow(self, least, k):
        had = 0 if self.z is None else len(self.z)
        now = max(2 * had, had + least)
        z, key = np.empty((now, k), np.float32), np.empty(now, np.int64)
        if had:
            z[:had], key[:had] = self.z, self.key
        self.z, self.key = z, key
        self.free.extend(range(had, now))

    def labels(self, table):
        ids, y = self.ids(table), table.column("label").to_numpy()
        slots = np.fromiter(map(self.waiting.pop, ids, itertools.repeat(-1)), np.int64, len(ids))
        if slots.min() < 0:
            missing = np.flatnonzero(slots < 0)
            self.early.update((ids[i], int(y[i])) for i in missing)
            met = slots >= 0
            slots, y = slots[met], y[met]
        if len(slots):
            self.sums.add(self.z[slots], y, self.key[slots])
            self.free.extend(slots.tolist())
