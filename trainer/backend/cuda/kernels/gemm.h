// Products of row-major float32 matrices, C = op(A)·op(B), for machines without cuBLAS: tiles of 64×64, 16 deep, in shared
// memory, 4×4 numbers a thread. The order of every sum is fixed.
#pragma once
#include "device.h"

enum { TILE = 64, DEPTH = 16, PITCH = TILE + 4 };

// Loaded from shared memory at once.
typedef float Four __attribute__((vector_size(16), may_alias));

// Puts a tile of 64 of the outer index by 16 of the inner one into shared memory, 0 outside. along says which index is
// contiguous in memory: 1 the inner one (neighbouring threads take it), 0 the outer one.
template <int along>
DEVICE void load_tile(float (*tile)[PITCH], const float *src, int ld, int outer0, int outer, int inner0, int inner) {
	UNROLL for (int part = 0; part < TILE * DEPTH / 256; part++) {
		int at = part * 256 + THREAD;
		int o = along ? at / DEPTH : at % TILE, i = along ? at % DEPTH : at / TILE;
		int go = outer0 + o, gi = inner0 + i;
		float v = 0;
		if (go < outer && gi < inner) v = along ? src[(u64)go * ld + gi] : src[(u64)gi * ld + go];
		tile[i][o] = v;
	}
}

// C m×n with inner dimension k; a_inner and b_inner say whether A's and B's inner index is contiguous.
template <int a_inner, int b_inner>
DEVICE void gemm(const float *a, const float *b, float *c, int m, int n, int k, int lda, int ldb, int ldc,
	float (*as)[PITCH], float (*bs)[PITCH]) {
	int row0 = BLOCK_Y * TILE, col0 = BLOCK_X * TILE, ty = THREAD / 16, tx = THREAD % 16;
	float sum[4][4];
	UNROLL for (int i = 0; i < 4; i++) {
		UNROLL for (int j = 0; j < 4; j++) sum[i][j] = 0;
	}
	for (int inner = 0; inner < k; inner += DEPTH) {
		load_tile<a_inner>(as, a, lda, row0, m, inner, k);
		load_tile<b_inner>(bs, b, ldb, col0, n, inner, k);
		BARRIER();
		UNROLL for (int l = 0; l < DEPTH; l++) {
			Four x = *(const Four *)&as[l][ty * 4], y = *(const Four *)&bs[l][tx * 4];
			UNROLL for (int i = 0; i < 4; i++) {
				UNROLL for (int j = 0; j < 4; j++) sum[i][j] = __builtin_fmaf(x[i], y[j], sum[i][j]);
			}
		}
		BARRIER();
	}
	UNROLL for (int i = 0; i < 4; i++) {
		UNROLL for (int j = 0; j < 4; j++) {
			int r = row0 + ty * 4 + i, q = col0 + tx * 4 + j;
			if (r < m && q < n) c[(u64)r * ldc + q] = sum[i][j];
		}
	}
}

#define GEMM_KERNEL(name, a_inner, b_inner)                                                                      \
	KERNEL(256) name(const float *a, const float *b, float *c, int m, int n, int k, int lda, int ldb, int ldc) { \
		alignas(16) SHARED static float as[DEPTH][PITCH], bs[DEPTH][PITCH];                                      \
		gemm<a_inner, b_inner>(a, b, c, m, n, k, lda, ldb, ldc, as, bs);                                         \
	}

GEMM_KERNEL(gemm_nn, 1, 0) // A·B
GEMM_KERNEL(gemm_nt, 1, 1) // A·Bᵀ
GEMM_KERNEL(gemm_tn, 0, 0) // Aᵀ·B
