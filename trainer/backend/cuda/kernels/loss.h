// Losses and their gradients with respect to logits, a block a row; package loss has the formulas. A gradient of a sum
// of these losses is, outside the label and one rival class, a·p + c·p² + e·p·(z − max) + d with numbers of the row.
#pragma once
#include "rows.h"

enum { LOSS_CE, LOSS_SQUARED, LOSS_SMOOTHING, LOSS_FOCAL, LOSS_FLSD53, LOSS_INVERSE_FOCAL, LOSS_DUAL_FOCAL, LOSS_ENTROPY };
enum { DUAL_EQ24, DUAL_RELEASED, DUAL_EQ25_26 };
enum { MAX_TERMS = 4 };

// One weighted term: gamma is the exponent, or smoothing's epsilon; au says that the row's weight of AU multiplies it.
struct Term {
	int kind, variant, au, unused;
	double weight, gamma;
};

// A loss, of whose terms at most one is dual focal. The layout is that of lossPlan in the Go code.
struct Plan {
	int terms, csf, bins, normalise;
	double kappa, nu;
	Term term[MAX_TERMS];
};

struct Gradient {
	double a, c, e, d; // of all classes but these:
	double y, j;       // the label, the rival
};

// What the terms read of the label and of the rival class: 0 where there is none.
struct Label {
	double p, not_p, nll, d;    // of the label
	double rp, rnot, rd;        // of the rival
};

DEVICE void add_nll(Gradient *g, const Label *l, double s) {
	g->a += s, g->y -= s * l->not_p, g->j += s * l->rp;
}

// s times the gradient of p of the label.
DEVICE void add_label(Gradient *g, const Label *l, double s) {
	s *= l->p;
	g->a -= s, g->y += s * l->not_p, g->j -= s * l->rp;
}

DEVICE void add_rival(Gradient *g, const Label *l, double s) {
	s *= l->rp;
	g->a -= s, g->y -= s * l->p, g->j += s * l->rnot;
}

// base^gamma·(−ln p_y); the base's gradient is sign times that of p_y. Where the base is 0, so are −ln p_y and all other
// probabilities, and whatever the power is makes no difference.
DEVICE double powered(Gradient *g, const Label *l, double w, double gamma, double base, double sign) {
	double weight = power(base, gamma);
	double slope = gamma * power(base, gamma - 1);
	add_nll(g, l, w * weight);
	add_label(g, l, w * sign * l->nll * slope);
	return weight * l->nll;
}

DEVICE double dual_focal(Gradient *g, const Label *l, double w, double gamma) {
	double base = l->not_p + l->rp, weight = power(base, gamma);
	double s = w * l->nll * gamma * power(base, gamma - 1);
	add_nll(g, l, w * weight);
	add_label(g, l, -s);
	add_rival(g, l, s);
	return weight * l->nll;
}

DEVICE double squared(Gradient *g, const Whole *r, const Label *l, double w) {
	double off = l->not_p, dot = r->sq - l->p * off;
	g->c += 2 * w, g->a -= 2 * w * dot;
	g->y += 2 * w * l->p * (-off - dot), g->j += 2 * w * l->rp * (l->rp - dot);
	return off * off + r->sq;
}

DEVICE double smoothing(Gradient *g, const Whole *r, const Label *l, double w, double epsilon) {
	double share = epsilon / r->k;
	add_nll(g, l, w * (1 - epsilon));
	g->a += w * epsilon, g->d -= w * share;
	g->y += w * (epsilon * l->p - share), g->j += w * (epsilon * l->rp - share);
	return (1 - epsilon) * l->nll + epsilon * r->logS - share * r->dist;
}

// −H(p).
DEVICE double entropy_penalty(Gradient *g, const Whole *r, const Label *l, double w) {
	double shift = r->ent - r->logS;
	g->e += w, g->a += w * shift;
	g->y += w * l->p * (l->d + shift), g->j += w * l->rp * (l->rd + shift);
	return -r->ent;
}

CALLED double add_term(Gradient *g, const Whole *r, const Label *l, const Term *t, double w) {
	switch (t->kind) {
	case LOSS_SQUARED: return squared(g, r, l, w);
	case LOSS_SMOOTHING: return smoothing(g, r, l, w, t->gamma);
	case LOSS_FOCAL: return powered(g, l, w, t->gamma, l->not_p, -1);
	case LOSS_FLSD53: return powered(g, l, w, l->p < 0.2 ? 5 : 3, l->not_p, -1);
	case LOSS_INVERSE_FOCAL: return powered(g, l, w, t->gamma, 1 + l->p, 1);
	case LOSS_DUAL_FOCAL: return dual_focal(g, l, w, t->gamma);
	case LOSS_ENTROPY: return entropy_penalty(g, r, l, w);
	}
	add_nll(g, l, w);
	return l->nll;
}

