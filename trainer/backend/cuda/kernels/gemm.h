// Products of row-major float32 matrices, C = op(A)·op(B), for machines without cuBLAS: tiles of 128×64, 16 deep, in
// shared memory, 8×4 numbers a thread. While a tile is multiplied the next one is fetched. The order of every sum is fixed.
#pragma once
#include "device.h"

enum { TILE_M = 128, TILE_N = 64, DEPTH = 16, GEMM_THREADS = 256 };

struct GemmShared {
	// Rows are padded by 16 bytes, so that neighbours in a column are in different banks.
	alignas(16) float a[2][DEPTH][TILE_M + 4], b[2][DEPTH][TILE_N + 4];
};

// The part of a tile of `tile` of the outer index by 16 of the inner one that this thread moves: first, and then every
// step further in one of them. along says which index is contiguous in memory, and so taken by neighbouring threads: 1 the
// inner one, 0 the outer one.
template <int along, int tile>
struct Part {
	static constexpr int step = GEMM_THREADS / (along ? DEPTH : tile), n = tile * DEPTH / GEMM_THREADS;
	int outer, inner;
	DEVICE_METHOD Part() : outer(along ? THREAD / DEPTH : THREAD % tile), inner(along ? THREAD % DEPTH : THREAD / tile) {}
};

// Reads this thread's part of a tile, 0 outside of the matrix.
template <int along, int tile>
DEVICE void fetch(float *part, const float *src, int ld, int outer0, int outer, int inner0, int inner) {
	typedef Part<along, tile> Mine;
	Mine first;
	int go = outer0 + first.outer, gi = inner0 + first.inner;
	// How far the index that moves may go, where the other one is inside.
	int left = along ? (gi < inner ? outer - go : 0) : (go < outer ? inner - gi : 0);
	Global at = (Global)src + (along ? (u64)go * ld + gi : (u64)gi * ld + go);
	u64 stride = (u64)Mine::step * ld;
	UNROLL for (int p = 0; p < Mine::n; p++) {
		KEEP_HERE(at);
		part[p] = p * Mine::step < left ? *at : 0;
		at += stride;
	}
}

template <int along, int tile>
DEVICE void keep(float (*to)[tile + 4], const float *part) {
	typedef Part<along, tile> Mine;
	Mine first;
	UNROLL for (int p = 0; p < Mine::n; p++) {
		int o = first.outer + (along ? p * Mine::step : 0), i = first.inner + (along ? 0 : p * Mine::step);
		to[i][o] = part[p];
	}
}

// C m×n with inner dimension k; a_inner and b_inner say whether A's and B's inner index is contiguous.
template <int a_inner, int b_inner>
DEVICE void gemm(const float *a, const float *b, float *c, int m, int n, int k, int lda, int ldb, int ldc, GemmShared *s) {
	int row0 = BLOCK_Y * TILE_M, col0 = BLOCK_X * TILE_N, ty = THREAD / 16, tx = THREAD % 16;
	float sum[8][4], pa[TILE_M * DEPTH / GEMM_THREADS], pb[TILE_N * DEPTH / GEMM_THREADS];
	UNROLL for (int i = 0; i < 8; i++) {
		UNROLL for (int j = 0; j < 4; j++) sum[i][j] = 0;
	}
	fetch<a_inner, TILE_M>(pa, a, lda, row0, m, 0, k);
	fetch<b_inner, TILE_N>(pb, b, ldb, col0, n, 0, k);
	keep<a_inner, TILE_M>(s->a[0], pa);
	keep<b_inner, TILE_N>(s->b[0], pb);
	BARRIER();
	for (int inner = 0, now = 0; inner < k; inner += DEPTH, now ^= 1) {
		bool more = inner + DEPTH < k;
		if (more) {
			fetch<a_inner, TILE_M>(pa, a, lda, row0, m, inner + DEPTH, k);
			fetch<b_inner, TILE_N>(pb, b, ldb, col0, n, inner + DEPTH, k);
		}
		UNROLL for (int l = 0; l < DEPTH; l++) {
			Four x0 = load4(&s->a[now][l][ty * 8]), x1 = load4(&s->a[now][l][ty * 8 + 4]), y = load4(&s->b[now][l][tx * 4]);
			float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
			UNROLL for (int i = 0; i < 8; i++) {
				sum[i][0] = __builtin_fmaf(x[i], y.x, sum[i][0]);
				sum[i][1] = __builtin_fmaf(x[i], y.y, sum[i][1]);
				sum[i][2] = __builtin_fmaf(x[i], y.z, sum[i][2]);
				sum[i][3] = __builtin_fmaf(x[i], y.w, sum[i][3]);
			}
		}
		// The other half was last read before the barrier of the step before.
		if (more) {
			keep<a_inner, TILE_M>(s->a[now ^ 1], pa);
			keep<b_inner, TILE_N>(s->b[now ^ 1], pb);
		}
		BARRIER();
	}
	UNROLL for (int i = 0; i < 8; i++) {
		UNROLL for (int j = 0; j < 4; j++) {
			int r = row0 + ty * 8 + i, q = col0 + tx * 4 + j;
			if (r < m && q < n) c[(u64)r * ldc + q] = sum[i][j];
		}
	}
}

#define GEMM_KERNEL(name, a_inner, b_inner)                                                          \
	KERNEL_TWICE(GEMM_THREADS)                                                                       \
	name(const float *a, const float *b, float *c, int m, int n, int k, int lda, int ldb, int ldc) { \
		SHARED static GemmShared shared;                                                             \
		gemm<a_inner, b_inner>(a, b, c, m, n, k, lda, ldb, ldc, &shared);                            \
	}

GEMM_KERNEL(gemm_nn, 1, 0) // A·B
GEMM_KERNEL(gemm_nt, 1, 1) // A·Bᵀ
GEMM_KERNEL(gemm_tn, 0, 0) // Aᵀ·B
