// Streams, events and graphs. Nothing that is put in a stream runs before somebody waits for it, so that a caller which
// reads a result or reuses a buffer too early sees it.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

namespace fake {
struct Stream;

struct Event {
	Stream *stream = nullptr;
	uint64_t recorded = 0, reached = 0;
};

struct Op {
	std::function<void()> run;
	Event *wait = nullptr, *record = nullptr;
	uint64_t ticket = 0;
};

struct Graph {
	std::vector<Op> ops;
};

inline int nested = 0; // streams that wait for another one while it runs

struct Stream {
	std::deque<Op> ops;
	Graph *capture = nullptr;

	void put(Op op) {
		if (capture)
			capture->ops.push_back(std::move(op));
		else
			ops.push_back(std::move(op));
	}
	// Whether launches are left that come before anything that waits for a stream.
	bool works(const Stream *other) const {
		for (const Op &op : ops) {
			if (op.wait && op.wait->stream == other && op.wait->reached < op.ticket) return false;
			if (op.run) return true;
		}
		return false;
	}
	// Runs what was put in, up to where the event is reached (all, without one).
	void drain(Event *until = nullptr, uint64_t ticket = 0) {
		while (!ops.empty() && !(until && until->reached >= ticket)) {
			Op op = std::move(ops.front());
			ops.pop_front();
			if (op.wait && op.wait->reached < op.ticket) nested++, op.wait->stream->drain(op.wait, op.ticket), nested--;
			if (op.run) op.run();
			if (op.record) op.record->reached = op.ticket;
		}
	}
};
} // namespace fake
