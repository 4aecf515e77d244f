// The kernels by name, as the PTX has them.
#pragma once
#include <limits>
#include "ptx.h"

namespace fake {
#include PTX_INCLUDE

// Copies the arguments of a launch and returns what runs the kernel once a thread.
inline std::function<void()> bind(const Kernel *k, void **args) {
	std::vector<u64> raw;
	for (size_t i = 0; i < k->sizes.size(); i++) {
		raw.push_back(0);
		memcpy(&raw[i], args[i], k->sizes[i]);
	}
	return [k, raw] { k->run(raw.data()); };
}

inline Kernels &kernels() {
	static Kernels all = (reached.resize(last_line + 1), table());
	return all;
}
} // namespace fake
