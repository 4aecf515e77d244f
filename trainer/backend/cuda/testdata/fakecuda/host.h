// The names of trainer/backend/cuda/kernels/device.h for a C++ compiler: the threads of a block take turns on one
// processor, and a barrier is where they do.
#pragma once
#include <cmath>

#define PLUMBLINE_HOST
#define KERNEL(threads) extern "C" void
#define KERNEL_TWICE(threads) extern "C" void
#define DEVICE [[maybe_unused]] static inline
#define CALLED [[maybe_unused]] static
#define SHARED
#define UNROLL

namespace fake {
struct Where {
	int thread, threads, block_x, block_y, blocks_x;
};
extern Where where;
void barrier();
} // namespace fake

#define THREAD (fake::where.thread)
#define THREADS (fake::where.threads)
#define BLOCK_X (fake::where.block_x)
#define BLOCK_Y (fake::where.block_y)
#define BLOCKS_X (fake::where.blocks_x)
#define BARRIER() fake::barrier()

[[maybe_unused]] static inline float exp2_approx(float x) { return std::exp2(x); }
[[maybe_unused]] static inline void add_double(double *at, double v) { *at += v; }

struct Four {
	float x, y, z, w;
};
[[maybe_unused]] static inline Four load4(const float *shared) { return {shared[0], shared[1], shared[2], shared[3]}; }
