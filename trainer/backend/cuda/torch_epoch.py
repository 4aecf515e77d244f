"""Epochs of the same size in PyTorch on a GPU, eager and compiled: what BenchmarkEpoch is compared with.

python torch_epoch.py ROWS FEATURES CLASSES BATCH

A line has a name and milliseconds an epoch, the least of five.
"""
import sys
import time

import torch

rows, features, classes, batch = map(int, sys.argv[1:5])
x = torch.rand(rows, features, device="cuda", dtype=torch.float16) - 0.5
y = torch.randint(classes, (rows,), device="cuda")


def epoch(step, order):
    total = torch.zeros((), device="cuda")
    for i in range(0, rows - batch + 1, batch):
        total += step(order[i : i + batch])
    torch.cuda.synchronize()
    return total.item()


def trainer(compiled, bf16):
    head = torch.nn.Linear(features, classes, device="cuda")
    sgd = torch.optim.SGD(head.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4, fused=True)

    def loss_of(which):
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=bf16):
            return torch.nn.functional.cross_entropy(head(x[which].float()), y[which])

    forward = torch.compile(loss_of) if compiled else loss_of

    def step(which):
        sgd.zero_grad(set_to_none=True)
        loss = forward(which)
        loss.backward()
        sgd.step()
        return loss.detach()

    return step


print("# PyTorch", torch.__version__, torch.cuda.get_device_name())
for name, compiled, tf32, bf16 in (
    ("eager_fp32", False, False, False),
    ("eager_tf32", False, True, False),
    ("eager_bf16", False, False, True),
    ("compiled_fp32", True, False, False),
    ("compiled_tf32", True, True, False),
    ("compiled_bf16", True, False, True),
):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    step = trainer(compiled, bf16)
    order = torch.randperm(rows, device="cuda")
    epoch(step, order)  # compiles, and fills caches
    times = []
    for _ in range(5):
        start = time.perf_counter()
        epoch(step, order)
        times.append(time.perf_counter() - start)
    print(f"{name} {1e3 * min(times):.1f}", flush=True)