// The class that dual focal loss adds, or NONE.
DEVICE int rival_of(const Row *r, int y, int variant, Best<2> *shared) {
	const float *z = r->z;
	if (variant == DUAL_RELEASED) {
		auto below = [z, y](int j) { return z[j] < z[y] ? z[j] : -__builtin_huge_valf(); };
		return largest_of(r->k, (Best<1> *)shared, below).i[0];
	}
	if (variant == DUAL_EQ25_26 && z[y] < r->max) return NONE;
	return other(r, y);
}

// Loss and gradient of n rows of logits, a block a row. beta has the rows' weights of AU (null: none). With share the
// loss counts share[step] times, or, where rest is set, 1 − share[step] times. add keeps what values and grad hold.
// right and seen (null: not counted) count the epoch's rows.
KERNEL(ROW_THREADS) row_losses(Epoch *e, const Plan *plan, int n, int k, const float *z, const int *y, const double *beta,
	const float *share, int rest, int add, const int *rows, int *right, int *seen, double *values, float *grad) {
	SHARED static RowShared<ROW_ALL> shared;
	SHARED static Gradient total;
	int i = BLOCK_X, label = y[i];
	Row row;
	if (!read_row(&row, z + (u64)i * k, k, label, &shared)) {
		if (THREAD == 0) e->bad = 1;
		return;
	}
	int rival = NONE;
	for (int t = 0; t < plan->terms; t++)
		if (plan->term[t].kind == LOSS_DUAL_FOCAL) rival = rival_of(&row, label, plan->term[t].variant, shared.best);
	if (THREAD == 0) {
		Gradient g = {0, 0, 0, 0, 0, 0};
		Label l = {prob(&row, label), not_prob(&row, label), nll_of(&row, label), diff(&row, label), 0, 0, 0};
		if (rival != NONE) l.rp = prob(&row, rival), l.rnot = not_prob(&row, rival), l.rd = diff(&row, rival);
		Whole whole = row; // of which no more than this is in memory
		double part = share ? rest ? 1 - (double)share[e->step] : (double)share[e->step] : 1, value = 0;
		for (int t = 0; t < plan->terms; t++) {
			const Term *term = &plan->term[t];
			double w = part * term->weight * (term->au ? beta[i] : 1);
			value += w * add_term(&g, &whole, &l, term, w / n);
		}
		total = g;
		values[i] = (add ? values[i] : 0) + value;
		if (right) {
			int r = rows[e->step * e->batch + i];
			__atomic_fetch_add(&seen[r], 1, __ATOMIC_RELAXED);
			if (row.top == label) __atomic_fetch_add(&right[r], 1, __ATOMIC_RELAXED);
		}
	}
	BARRIER();
	float inv = (float)(1 / row.sum), a = (float)total.a, c = (float)total.c, d = (float)total.d, ent = (float)total.e;
	float *out = grad + (u64)i * k;
	for (int j = THREAD; j < k; j += THREADS) {
		float x = row.z[j] - row.max, p = fast_exp(x) * inv;
		float v = p * (a + c * p + ent * x) + d;
		if (j == rival) v = (float)total.j;
		if (j == label) v = (float)total.y;
		out[j] = add ? out[j] + v : v;
	}
}

// Notes which rows are right, for losses that the host computes, and that a logit is not finite.
KERNEL(ROW_THREADS) row_hits(Epoch *e, int k, const float *z, const int *y, const int *rows, int *right, int *seen) {
	SHARED static RowShared<ROW_TOP> shared;
	int i = BLOCK_X;
	Row row;
	if (!read_row(&row, z + (u64)i * k, k, -1, &shared)) {
		if (THREAD == 0) e->bad = 1;
		return;
	}
	if (THREAD != 0) return;
	int r = rows[e->step * e->batch + i];
	__atomic_fetch_add(&seen[r], 1, __ATOMIC_RELAXED);
	if (row.top == y[i]) __atomic_fetch_add(&right[r], 1, __ATOMIC_RELAXED);
}

// NLL, hit and confidence of rows from + i of a set, n×3.
KERNEL(ROW_THREADS) row_measures(Epoch *e, int k, const float *z, const int *all, int from, double *out) {
	SHARED static RowShared<ROW_SUM> shared;
	int i = BLOCK_X, label = all[from + i];
	Row row;
	if (!read_row(&row, z + (u64)i * k, k, -1, &shared)) {
		if (THREAD == 0) e->bad = 1;
		return;
	}
	if (THREAD != 0) return;
	out[3 * i] = nll_of(&row, label), out[3 * i + 1] = row.top == label, out[3 * i + 2] = 1 / row.sum;
}
