// A stand-in for libcuda.so.1: the part of the driver API that trainer/backend/cuda calls, on host memory, with the
// kernels of the PTX. It is stricter than a driver where that finds mistakes: nothing runs before it is waited for,
// memory has guard pages, every access of a kernel is checked, calls need a current context, asynchronous copies pinned
// memory. fakecuda_set injects faults.
#include "kernels.h"
#include "memory.h"
#include "queue.h"
#include <mutex>
#include <set>

using namespace fake;

namespace {
enum { OK = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NO_DEVICE = 100, INVALID_IMAGE = 200, INVALID_CONTEXT = 201,
	NOT_FOUND = 500, LAUNCH_FAILED = 719, CAPTURE_UNSUPPORTED = 900 };

std::recursive_mutex mutex;
std::set<Stream *> streams;
std::set<std::string> images;
std::map<std::string, long> settings = {{"devices", 1}, {"version", 12040}, {"major", 9}, {"graphs", 1}, {"memory", 1L << 40}};
int sticky = OK; // a failed launch breaks the context, as on a device
thread_local bool current;
int context, retained;
std::string failure; // what broke it
long launches, replays;
long overlapped; // copies to the device that ran while another stream had work of its own left
constexpr int most_back = 1 << 20; // of the threads of a block together

// Every call holds the lock, and most need a current context that no launch has broken.
#define ENTER                                            \
	std::lock_guard<std::recursive_mutex> lock(mutex);   \
	if (!current) return INVALID_CONTEXT;                \
	if (sticky) return sticky

void run(const Kernel *k, const std::function<void()> &thread, int gx, int gy, int threads) {
	launches++, launch++, running = k;
	bool backwards = settings["backwards"];
	for (int i = 0; i < gx * gy && !sticky; i++) {
		int b = backwards ? gx * gy - 1 - i : i;
		where = {0, threads, b % gx, b / gx, gx};
		blocks_run++, block.left = most_back;
		if (block.run(threads, backwards, thread)) continue;
		sticky = LAUNCH_FAILED;
		failure = k->name + ": " + block.failure;
	}
}
} // namespace

extern "C" {
typedef int Result;

void fakecuda_set(const char *key, long value) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	settings[key] = value;
	if (!strcmp(key, "memory")) device.limit = value;
	if (!strcmp(key, "sticky")) sticky = value;
	if (!strcmp(key, "mutant")) mutant.line = value;
	if (!strcmp(key, "how")) mutant.how = value;
}
long fakecuda_get(const char *key) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	if (!strcmp(key, "allocations")) return device.count() + pinned.count();
	if (!strcmp(key, "used")) return device.used;
	if (!strcmp(key, "streams")) return streams.size();
	if (!strcmp(key, "launches")) return launches;
	if (!strcmp(key, "replays")) return replays;
	if (!strcmp(key, "overlapped")) return overlapped;
	return settings[key];
}
// Copies, for each line of the PTX, whether an instruction of it ran since the last call.
void fakecuda_reached(unsigned char *to, long n) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	memcpy(to, reached.data(), std::min((size_t)n, reached.size()));
	std::fill(reached.begin(), reached.end(), 0);
}

Result cuInit(unsigned) { return settings["devices"] ? OK : NO_DEVICE; }
Result cuDriverGetVersion(int *v) { return *v = settings["version"], OK; }
Result cuDeviceGetCount(int *n) { return *n = settings["devices"], OK; }
Result cuDeviceGet(int *d, int i) { return *d = i, i < settings["devices"] ? OK : INVALID_VALUE; }
Result cuDeviceGetName(char *s, int n, int) { return snprintf(s, n, "stand-in device"), OK; }
Result cuDeviceGetAttribute(int *v, int what, int) {
	static const std::map<int, int> h100 = {{16, 132}, {13, 1830000}, {36, 2619000}, {37, 5120}};
	auto it = h100.find(what);
	*v = what == 75 ? settings["major"] : what == 76 ? 0 : it != h100.end() ? it->second : 4;
	return OK;
}
Result cuDevicePrimaryCtxRetain(void **c, int) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	return retained++, *c = &context, OK;
}
// The last to release the context frees what is left, and what broke it is gone with it.
Result cuDevicePrimaryCtxRelease_v2(int) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	if (--retained == 0 && sticky) {
		sticky = OK;
		for (auto *s : streams) delete s;
		streams.clear(), device.clear(), pinned.clear();
	}
	return OK;
}
Result cuCtxSetCurrent(void *c) { return current = c != nullptr, OK; }
Result cuGetErrorName(int e, const char **s) {
	*s = e == OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : e == NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
		: e == LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : e == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND" : "CUDA_ERROR_OTHER";
	return OK;
}
Result cuGetErrorString(int e, const char **s) {
	*s = e == LAUNCH_FAILED && !failure.empty() ? failure.c_str() : "said by the stand-in";
	return OK;
}

