// All kernels of the backend, one translation unit; `make ptx` compiles it to kernels.ptx, which is what the driver gets.
#include "gemm.h"
#include "step.h"
#include "au.h"
