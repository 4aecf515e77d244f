// Runs the threads of a block as coroutines, one after the other up to each barrier.
#pragma once
#include "host.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <ucontext.h>
#include <vector>

namespace fake {
Where where;

class Block {
  public:
	// Runs f once a thread. False: some threads left while others waited at a barrier, which on a device is undefined.
	bool run(int threads, bool backwards, const std::function<void()> &f) {
		while ((int)fibers.size() < threads) fibers.push_back(make());
		body = &f;
		int waiting = threads;
		for (int i = 0; i < threads; i++) fibers[i]->done = false;
		while (waiting > 0) {
			int left = 0;
			for (int i = 0; i < threads; i++) {
				int t = backwards ? threads - 1 - i : i;
				where.thread = t;
				resume(t);
				left += !fibers[t]->done;
			}
			if (left != 0 && left != threads) return false;
			waiting = left;
		}
		return true;
	}
	void pause() {
		if (_setjmp(current->at) == 0) _longjmp(home, 1);
	}

  private:
	struct Fiber {
		ucontext_t context;
		jmp_buf at;
		bool started, done;
	};
	static constexpr size_t stack = 64 << 10;
	std::vector<Fiber *> fibers;
	Fiber *current = nullptr;
	const std::function<void()> *body = nullptr;
	jmp_buf home;
	static Block *self;

	static Fiber *make() {
		auto *f = new Fiber{};
		getcontext(&f->context);
		f->context.uc_stack.ss_sp = malloc(stack);
		f->context.uc_stack.ss_size = stack;
		makecontext(&f->context, (void (*)())loop, 0);
		return f;
	}
	static void loop() {
		for (;;) {
			(*self->body)();
			self->current->done = true;
			self->pause();
		}
	}
	void resume(int t) {
		self = this;
		current = fibers[t];
		if (_setjmp(home) != 0) return;
		if (current->started) _longjmp(current->at, 1);
		current->started = true;
		setcontext(&current->context);
	}
};
inline Block *Block::self = nullptr;
inline Block block;
void barrier() { block.pause(); }
} // namespace fake
