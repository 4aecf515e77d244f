// The kernels by name, with their arguments unpacked from what cuLaunchKernel gets.
#pragma once
#include "threads.h"
// In this order: the kernels are compiled as they are, with the names of host.h.
#include "../../kernels/kernels.cu"
#include <cstring>
#include <map>
#include <string>
#include <tuple>

namespace fake {
struct Kernel {
	// Copies the arguments and returns what runs the kernel once a thread.
	std::function<std::function<void()>(void **)> bind;
	int most; // threads a block
};

template <class... A, size_t... I>
std::function<void()> unpack(void (*f)(A...), void **args, std::index_sequence<I...>) {
	std::tuple<A...> values;
	(memcpy(&std::get<I>(values), args[I], sizeof(A)), ...);
	return [f, values] { std::apply(f, values); };
}

template <class... A> Kernel kernel(void (*f)(A...), int most) {
	return {[f](void **args) { return unpack(f, args, std::index_sequence_for<A...>{}); }, most};
}

inline std::map<std::string, Kernel> &kernels() {
#define ENTRY(name, most) {#name, kernel(name, most)}
	static std::map<std::string, Kernel> table = {
		ENTRY(gemm_nn, 256), ENTRY(gemm_nt, 256), ENTRY(gemm_tn, 256), ENTRY(features, 256), ENTRY(labels, 256),
		ENTRY(masked, 256), ENTRY(scaled, 256), ENTRY(biased, 256), ENTRY(relu_back, 256), ENTRY(column_sums, 1024),
		ENTRY(update, 256), ENTRY(sums, 256), ENTRY(row_losses, 256), ENTRY(row_hits, 256), ENTRY(row_measures, 256),
		ENTRY(au_scores, 256), ENTRY(au_ranks, 256), ENTRY(au_weights, 256), ENTRY(au_counts, 256),
		ENTRY(au_normalise, 256), ENTRY(split, 256)};
#undef ENTRY
	return table;
}
} // namespace fake
