// The kernels of a step around products and losses: features and labels of the mini-batch, masks, biases, update.
#pragma once
#include "device.h"

// Where mini-batch row i of the epoch's list is.
DEVICE int position(const Epoch *e, int i) { return e->step * e->batch + i; }

// x, n×d, with a block a row: features of the rows at from + i, or, where moves is set, of the step's rows. rows (null
// for 0, 1, 2 …) numbers rows of the set, place (null for the same) says where these lie in the slab of float32 or
// binary16. Where slab2 is set, the partners' features are mixed in with the step's lambda.
KERNEL(256) features(const Epoch *e, float *x, int d, const void *slab, const void *slab2, int half, const int *place,
	const int *rows, const int *partner, const float *lambda, int from, int moves) {
	int at = from + BLOCK_X + (moves ? e->step * e->batch : 0);
	int r = rows ? rows[at] : at, other = partner ? partner[at] : at;
	u64 src = (u64)(place ? place[r] : r) * d, src2 = (u64)(slab2 && place ? place[other] : other) * d;
	float share = slab2 ? lambda[e->step] : 1;
	float *out = x + (u64)BLOCK_X * d;
	for (int j = THREAD; j < d; j += THREADS) {
		float v = half ? half_to_float(((const unsigned short *)slab)[src + j]) : ((const float *)slab)[src + j];
		if (slab2) {
			float w = half ? half_to_float(((const unsigned short *)slab2)[src2 + j]) : ((const float *)slab2)[src2 + j];
			v = share * v + (1 - share) * w;
		}
		out[j] = v;
	}
}

// Labels of the step's rows and of their partners, and how often each row was right so far.
KERNEL(256) labels(const Epoch *e, int n, const int *rows, const int *partner, const int *all, const int *right,
	const int *seen, int *y, int *y2, double *history) {
	int i = BLOCK_X * THREADS + THREAD;
	if (i >= n) return;
	int at = position(e, i), r = rows[at];
	y[i] = all[r];
	if (partner) y2[i] = all[partner[at]];
	history[i] = seen[r] > 0 ? (double)right[r] / (double)seen[r] : 0;
}

// Philox4x32-10, as in package philox.
DEVICE void philox(u32 c[4], u32 k0, u32 k1) {
	UNROLL for (int round = 0; round < 10; round++) {
		u64 a = (u64)0xD2511F53u * c[0], b = (u64)0xCD9E8D57u * c[2];
		u32 c1 = c[1], c3 = c[3];
		c[0] = (u32)(b >> 32) ^ c1 ^ k0, c[1] = (u32)b, c[2] = (u32)(a >> 32) ^ c3 ^ k1, c[3] = (u32)a;
		k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
	}
}

// A layer's weights under the step's mask, four of them a thread: mask[i] is 1 where word i of the stream (seed, purpose
// 3, layer, step) is below the threshold, and view is w times that.
KERNEL(256) masked(const Epoch *e, u32 layer, int n, const float *w, float *view, unsigned char *mask) {
	int i = BLOCK_X * THREADS + THREAD;
	u32 c[4] = {(u32)i, layer, e->first + (u32)e->step, 3};
	philox(c, (u32)e->seed, (u32)(e->seed >> 32));
	UNROLL for (int j = 0; j < 4; j++) {
		int at = 4 * i + j;
		if (at < n) {
			unsigned char m = c[j] < e->threshold;
			mask[at] = m;
			view[at] = w[at] * (float)m;
		}
	}
}

// view = q·w.
KERNEL(256) scaled(int n, float q, const float *w, float *view) {
	int i = BLOCK_X * THREADS + THREAD;
	if (i < n) view[i] = q * w[i];
}

// Adds the bias to outputs of that width, a block a row, and cuts negative ones off where relu is set.
KERNEL(256) biased(int width, int relu, const float *bias, float *out) {
	out += (u64)BLOCK_X * width;
	for (int j = THREAD; j < width; j += THREADS) {
		float v = out[j] + bias[j];
		out[j] = relu && v < 0 ? 0 : v;
	}
}

// Gradients behind a ReLU, a block a row: 0 where its output is.
KERNEL(256) relu_back(int width, const float *act, float *delta) {
	act += (u64)BLOCK_X * width, delta += (u64)BLOCK_X * width;
	for (int j = THREAD; j < width; j += THREADS)
		if (act[j] <= 0) delta[j] = 0;
}

// x = high + low, but for the last bits of low when a product rounds it: both have the 11 bits of TF32.
KERNEL(256) split(int n, const float *x, float *high, float *low) {
	for (u64 i = (u64)BLOCK_X * THREADS + THREAD; i < (u64)n; i += (u64)BLOCKS_X * THREADS) {
		float v = x[i], h = float_of((bits_of(v) + 0x1000u) & ~0x1fffu);
		high[i] = h;
		low[i] = v - h;
	}
}

// Sums of the columns of an n×width matrix; a block of 1024 threads has 32 columns.
KERNEL(1024) column_sums(int n, int width, const float *in, float *out) {
	SHARED static float part[32][33];
	int lane = THREAD / 32, j = THREAD % 32, c = BLOCK_X * 32 + j;
	float sum = 0;
	if (c < width)
		for (int r = lane; r < n; r += 32) sum += in[(u64)r * width + c];
	part[lane][j] = sum;
	BARRIER();
	for (int half = 16; half > 0; half /= 2) {
		if (lane < half) part[lane][j] += part[lane + half][j];
		BARRIER();
	}
	if (lane == 0 && c < width) out[c] = part[0][j];
}

// One step of stochastic gradient descent on all parameters, as in package optim, and the end of the step: nothing
// after it reads the number of the step. mask is null, or multiplies the gradient.
KERNEL(256) update(Epoch *e, int n, float *w, const float *g, float *v, const unsigned char *mask) {
	float l2 = e->decoupled ? 0 : e->decay, shrink = e->decoupled ? e->lr * e->decay : 0;
	int i = BLOCK_X * THREADS + THREAD;
	if (i < n) {
		float wi = w[i], gi = g[i];
		if (mask) gi *= (float)mask[i];
		gi += l2 * wi;
		float vi = e->momentum * v[i] + gi, step = e->nesterov ? gi + e->momentum * vi : vi;
		v[i] = vi;
		w[i] = wi - e->lr * step - shrink * wi;
	}
	if (i == 0) e->step++;
}

// Adds the sums of the columns of an n×width matrix to out, a block a column, in a fixed order.
KERNEL(256) sums(int n, int width, const double *in, double *out) {
	SHARED static double scratch[256][1];
	double sum = 0;
	for (int r = THREAD; r < n; r += THREADS) sum += in[(u64)r * width + BLOCK_X];
	sum = block_sum(sum, scratch);
	if (THREAD == 0) out[BLOCK_X] += sum;
}
