// What is known of a row of logits, computed by one block: the largest, sums of exponentials, probabilities of single
// classes. Elements are float32, sums over a row and what is made of them are doubles.
#pragma once
#include "device.h"

enum { ROW_THREADS = 256 };

enum { NONE = 0x7fffffff }; // an index, of a class that is not there

// The n largest of a row, one or two, of equal ones the lower index first; -inf and NONE where there is none.
template <int n>
struct Best {
	float v[n];
	int i[n];
};

DEVICE bool above(float v, int i, float w, int j) {
	return v > w || (v == w && i < j);
}

// Puts v at its place. Without branches: they would keep b in memory.
template <int n>
DEVICE void insert(Best<n> *b, float v, int i, bool first, bool second) {
	if (n == 2) {
		b->v[n - 1] = first ? b->v[0] : second ? v : b->v[n - 1];
		b->i[n - 1] = first ? b->i[0] : second ? i : b->i[n - 1];
	}
	b->v[0] = first ? v : b->v[0];
	b->i[0] = first ? i : b->i[0];
}

// What is wanted of a row: how many of its sums, and how many of its largest.
enum { ROW_TOP = 1, ROW_SUM = 2, ROW_SCORE = 3, ROW_ALL = 5 };
template <int want>
struct RowShared {
	static constexpr int largest = want >= ROW_SCORE ? 2 : 1;
	Best<largest> best[ROW_THREADS];
	double sums[ROW_THREADS][want];
};

// What the losses read of a row.
struct Whole {
	int k;
	double logS; // ln Σ exp(z − max); of ROW_SUM on
	double ent;  // entropy in nats; of ROW_SCORE on
	double sq;   // Σ p² without that of the label; of ROW_ALL, as the next
	double dist; // Σ (z − max)
};

struct Row : Whole {
	const float *z;
	int top, second; // second: of ROW_SCORE on
	float max;
	double sum;  // Σ exp(z − max); of ROW_SUM on, as the next
	double rest; // 1 − p of the top class, without cancellation
};

// The largest of f of the classes, without those where it is -inf; everybody gets them. There must be a barrier before
// shared is used again.
template <int n, class F>
DEVICE Best<n> largest_of(int k, Best<n> *shared, F f) {
	Best<n> b;
	UNROLL for (int i = 0; i < n; i++) b.v[i] = -__builtin_huge_valf(), b.i[i] = NONE;
	for (int j = THREAD; j < k; j += THREADS) {
		float v = f(j);
		insert(&b, v, j, v > b.v[0], v > b.v[n - 1]); // of equal ones the earlier stays
	}
	shared[THREAD] = b;
	BARRIER();
	int half = THREADS;
	do {
		half /= 2;
		if (THREAD < half) {
			Best<n> from = shared[THREAD + half];
			float v = from.v[0], w = from.v[n - 1];
			int i = from.i[0], j = from.i[n - 1];
			insert(&b, v, i, above(v, i, b.v[0], b.i[0]), above(v, i, b.v[n - 1], b.i[n - 1]));
			// The second of a pair is behind its first, and so never the first of all.
			if (n == 2) insert(&b, w, j, false, above(w, j, b.v[n - 1], b.i[n - 1]));
			shared[THREAD] = b;
		}
		BARRIER();
	} while (half > 1);
	return shared[0];
}

// What is wanted of a row. y is left out of sq; -1 leaves none out. Returns false where a logit is not finite.
template <int want>
DEVICE bool read_row(Row *row, const float *z, int k, int y, RowShared<want> *s) {
	constexpr int largest = RowShared<want>::largest;
	Best<largest> b = largest_of(k, s->best, [z](int j) { return z[j]; });
	row->z = z, row->k = k, row->top = b.i[0], row->second = b.i[largest - 1], row->max = b.v[0];
	float others = 0, sq = 0;
	double dist = 0, weighted = 0, bad = 0;
	for (int j = THREAD; j < k; j += THREADS) {
		float d = z[j] - b.v[0], p = fast_exp(d);
		if (!finite(d)) bad = 1;
		if (j != b.i[0]) others += p;
		if (j != y) sq += p * p;
		dist += d;
		weighted += (double)(p * d);
	}
	double all[ROW_ALL] = {bad, others, weighted, sq, dist}, part[want];
	UNROLL for (int i = 0; i < want; i++) part[i] = all[i];
	block_sums<want>(part, s->sums);
	UNROLL for (int i = 0; i < want; i++) all[i] = part[i];
	double S = 1 + all[1];
	row->sum = S, row->logS = ln1p(all[1]), row->rest = all[1] / S;
	row->ent = row->logS - all[2] / S, row->sq = all[3] / (S * S), row->dist = all[4];
	return all[0] == 0;
}

DEVICE double diff(const Row *r, int j) { return (double)(r->z[j] - r->max); }
DEVICE double prob(const Row *r, int j) { return exponential(diff(r, j)) / r->sum; }
// 1 − p of class j without cancellation.
DEVICE double not_prob(const Row *r, int j) { return j == r->top ? r->rest : 1 - prob(r, j); }
// −ln p of class j.
DEVICE double nll_of(const Row *r, int j) { return r->logS - diff(r, j); }

// The largest class but j.
DEVICE int other(const Row *r, int j) { return r->top == j ? r->second : r->top; }

enum { CSF_MSP, CSF_MARGIN, CSF_NEGENT };

// Confidence score of a row, in [0, 1].
DEVICE double score(const Row *r, int csf) {
	double conf = 1 / r->sum;
	if (csf == CSF_MARGIN) return conf - prob(r, r->second);
	if (csf == CSF_NEGENT) {
		double v = 1 - r->ent / ln((double)r->k);
		return v < 0 ? 0 : v; // by rounding
	}
	return conf;
}
