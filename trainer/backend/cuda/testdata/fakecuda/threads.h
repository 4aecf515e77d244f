// Runs the threads of a block as coroutines, one after the other up to each barrier.
#pragma once
#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <ucontext.h>
#include <vector>

namespace fake {
// The thread that runs.
struct Where {
	int thread, threads, block_x, block_y, blocks_x;
	int block() const { return block_y * blocks_x + block_x; }
};
inline Where where;

class Block {
  public:
	int interval = 0;    // barriers so far
	int left = 0;        // what a thread may still go back, so that none runs for ever
	std::string failure; // what was wrong, and the line of the PTX

	// Runs f once a thread; false, with failure set, where a thread failed or barriers do not fit.
	bool run(int threads, bool backwards, const std::function<void()> &f) {
		while ((int)fibers.size() < threads) fibers.push_back(make());
		body = &f, interval = 0, failed = false;
		for (int i = 0; i < threads; i++) fibers[i]->done = false;
		for (;; interval++) {
			int waiting = 0, line = 0;
			for (int i = 0; i < threads && !failed; i++) {
				where.thread = backwards ? threads - 1 - i : i;
				Fiber *one = fibers[where.thread];
				resume(one);
				if (failed || one->done) continue;
				if (waiting++ && one->line != line) wrong("threads wait at the barriers of lines %d and %d", line, one->line);
				line = one->line;
			}
			if (!failed && waiting != 0 && waiting != threads)
				wrong("line %d: %d of %d threads come to a barrier", line, waiting, threads);
			if (failed) {
				for (auto *one : fibers) prepare(one);
				return false;
			}
			if (waiting == 0) return true;
		}
	}
	void pause(int line) {
		current->line = line;
		if (_setjmp(current->at) == 0) _longjmp(home, 1);
	}
	// Ends the thread that runs, and with it the launch.
	[[noreturn, gnu::format(printf, 3, 4)]] void fail(int line, const char *form, ...) {
		char text[300];
		va_list list;
		va_start(list, form);
		vsnprintf(text, sizeof text, form, list);
		va_end(list);
		wrong("line %d, thread %d of block %d: %s", line, where.thread, where.block(), text);
		_longjmp(home, 1);
	}
	// Whether an address is of the local memory of the thread that runs.
	bool local(uint64_t at, size_t n) const {
		return at - (uint64_t)current->context.uc_stack.ss_sp < stack - n;
	}

  private:
	struct Fiber {
		ucontext_t context;
		jmp_buf at;
		int line;
		bool started, done;
	};
	static constexpr size_t stack = 128 << 10;
	std::vector<Fiber *> fibers;
	Fiber *current = nullptr;
	const std::function<void()> *body = nullptr;
	jmp_buf home;
	bool failed = false;
	static Block *self;

	[[gnu::format(printf, 2, 3)]] void wrong(const char *form, ...) {
		char text[400];
		va_list list;
		va_start(list, form);
		vsnprintf(text, sizeof text, form, list);
		va_end(list);
		failed = true, failure = text;
	}
	static Fiber *make() {
		auto *f = new Fiber{};
		f->context.uc_stack.ss_sp = malloc(stack);
		prepare(f);
		return f;
	}
	static void prepare(Fiber *f) {
		void *sp = f->context.uc_stack.ss_sp;
		getcontext(&f->context);
		f->context.uc_stack.ss_sp = sp;
		f->context.uc_stack.ss_size = stack;
		f->started = false;
		makecontext(&f->context, (void (*)())loop, 0);
	}
	static void loop() {
		for (;;) {
			(*self->body)();
			self->current->done = true;
			self->pause(0);
		}
	}
	void resume(Fiber *f) {
		self = this;
		current = f;
		if (_setjmp(home) != 0) return;
		if (current->started) _longjmp(current->at, 1);
		current->started = true;
		setcontext(&current->context);
	}
};
inline Block *Block::self = nullptr;
inline Block block;
} // namespace fake
