"""The PyTorch side: a head trained by mini-batches, as its users write it, and as fast as its own options make it."""

import time

import torch
import torch.nn.functional as F

# eager: SGD as it is by default; fused: SGD(fused=True), one kernel for all of a step.
KINDS = ("eager", "fused")


def au(z, y, kappa=0.5, nu=0.1, bins=50):
    """AU with detached weights by the maximum probability: docs/math.md, `au`."""
    with torch.no_grad():
        n = z.shape[0]
        g = z.softmax(1).amax(1)
        counts = torch.bincount((g * bins).long().clamp_(max=bins - 1), minlength=bins).to(z.dtype)
        centres = (torch.arange(bins, dtype=z.dtype) + 0.5) / bins
        capped = torch.minimum(g, torch.quantile(g, kappa))
        cdf = torch.sigmoid((capped[:, None] - centres) / nu) @ counts / n
        beta = -torch.log1p(-cdf.clamp(1 / (n + 1), n / (n + 1)))
    return (beta * F.cross_entropy(z, y, reduction="none")).mean()


LOSSES = {"ce": F.cross_entropy, "au": au}


def train(x, y, layers, batch, epochs, loss, keep, shuffle, kind, lr, momentum, decay):
    """Seconds and mean loss of every epoch, from copies of the initial weights."""
    params = [p.clone().requires_grad_() for layer in layers for p in layer]
    optimiser = torch.optim.SGD(params, lr=lr, momentum=momentum, weight_decay=decay, fused=kind == "fused" or None)
    function, seconds, losses = LOSSES[loss], [], []
    for _ in range(epochs):
        start = time.perf_counter()
        total = 0.0
        order = torch.randperm(len(x)) if shuffle else None
        for i in range(0, len(x), batch):
            rows = order[i : i + batch] if shuffle else slice(i, i + batch)
            z, labels = x[rows], y[rows]
            for j in range(0, len(params), 2):
                w = params[j]
                if keep:
                    w = w * torch.empty_like(w).bernoulli_(keep)
                z = F.linear(z, w, params[j + 1])
                if j + 2 < len(params):
                    z = F.relu(z)
            value = function(z, labels)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            total += value.detach() * len(labels)
        losses.append(float(total) / len(x))
        seconds.append(time.perf_counter() - start)
    return seconds, losses
