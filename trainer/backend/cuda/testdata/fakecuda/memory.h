// Device memory that is strict: each allocation ends at a page that nobody may touch, holds NaNs at first, and is gone
// when freed. Copies must stay inside an allocation, and asynchronous ones need pinned memory on the host.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace fake {
class Memory {
  public:
	size_t limit = (size_t)1 << 40, used = 0;

	uint64_t allocate(size_t n) {
		if (n == 0 || used + n > limit) return 0;
		size_t page = sysconf(_SC_PAGESIZE), size = (n + page - 1) / page * page;
		auto *base = (char *)mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (base == MAP_FAILED) return 0;
		mprotect(base + size, page, PROT_NONE);
		// Aligned for what a vector load needs, which leaves up to 15 bytes unguarded.
		char *at = base + size - (n + 15) / 16 * 16;
		memset(at, 0xff, n);
		blocks[(uint64_t)at] = {n, base, size + page};
		used += n;
		return (uint64_t)at;
	}
	bool release(uint64_t at) {
		auto it = blocks.find(at);
		if (it == blocks.end()) return false;
		munmap(it->second.base, it->second.mapped);
		used -= it->second.n;
		blocks.erase(it);
		return true;
	}
	bool holds(uint64_t at, size_t n) const {
		auto it = blocks.upper_bound(at);
		if (it == blocks.begin()) return false;
		--it;
		return at - it->first <= it->second.n && n <= it->second.n - (at - it->first);
	}
	size_t count() const { return blocks.size(); }

  private:
	struct Piece {
		size_t n;
		char *base;
		size_t mapped;
	};
	std::map<uint64_t, Piece> blocks;
};
} // namespace fake