Result cuModuleLoadDataEx(void **m, const char *image, unsigned, int *, void **) {
	ENTER;
	if (!strstr(image, ".version")) return INVALID_IMAGE;
	return *m = (void *)images.insert(image).first->c_str(), OK;
}
Result cuModuleUnload(void *) {
	ENTER;
	return OK;
}
Result cuModuleGetFunction(void **f, void *m, const char *name) {
	ENTER;
	auto it = kernels().find(name);
	bool known = it != kernels().end() && strstr((const char *)m, (std::string(".entry ") + name + "(").c_str());
	return known ? (*f = &it->second, OK) : NOT_FOUND;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
	ENTER;
	return *free = device.limit - device.used, *total = device.limit, OK;
}
Result cuMemAlloc_v2(uint64_t *p, size_t n) {
	ENTER;
	return (*p = device.allocate(n)) ? OK : OUT_OF_MEMORY;
}
Result cuMemFree_v2(uint64_t p) {
	ENTER;
	for (auto *s : streams) s->drain();
	return device.release(p) ? OK : INVALID_VALUE;
}
Result cuMemHostAlloc(void **p, size_t n, unsigned) {
	ENTER;
	return (*p = (void *)pinned.allocate(n)) ? OK : OUT_OF_MEMORY;
}
Result cuMemFreeHost(void *p) {
	ENTER;
	return pinned.release((uint64_t)p) ? OK : INVALID_VALUE;
}
Result cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, Stream *s) {
	ENTER;
	if (!device.holds(to, n) || !pinned.holds((uint64_t)from, n)) return INVALID_VALUE;
	return s->put({[=] {
		memcpy((void *)to, from, n), device.set(to, n);
		for (auto *other : streams) overlapped += nested == 0 && other != s && other->works(s);
	}}), OK;
}
Result cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, Stream *s) {
	ENTER;
	if (!device.holds(from, n) || !pinned.holds((uint64_t)to, n)) return INVALID_VALUE;
	return s->put({[=] { memcpy(to, (void *)from, n); }}), OK;
}
Result cuMemsetD8Async(uint64_t to, unsigned char v, size_t n, Stream *s) {
	ENTER;
	if (!device.holds(to, n)) return INVALID_VALUE;
	return s->put({[=] { memset((void *)to, v, n), device.set(to, n); }}), OK;
}

Result cuStreamCreate(Stream **s, unsigned) {
	ENTER;
	return *s = *streams.insert(new Stream).first, OK;
}
Result cuStreamDestroy_v2(Stream *s) {
	ENTER;
	s->drain(), streams.erase(s), delete s;
	return OK;
}
Result cuStreamSynchronize(Stream *s) {
	ENTER;
	if (s->capture) return CAPTURE_UNSUPPORTED;
	return s->drain(), sticky;
}
Result cuStreamWaitEvent(Stream *s, Event *e, unsigned) {
	ENTER;
	return s->put({{}, e, nullptr, e->recorded}), OK;
}
Result cuEventCreate(Event **e, unsigned) { return *e = new Event, OK; }
Result cuEventDestroy_v2(Event *) { return OK; } // Kept: a stream may still wait for it.
Result cuEventRecord(Event *e, Stream *s) {
	ENTER;
	e->stream = s;
	return s->put({{}, nullptr, e, ++e->recorded}), OK;
}
Result cuEventSynchronize(Event *e) {
	ENTER;
	if (e->stream) e->stream->drain(e, e->recorded);
	return sticky;
}

Result cuLaunchKernel(Kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
	Stream *s, void **args, void **) {
	ENTER;
	bool fits = gx > 0 && gy > 0 && gy < 65536 && gz == 1 && bx > 0 && (int)bx <= k->most && by == 1 && bz == 1 && shared == 0;
	if (!fits) return INVALID_VALUE;
	auto thread = bind(k, args);
	return s->put({[=] { run(k, thread, gx, gy, bx); }}), OK;
}

Result cuStreamBeginCapture_v2(Stream *s, int) {
	ENTER;
	if (!settings["graphs"]) return CAPTURE_UNSUPPORTED;
	return s->capture = new Graph, OK;
}
Result cuStreamEndCapture(Stream *s, Graph **g) {
	ENTER;
	*g = s->capture, s->capture = nullptr;
	return *g ? OK : INVALID_VALUE;
}
Result cuGraphInstantiateWithFlags(Graph **exec, Graph *g, unsigned long long) {
	ENTER;
	return *exec = new Graph(*g), OK;
}
Result cuGraphLaunch(Graph *g, Stream *s) {
	ENTER;
	replays++;
	for (auto &op : g->ops) s->put(op);
	return OK;
}
Result cuGraphDestroy(Graph *g) { return delete g, OK; }
Result cuGraphExecDestroy(Graph *g) { return delete g, OK; }
}

#include "fakecublas.h"
