"""A reference external trainer: takes the place of plumbline's own recipes (trainer.command), with PyTorch.

    trainer:
      command: [python3, examples/external-trainer/train.py]

`plumbline trainer` runs it with the path of job.json as the last argument. What a script for whole networks changes is
the part between `rows` and `finish`: where its rows come from, and what it trains. The contract around it stays:

  - job.json names the request, the rows (.npz), the head that serves, an empty directory for the result, and a work
    directory that stays between attempts;
  - standard input is open for as long as the job is wanted;
  - a line of standard output that is a JSON object with "progress" tells how far the work is;
  - exit code 0 with a result, anything else for a failed attempt. The result is head.safetensors, then report.json.
"""

import io
import json
import os
import pathlib
import struct
import sys
import threading

import numpy as np
import torch
from torch import nn

EPOCHS, BATCH, RATE, MOMENTUM, DECAY = 40, 128, 0.1, 0.9, 5e-4


def read_safetensors(path):
    """The tensors of a file by name: 8 bytes of length, a JSON header, the values."""
    data = pathlib.Path(path).read_bytes()
    (n,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + n])
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        if t["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {t['dtype']}, allowed is F32")
        a, b = t["data_offsets"]
        out[name] = torch.from_numpy(np.frombuffer(data[8 + n + a : 8 + n + b], "<f4").reshape(t["shape"]).copy())
    return out


def write_safetensors(path, tensors):
    header, blobs, at = {}, [], 0
    for name, t in tensors.items():
        blob = t.detach().cpu().numpy().astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(t.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    replace(path, struct.pack("<Q", len(text)) + text + b"".join(blobs))


def replace(path, data):
    """A file is there whole or not at all."""
    temporary = f"{path}.tmp"
    with open(temporary, "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
    os.replace(temporary, path)


def save(path, state):
    text = io.BytesIO()
    torch.save(state, text)
    replace(path, text.getvalue())


def load(path):
    """A checkpoint; None where there is none, or none that can be read: then the training begins again."""
    try:
        return torch.load(path, weights_only=False)
    except FileNotFoundError:
        return None
    except Exception as e:
        print(f"{path}: {e}: begin again", file=sys.stderr)
        return None


def rows(path):
    with np.load(path) as z:
        return torch.from_numpy(z["features"]), torch.from_numpy(z["labels"].astype("i8"))


def measure(head, x, y):
    with torch.no_grad():
        z = head(x)
    return {"nll": nn.functional.cross_entropy(z, y).item(), "accuracy": (z.argmax(1) == y).double().mean().item()}


def temperature(head, x, y):
    """The best temperature of the rows, by golden-section search over its logarithm."""
    with torch.no_grad():
        z = head(x).double()
    nll = lambda s: nn.functional.cross_entropy(z * np.exp(-s), y).item()
    lo, hi, g = np.log(0.05), np.log(20), (np.sqrt(5) - 1) / 2
    for _ in range(60):
        a, b = hi - g * (hi - lo), lo + g * (hi - lo)
        lo, hi = (lo, b) if nll(a) < nll(b) else (a, hi)
    return float(np.exp((lo + hi) / 2))


def give_up_with_parent():
    """Ends this process when the trainer that asked is gone."""

    def watch():
        while os.read(0, 4096):  # not sys.stdin, whose lock would be held when this process ends by itself
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def main(job_file):
    give_up_with_parent()
    job = json.loads(pathlib.Path(job_file).read_text())
    request, work = job["request"], pathlib.Path(job["work"])
    torch.manual_seed(request["seed"])
    (x, y), (vx, vy) = rows(job["train"]), rows(job["validation"])
    classes = request["classes"] or int(max(y.max(), vy.max())) + 1
    head = nn.Sequential(nn.Linear(x.shape[1], classes))
    before = None
    if job.get("head"):
        current = read_safetensors(job["head"])
        if {k: v.shape for k, v in current.items()} == {k: v.shape for k, v in head.state_dict().items()}:
            head.load_state_dict(current)
            before = measure(head, vx, vy)
    step = torch.optim.SGD(head.parameters(), lr=RATE, momentum=MOMENTUM, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(step, EPOCHS)
    state = {"epoch": 0, "best": None, "nll": float("inf")}
    checkpoint = work / "checkpoint.pt"
    saved = load(checkpoint)
    if saved:
        state = saved["state"]
        head.load_state_dict(saved["head"])
        step.load_state_dict(saved["step"])
        schedule.load_state_dict(saved["schedule"])
        torch.set_rng_state(saved["rng"])
    while state["epoch"] < EPOCHS:
        order = torch.randperm(len(y))
        for at in range(0, len(y), BATCH):
            pick = order[at : at + BATCH]
            step.zero_grad()
            nn.functional.cross_entropy(head(x[pick]), y[pick]).backward()
            step.step()
        schedule.step()
        now = measure(head, vx, vy)
        state["epoch"] += 1
        if now["nll"] < state["nll"]:
            state["nll"], state["best"] = now["nll"], {k: v.clone() for k, v in head.state_dict().items()}
        save(checkpoint, {"state": state, "head": head.state_dict(), "step": step.state_dict(), "schedule": schedule.state_dict(), "rng": torch.get_rng_state()})
        print(json.dumps({"progress": state["epoch"] / EPOCHS, "step": f"epoch {state['epoch']}", "nll": now["nll"]}), flush=True)
    if state["best"] is None:
        sys.exit("no epoch has a finite validation NLL: the training diverged")
    head.load_state_dict(state["best"])
    finish(job, head, before, vx, vy)


def finish(job, head, before, vx, vy):
    """Divides the logits by the best temperature and writes the result, the report last."""
    t = temperature(head, vx, vy)
    with torch.no_grad():
        for p in head[-1].parameters():
            p /= t
    after = measure(head, vx, vy)
    better = before is None or after["nll"] < before["nll"]
    if better:
        write_safetensors(os.path.join(job["result"], "head.safetensors"), head.state_dict())
    report = {
        "outcome": "trained" if better else "unchanged",
        "why": f"PyTorch {torch.__version__}: validation NLL {after['nll']:.4f}, accuracy {after['accuracy']:.4f} of {len(vy)} rows",
        "evidence": {"before": before, "after": after, "temperature": t, "rows": {"validation": len(vy)}},
    }
    replace(os.path.join(job["result"], "report.json"), json.dumps(report).encode())


if __name__ == "__main__":
    main(sys.argv[-1])
