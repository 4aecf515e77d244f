// What is known of a row of logits, computed by one block: the largest, sums of exponentials, probabilities of single
// classes. Elements are float32, sums over a row and what is made of them are doubles.
#pragma once
#include "device.h"

enum { ROW_THREADS = 256 };

// The two largest of a row, of equal ones the lower index first; -1 where there is none.
struct Best {
	float v1, v2;
	int i1, i2;
};

DEVICE bool above(float v, int i, float w, int j) {
	return i >= 0 && (j < 0 || v > w || (v == w && i < j));
}

DEVICE void consider(Best *b, float v, int i) {
	if (above(v, i, b->v1, b->i1)) {
		b->v2 = b->v1, b->i2 = b->i1;
		b->v1 = v, b->i1 = i;
	} else if (above(v, i, b->v2, b->i2)) {
		b->v2 = v, b->i2 = i;
	}
}

struct RowShared {
	Best best[ROW_THREADS];
	double sums[ROW_THREADS][5];
};

struct Row {
	const float *z;
	int k, top, second;
	float max;
	double logS; // ln Σ exp(z − max)
	double sum;  // Σ exp(z − max)
	double rest; // 1 − p of the top class, without cancellation
	double sq;   // Σ p² without that of the label
	double dist; // Σ (z − max)
	double ent;  // entropy in nats
};

// Two largest of what f yields for the classes; everybody gets them.
template <class F>
DEVICE Best two_largest(int k, RowShared *s, F f) {
	Best b = {0, 0, -1, -1};
	for (int j = THREAD; j < k; j += THREADS) {
		float v;
		if (f(j, &v)) consider(&b, v, j);
	}
	s->best[THREAD] = b;
	BARRIER();
	for (int half = THREADS / 2; half > 0; half /= 2) {
		if (THREAD < half) {
			Best *to = &s->best[THREAD], from = s->best[THREAD + half];
			consider(to, from.v1, from.i1);
			consider(to, from.v2, from.i2);
		}
		BARRIER();
	}
	b = s->best[0];
	BARRIER();
	return b;
}

// Everything of a row. y is left out of sq; -1 leaves none out. Returns false where a logit is not finite.
DEVICE bool read_row(Row *row, const float *z, int k, int y, RowShared *s) {
	Best b = two_largest(k, s, [z](int j, float *v) { return *v = z[j], finite(*v); });
	row->z = z, row->k = k, row->top = b.i1, row->second = b.i2, row->max = b.v1;
	float others = 0, sq = 0;
	double dist = 0, weighted = 0, bad = 0;
	for (int j = THREAD; j < k; j += THREADS) {
		float d = z[j] - b.v1, p = fast_exp(d);
		if (!finite(d)) bad = 1;
		if (j != b.i1) others += p;
		if (j != y) sq += p * p;
		dist += d;
		weighted += (double)(p * d);
	}
	double part[5] = {others, sq, dist, weighted, bad};
	block_sums<5>(part, s->sums);
	double S = 1 + part[0];
	row->sum = S, row->logS = ln1p(part[0]), row->rest = part[0] / S;
	row->sq = part[1] / (S * S), row->dist = part[2], row->ent = row->logS - part[3] / S;
	return part[4] == 0 && b.i1 >= 0;
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
		return v < 0 ? 0 : v > 1 ? 1 : v;
	}
	return conf;
}
