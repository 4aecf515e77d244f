// What the kernels need of CUDA's headers, which are not there when this is compiled: names of threads and barriers, and
// elementary functions.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

// One block a processor may have all registers: no kernel spills.
#define KERNEL(threads) extern "C" __attribute__((global)) __attribute__((launch_bounds(threads, 1))) void
// The same, for so few registers that two blocks share a processor.
#define KERNEL_TWICE(threads) extern "C" __attribute__((global)) __attribute__((launch_bounds(threads, 2))) void
#define DEVICE static __attribute__((device)) inline __attribute__((always_inline))
#define DEVICE_METHOD __attribute__((device, always_inline))
#define CALLED static __attribute__((device, noinline))
#define SHARED __attribute__((shared))
#define THREAD ((int)__nvvm_read_ptx_sreg_tid_x())
#define THREADS ((int)__nvvm_read_ptx_sreg_ntid_x())
#define BLOCK_X ((int)__nvvm_read_ptx_sreg_ctaid_x())
#define BLOCK_Y ((int)__nvvm_read_ptx_sreg_ctaid_y())
#define BLOCKS_X ((int)__nvvm_read_ptx_sreg_nctaid_x())
// All threads of a block must come here.
#define BARRIER() asm volatile("bar.sync 0;" ::: "memory")
#define UNROLL _Pragma("unroll")
typedef const __attribute__((address_space(1))) float *Global;
// Keeps the compiler from computing addresses ahead of a loop, for which there are not enough registers.
#define KEEP_HERE(pointer) asm volatile("" : "+l"(pointer))

DEVICE float exp2_approx(float x) {
	float y;
	asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}

struct Four {
	float x, y, z, w;
};

// Four numbers of shared memory at once; written out, since clang takes such a load apart.
DEVICE Four load4(const float *shared) {
	Four v;
	u32 at = (u32)(u64)(const __attribute__((address_space(3))) float *)shared;
	asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at));
	return v;
}

// Whole numbers add up exactly, in any order.
DEVICE void add_double(double *at, double v) {
	double old;
	asm volatile("atom.add.f64 %0, [%1], %2;" : "=d"(old) : "l"(at), "d"(v) : "memory");
}

// State of an epoch. The launches of a step are recorded once and replayed, so whatever changes from step to step is
// read from here. The layout is that of epochParams in the Go code.
struct Epoch {
	u64 seed, threshold; // of the masks
	double loss;         // sum over the rows so far
	int step, batch, total, bad;
	u32 first; // step of the masks at step 0
	float lr, momentum, decay;
	int decoupled, nesterov;
};

DEVICE u32 bits_of(float x) { return __builtin_bit_cast(u32, x); }
DEVICE float float_of(u32 b) { return __builtin_bit_cast(float, b); }

DEVICE bool finite(float x) { return x - x == 0; }

// The binary16 number with bits h, exactly; subnormal ones too.
DEVICE float half_to_float(unsigned short h) {
	float f = float_of((u32)(h & 0x7fff) << 13) * 0x1p112f;
	if ((h & 0x7c00) == 0x7c00) f = float_of(0x7f800000u | (u32)(h & 0x3ff) << 13);
	return h & 0x8000 ? -f : f;
}

// e^x to about 2^-22 for x <= 0: log2 e and the product with it are carried in two parts.
DEVICE float fast_exp(float x) {
	const float L = 1.44269504088896340736f, rest = 1.925963e-8f;
	float t = x * L, lost = __builtin_fmaf(x, rest, __builtin_fmaf(x, L, -t));
	return exp2_approx(t) * __builtin_fmaf(lost, 0.693147180559945309f, 1.0f);
}

// ln x to a few units in the last place of a double, for finite x that are not subnormal; of 0 it is -709.
CALLED double ln(double x) {
	u64 b = __builtin_bit_cast(u64, x);
	int e = (int)(b >> 52) - 1023;
	double m = __builtin_bit_cast(double, (b & 0xfffffffffffffull) | 0x3ff0000000000000ull);
	if (m > 1.4142135623730951) m *= 0.5, e++;
	double s = (m - 1) / (m + 1), q = s * s, sum = 0;
	UNROLL for (int i = 23; i >= 1; i -= 2) sum = sum * q + 1.0 / i;
	return 2 * s * sum + e * 0.69314718055994530942;
}

// ln(1 + x) for x > -1: what is lost in rounding 1 + x is put back.
DEVICE double ln1p(double x) {
	double u = 1 + x;
	if (u == 1) return x;
	return ln(u) * (x / (u - 1));
}

// e^x to a few units in the last place of a double; 0 below -700, and 700 is the largest x.
CALLED double exponential(double x) {
	if (x < -700) return 0;
	if (x > 700) x = 700;
	double t = x * 1.44269504088896340736;
	int k = (int)(t < 0 ? t - 0.5 : t + 0.5);
	double r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10, sum = 1;
	UNROLL for (int i = 14; i >= 1; i--) sum = 1 + sum * (r * (1.0 / i));
	return sum * __builtin_bit_cast(double, (u64)(k + 1023) << 52);
}

// base^exponent for base > 0; of 0 it is finite.
CALLED double power(double base, double exponent) { return exponential(exponent * ln(base)); }

// Sums over the threads of a block, a power of two of them, in a fixed order; everybody gets them. There must be a
// barrier before scratch is used again.
template <int n>
DEVICE void block_sums(double (&v)[n], double (*scratch)[n]) {
	UNROLL for (int i = 0; i < n; i++) scratch[THREAD][i] = v[i];
	BARRIER();
	int half = THREADS;
	do {
		half /= 2;
		if (THREAD < half) {
			UNROLL for (int i = 0; i < n; i++) scratch[THREAD][i] += scratch[THREAD + half][i];
		}
		BARRIER();
	} while (half > 1);
	UNROLL for (int i = 0; i < n; i++) v[i] = scratch[0][i];
}

DEVICE double block_sum(double v, double (*scratch)[1]) {
	double one[1] = {v};
	block_sums<1>(one, scratch);
	return one[0];
}
