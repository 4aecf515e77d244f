// A stand-in for libcublas in the same library: column-major products by the definition.
#pragma once

namespace {
struct Blas {
	Stream *stream = nullptr;
	void *workspace = nullptr;
};

// C m×n ← α·op(A)·op(B) + β·C, column-major; inputs keep `keep` bits of their fraction (23: all, 10: TF32).
void multiply(bool ta, bool tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b, int ldb, float beta,
	float *c, int ldc, int keep) {
	auto cut = [keep](float v) {
		u32 drop = 23 - keep, bits = bits_as<u32>(v);
		return float_of(drop ? (bits + (1u << (drop - 1))) >> drop << drop : bits);
	};
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			float sum = 0;
			for (int l = 0; l < k; l++) {
				float x = ta ? a[l + (size_t)i * lda] : a[i + (size_t)l * lda], y = tb ? b[j + (size_t)l * ldb] : b[l + (size_t)j * ldb];
				sum += cut(x) * cut(y);
			}
			float *to = &c[i + (size_t)j * ldc];
			*to = beta == 0 ? alpha * sum : alpha * sum + beta * *to;
			device.set((u64)to, sizeof *to);
		}
}
} // namespace

extern "C" {
int cublasCreate_v2(Blas **h) { return *h = new Blas, 0; }
int cublasDestroy_v2(Blas *h) { return delete h, 0; }
int cublasSetStream_v2(Blas *h, Stream *s) { return h->stream = s, 0; }
int cublasSetWorkspace_v2(Blas *h, void *w, size_t) { return h->workspace = w, 0; }
int cublasGetVersion_v2(Blas *, int *v) { return *v = 120400, 0; }

// Types must all be float32 (0); compute 68 is float32, 77 TF32 products, 75 those of bfloat16.
int cublasGemmEx(Blas *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int at, int lda, const float *b,
	int bt, int ldb, const float *beta, float *c, int ct, int ldc, int compute, int) {
	bool shapes = lda >= (ta ? k : m) && ldb >= (tb ? n : k) && ldc >= m;
	if (!h->stream || !h->workspace || at || bt || ct || !shapes || (compute != 68 && compute != 77 && compute != 75)) return 7;
	float x = *alpha, y = *beta;
	std::lock_guard<std::recursive_mutex> lock(mutex);
	h->stream->put({[=] { multiply(ta, tb, m, n, k, x, a, lda, b, ldb, y, c, ldc, compute == 77 ? 10 : compute == 75 ? 7 : 23); }});
	return 0;
}
}
