// Device memory that is strict: each allocation ends at a page that nobody may touch, holds NaNs at first, and is gone
// when freed. Copies must stay inside an allocation, and asynchronous ones need pinned memory on the host. Beside each
// word there is who touched it last, for races.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {
// Who read or wrote: a launch, a block and thread of it, between two of the block's barriers.
struct Access {
	uint64_t launch = 0;
	int block = 0, thread = 0, interval = 0;
	uint8_t bytes = 0; // of the word, a bit each
	bool atomic = false;
};

// Word is what is known of four bytes.
struct Word {
	Access read, write;
	bool set; // since the allocation
};

struct Piece {
	uint64_t at;
	size_t n;
	char *base;
	size_t mapped;
	Word *words;
};

class Memory {
  public:
	size_t limit = (size_t)1 << 40, used = 0;
	int generation = 1; // changes where a piece goes

	uint64_t allocate(size_t n) {
		if (n == 0 || used + n > limit) return 0;
		size_t page = sysconf(_SC_PAGESIZE), size = (n + page - 1) / page * page;
		auto *base = (char *)map(size + page);
		auto *words = (Word *)map((n / 4 + 1) * sizeof(Word));
		if (base == MAP_FAILED || words == MAP_FAILED) return 0;
		mprotect(base + size, page, PROT_NONE);
		// Aligned for what a vector load needs, which leaves up to 15 bytes unguarded.
		char *at = base + size - (n + 15) / 16 * 16;
		memset(at, 0xff, n);
		blocks[(uint64_t)at] = {(uint64_t)at, n, base, size + page, words};
		used += n;
		return (uint64_t)at;
	}
	bool release(uint64_t at) {
		auto it = blocks.find(at);
		if (it == blocks.end()) return false;
		munmap(it->second.base, it->second.mapped);
		munmap(it->second.words, (it->second.n / 4 + 1) * sizeof(Word));
		used -= it->second.n;
		blocks.erase(it);
		generation++;
		return true;
	}
	void clear() {
		while (!blocks.empty()) release(blocks.begin()->first);
	}
	// The piece that has all of n bytes, or null.
	Piece *find(uint64_t at, size_t n) {
		auto it = blocks.upper_bound(at);
		if (it == blocks.begin()) return nullptr;
		Piece *p = &(--it)->second;
		return at - p->at <= p->n && n <= p->n - (at - p->at) ? p : nullptr;
	}
	bool holds(uint64_t at, size_t n) { return find(at, n); }
	// Notes that bytes have got values.
	void set(uint64_t at, size_t n) {
		if (Piece *p = find(at, n))
			for (size_t i = (at - p->at) / 4; i * 4 < at - p->at + n; i++) p->words[i].set = true;
	}
	size_t count() const { return blocks.size(); }

  private:
	static void *map(size_t n) { return mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0); }
	std::map<uint64_t, Piece> blocks;
};
} // namespace fake
