// The rows' weights of AU: confidence scores, their quantile, their binned CDF; package loss has the formulas.
#pragma once
#include "loss.h"

enum { AU_THREADS = 256 };

KERNEL(ROW_THREADS) au_scores(Epoch *e, const Plan *plan, int k, const float *z, double *scores) {
	SHARED static RowShared<ROW_SCORE> shared;
	Row row;
	if (!read_row(&row, z + (u64)BLOCK_X * k, k, -1, &shared)) {
		if (THREAD == 0) e->bad = 1, scores[BLOCK_X] = 1;
		return;
	}
	if (THREAD == 0) scores[BLOCK_X] = score(&row, plan->csf);
}

// What the rows' weights share. The layout is that of auShared in the Go code.
struct Around {
	double low, high; // scores on either side of the quantile
	double n;         // sum of the counts
};

// A block a row: its score's rank, of equal ones the earlier row first, says whether it is beside the quantile.
KERNEL(AU_THREADS) au_ranks(const Plan *plan, int n, const double *scores, Around *around) {
	SHARED static double scratch[AU_THREADS][1];
	int i = BLOCK_X, before = 0;
	double g = scores[i];
	for (int j = THREAD; j < n; j += THREADS) before += scores[j] < g || (scores[j] == g && j < i);
	int rank = (int)block_sum(before, scratch), low = (int)(plan->kappa * (n - 1)), high = low + 1 < n ? low + 1 : low;
	if (THREAD != 0) return;
	if (rank == low) around->low = g;
	if (rank == high) around->high = g;
}

// The bin [k/bins, (k+1)/bins) of a score from 0 to 1, the last one closed; the product is rounded, so the guess may be
// one off.
DEVICE int bin_of(double g, int bins) {
	int k = (int)(g * bins);
	if (k >= bins) return bins - 1;
	if (g < (double)k / bins) return k - 1;
	return k < bins - 1 && g >= (double)(k + 1) / bins ? k + 1 : k;
}

// One block counts the scores of n rows; 0 rows leave the counts as they are. It adds the counts up.
KERNEL(AU_THREADS) au_counts(int n, int bins, const double *scores, double *counts, Around *around) {
	SHARED static double scratch[AU_THREADS][1];
	double total = 0;
	if (n > 0) {
		for (int k = THREAD; k < bins; k += THREADS) counts[k] = 0;
		BARRIER();
		for (int i = THREAD; i < n; i += THREADS) add_double(&counts[bin_of(scores[i], bins)], 1);
		BARRIER();
	}
	for (int k = THREAD; k < bins; k += THREADS) total += counts[k];
	total = block_sum(total, scratch);
	if (THREAD == 0) around->n = total;
}

// A block a row: beta = −ln(1 − CDF(min(score, quantile))), the smoothed CDF kept within [1/(n+1), n/(n+1)].
KERNEL(AU_THREADS) au_weights(const Plan *plan, int n, int bins, const double *scores, const double *counts,
	const Around *around, double *beta) {
	SHARED static double scratch[AU_THREADS][1];
	double pos = plan->kappa * (n - 1), tau = around->low + (pos - (int)pos) * (around->high - around->low);
	double g = scores[BLOCK_X], sum = 0, all = around->n;
	if (g > tau) g = tau;
	for (int k = THREAD; k < bins; k += THREADS)
		if (counts[k] > 0) sum += counts[k] / (1 + exponential(((k + 0.5) / bins - g) / plan->nu));
	sum = block_sum(sum, scratch) / all;
	double low = 1 / (all + 1), high = all / (all + 1);
	if (THREAD == 0) beta[BLOCK_X] = -ln1p(-(sum < low ? low : sum > high ? high : sum));
}

// One block divides the weights by their mean.
KERNEL(AU_THREADS) au_normalise(int n, double *beta) {
	SHARED static double scratch[AU_THREADS][1];
	double sum = 0;
	for (int i = THREAD; i < n; i += THREADS) sum += beta[i];
	double mean = block_sum(sum, scratch) / n;
	for (int i = THREAD; i < n; i += THREADS) beta[i] /= mean;
}
