// The rows' weights of AU: confidence scores, their quantile, their binned CDF; package loss has the formulas. The batch
// is small beside the logits, so one block weighs it.
#pragma once
#include "loss.h"

enum { AU_THREADS = 256 };

KERNEL(ROW_THREADS) au_scores(Epoch *e, const Plan *plan, int k, const float *z, double *scores) {
	SHARED static RowShared shared;
	Row row;
	if (!read_row(&row, z + (u64)BLOCK_X * k, k, -1, &shared)) {
		if (THREAD == 0) e->bad = 1, scores[BLOCK_X] = 1;
		return;
	}
	if (THREAD == 0) scores[BLOCK_X] = score(&row, plan->csf);
}

// The two scores on either side of the quantile, by rank: of equal ones the earlier row comes first.
KERNEL(AU_THREADS) au_ranks(const Plan *plan, int n, const double *scores, double *around) {
	int i = BLOCK_X * THREADS + THREAD, rank = 0;
	if (i >= n) return;
	double g = scores[i];
	for (int j = 0; j < n; j++) rank += scores[j] < g || (scores[j] == g && j < i);
	int low = (int)(plan->kappa * (n - 1)), high = low + 1 < n ? low + 1 : low;
	if (rank == low) around[0] = g;
	if (rank == high) around[1] = g;
}

struct Cdf {
	const double *counts;
	int bins;
	double n, nu;
};

// The smoothed CDF at g, within [1/(n+1), n/(n+1)].
DEVICE double cdf_at(const Cdf *c, double g) {
	double sum = 0;
	for (int k = 0; k < c->bins; k++)
		if (c->counts[k] > 0) sum += c->counts[k] / (1 + exponential(((k + 0.5) / c->bins - g) / c->nu));
	sum /= c->n;
	double low = 1 / (c->n + 1), high = c->n / (c->n + 1);
	return sum < low ? low : sum > high ? high : sum;
}

// The bin [k/bins, (k+1)/bins) of a score, the last one closed; the product is rounded, so the guess may be one off.
DEVICE int bin_of(double g, int bins) {
	int k = (int)(g * bins);
	k = k < 0 ? 0 : k >= bins ? bins - 1 : k;
	while (k > 0 && g < (double)k / bins) k--;
	while (k < bins - 1 && g >= (double)(k + 1) / bins) k++;
	return k;
}

// beta, n weights: −ln(1 − CDF(min(score, quantile))). counts is a stream's (ready is their number of bins), or room for
// the batch's.
KERNEL(AU_THREADS) au_weights(const Plan *plan, int n, const double *scores, const double *around, double *counts,
	int ready, double *beta) {
	SHARED static double scratch[AU_THREADS];
	Cdf c = {counts, ready ? ready : plan->bins, 0, plan->nu};
	double total = 0;
	if (!ready) {
		for (int k = THREAD; k < c.bins; k += THREADS) counts[k] = 0;
		BARRIER();
		for (int i = THREAD; i < n; i += THREADS) add_double(&counts[bin_of(scores[i], c.bins)], 1);
		BARRIER();
	}
	for (int k = THREAD; k < c.bins; k += THREADS) total += counts[k];
	c.n = block_sum(total, scratch);
	double pos = plan->kappa * (n - 1), tau = around[0] + (pos - (int)pos) * (around[1] - around[0]);
	double capped = -ln1p(-cdf_at(&c, tau)), sum = 0;
	for (int i = THREAD; i < n; i += THREADS) {
		double b = scores[i] <= tau ? -ln1p(-cdf_at(&c, scores[i])) : capped;
		beta[i] = b;
		sum += b;
	}
	double mean = block_sum(sum, scratch) / n;
	if (plan->normalise)
		for (int i = THREAD; i < n; i += THREADS) beta[i] /= mean;
}
