// What the translated PTX calls: instructions that C++ has no operator for, and memory, whose every access is checked
// for bounds, alignment, races and words that nobody has written. One instruction of the text, found by its line, can be
// changed, so that tests can be shown to notice.
#pragma once
#include "memory.h"
#include "threads.h"
#include <cmath>
#include <type_traits>

namespace fake {
typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t i16;
typedef uint32_t u32;
typedef int32_t i32;
typedef uint64_t u64;
typedef int64_t i64;

struct Span {
	u64 at, n;
};
struct Kernel {
	std::string name;
	void (*run)(const u64 *);
	int most; // threads a block
	std::vector<int> sizes;    // of the parameters
	std::vector<Span> shared;
};
typedef std::map<std::string, Kernel> Kernels;

enum { global, generic, shared, local };

inline Memory device, pinned;
inline const Kernel *running;
inline u64 launch = 0, blocks_run = 0; // numbers of this launch and this block

// The instruction that is changed, and how.
enum { AS_IT_IS, CHANGED, REMOVED, BOUNDARY };
inline struct {
	int line, how;
} mutant;
inline std::vector<u8> reached; // by line

static inline bool mutated(int line, int how) { return __builtin_expect(mutant.line == line, 0) && mutant.how == how; }

template <class To, class From> static inline To bits_as(From v) {
	static_assert(sizeof(To) == sizeof(From));
	return __builtin_bit_cast(To, v);
}
static inline float float_of(u32 b) { return bits_as<float>(b); }
static inline double double_of(u64 b) { return bits_as<double>(b); }
template <class T> static inline T raw_as(u64 raw) {
	T v;
	return memcpy(&v, &raw, sizeof v), v;
}
template <class T> static inline u64 raw_of(T v) {
	u64 raw = 0;
	return memcpy(&raw, &v, sizeof v), raw;
}
// What a register holds that was never set.
template <class T> static inline T poison() {
	if constexpr (std::is_same_v<T, bool>) return false;
	else return raw_as<T>(0xfffffffffffffff1ull);
}

static inline int thread_x() { return where.thread; }
static inline int threads_x() { return where.threads; }
static inline int block_x() { return where.block_x; }
static inline int block_y() { return where.block_y; }
static inline int blocks_x() { return where.blocks_x; }

template <class T> static inline T shifted_left(T v, u32 n) { return n < sizeof(T) * 8 ? v << n : 0; }
template <class T> static inline T shifted_right(T v, u32 n) {
	constexpr u32 most = sizeof(T) * 8 - 1;
	return n <= most ? v >> n : std::is_signed_v<T> ? v >> most : 0;
}
template <class T> static inline T larger(T a, T b) { return a > b ? a : b; }
template <class T> static inline auto widened(T a, T b) {
	typedef std::conditional_t<sizeof(T) == 2, u32, std::conditional_t<std::is_signed_v<T>, i64, u64>> Wide;
	return (std::make_unsigned_t<Wide>)((Wide)a * (Wide)b);
}
// NaN is 0, and what is too large the largest.
template <class To, class From> static inline To toward_zero(From v) {
	constexpr From low = std::numeric_limits<To>::min(), high = std::numeric_limits<To>::max();
	return v != v ? 0 : v <= low ? std::numeric_limits<To>::min() : v >= high ? std::numeric_limits<To>::max() : (To)v;
}

template <class T> static inline T fma_at(int line, T a, T b, T c) {
	reached[line] = 1;
	if (mutated(line, CHANGED)) return c - a * b;
	if (mutated(line, REMOVED)) return c;
	if constexpr (sizeof(T) == 4) return __builtin_fmaf(a, b, c);
	else return __builtin_fma(a, b, c);
}
static inline bool setp(int line, bool v, bool moved) {
	reached[line] = 1;
	if (__builtin_expect(mutant.line != line, 1)) return v;
	return mutant.how == CHANGED ? !v : mutant.how == REMOVED ? false : mutant.how == BOUNDARY ? moved : v;
}
static inline void bar(int line) {
	reached[line] = 1;
	if (!mutated(line, REMOVED)) block.pause(line);
}
// A thread goes back in the text.
static inline void back(int line) {
	if (--block.left < 0) block.fail(line, "runs for too long");
}
// Whether an access happens, and where.
static inline bool goes(int line) {
	reached[line] = 1;
	return !mutated(line, REMOVED);
}
static inline u64 moved(int line, u64 at, u64 size) { return mutated(line, CHANGED) ? at + size : at; }

// Memory that all threads of a block share.
inline struct {
	alignas(16) u8 bytes[64 << 10];
	Word words[(64 << 10) / 4];
} window;

// Whether an earlier access is over for sure before the present one.
static inline bool ordered(const Access &a, u64 number, int of) {
	return a.launch != number || (a.block == of && (a.interval < block.interval || a.thread == where.thread));
}

enum { MANY = -1 };

// Notes an access to a word, and complains of races.
static inline void touch(int line, Word *w, Access now, bool writes, bool same) {
	auto race = [&](const Access &a, const char *what) {
		bool apart = a.bytes && now.bytes && !(a.bytes & now.bytes);
		if (apart || (a.atomic && now.atomic) || ordered(a, now.launch, now.block)) return;
		block.fail(line, "race with %s of thread %d of block %d", what, a.thread, a.block);
	};
	if (!same || w->write.block == now.block) race(w->write, "a write");
	if (writes) {
		race(w->read, "a read");
		w->write = now, w->set = true;
		return;
	}
	if (!ordered(w->read, now.launch, now.block)) {
		if (w->read.block != now.block) now.block = MANY;
		now.thread = MANY, now.bytes |= w->read.bytes;
	}
	w->read = now;
}

static inline u8 bytes_of(u64 at, size_t n) { return n >= 4 ? 15 : ((1 << n) - 1) << (at & 3); }

// The allocation that has an address, with the last one that each line found at hand.
static inline Piece *piece(int line, u64 at, size_t n) {
	static std::vector<Piece *> last;
	static int generation = 0;
	if (generation != device.generation) last.assign(reached.size(), nullptr), generation = device.generation;
	Piece *p = last[line];
	if (p && at - p->at < p->n && n <= p->n - (at - p->at)) return p;
	if (!(p = device.find(at, n))) block.fail(line, "%zu bytes at %#lx: outside of every allocation", n, at);
	return last[line] = p;
}

// Bounds and alignment of an access to so many numbers.
template <class T, int count, int space> static inline void check(int line, u64 at) {
	constexpr size_t n = count * sizeof(T);
	if (at % n) block.fail(line, "%zu bytes at %#lx: not aligned", n, at);
	if (space == shared) {
		for (const Span &s : running->shared)
			if (at - s.at < s.n && n <= s.n - (at - s.at)) return;
		block.fail(line, "%zu bytes at %lu: outside of shared memory", n, at);
	}
	if (space == local && !block.local(at, n)) block.fail(line, "%zu bytes at %#lx: outside of local memory", n, at);
}

template <class T, int space> static inline T load(int line, u64 at) {
	T v;
	if (space == shared) {
		for (u64 a = at; a < at + sizeof(T); a += 4) {
			Word *w = &window.words[a / 4];
			if (w->write.launch != blocks_run) block.fail(line, "shared memory at %lu is read, and nobody has written it", a);
			touch(line, w, {blocks_run, 0, where.thread, block.interval, 15, false}, false, false);
		}
		return memcpy(&v, window.bytes + at, sizeof v), v;
	}
	if (space != local && !(space == generic && block.local(at, sizeof(T)))) {
		Piece *p = piece(line, at, sizeof(T));
		for (u64 a = at; a < at + sizeof(T); a += 4) {
			Word *w = &p->words[(a - p->at) / 4];
			if (!w->set) block.fail(line, "memory is read, and nobody has written it: %lu bytes into %zu", a - p->at, p->n);
			touch(line, w, {launch, where.block(), where.thread, block.interval, bytes_of(a, sizeof(T)), false}, false, false);
		}
	}
	return memcpy(&v, (void *)at, sizeof v), v;
}

template <class T, int space> static inline void store(int line, u64 at, T v) {
	if (space == shared) {
		for (u64 a = at; a < at + sizeof(T); a += 4)
			touch(line, &window.words[a / 4], {blocks_run, 0, where.thread, block.interval, 15, false}, true, false);
		memcpy(window.bytes + at, &v, sizeof v);
		return;
	}
	if (space != local && !(space == generic && block.local(at, sizeof(T)))) {
		Piece *p = piece(line, at, sizeof(T));
		// Blocks may set a flag to the same.
		bool same = memcmp((void *)at, &v, sizeof v) == 0;
		for (u64 a = at; a < at + sizeof(T); a += 4)
			touch(line, &p->words[(a - p->at) / 4],
				{launch, where.block(), where.thread, block.interval, bytes_of(a, sizeof(T)), false}, true, same);
	}
	memcpy((void *)at, &v, sizeof v);
}

template <class T> static inline T atomic_add(int line, u64 at, T v) {
	check<T, 1, global>(line, at);
	Piece *p = piece(line, at, sizeof(T));
	for (u64 a = at; a < at + sizeof(T); a += 4)
		touch(line, &p->words[(a - p->at) / 4], {launch, where.block(), where.thread, block.interval, 15, true}, true, false);
	T old;
	memcpy(&old, (void *)at, sizeof old);
	T sum = old + v;
	memcpy((void *)at, &sum, sizeof sum);
	return old;
}
} // namespace fake
