"""Runs a head's ONNX model in onnxruntime and its safetensors in NumPy; prints the largest differences from Go's logits.

DIR holds head.onnx, head.safetensors, features and logits (float32, little-endian).
"""
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from safetensors import safe_open

d, temperature = pathlib.Path(sys.argv[1]), float(sys.argv[2])
with safe_open(d / "head.safetensors", framework="numpy") as f:
    t = {name: f.get_tensor(name) for name in f.keys()}
    meta = f.metadata()
x = np.fromfile(d / "features", "<f4").reshape(-1, t["0.weight"].shape[1])
want = np.fromfile(d / "logits", "<f4").reshape(len(x), -1)
onnx.checker.check_model(onnx.load(d / "head.onnx"), full_check=True)
session = onnxruntime.InferenceSession(str(d / "head.onnx"), providers=["CPUExecutionProvider"])
logits, probs = session.run(["logits", "probabilities"], {"features": x})
z = np.maximum(x @ t["0.weight"].T + t["0.bias"], 0) @ t["2.weight"].T + t["2.bias"]
e = np.exp((want.astype(np.float64) - want.max(axis=1, keepdims=True)) / temperature)
p = e / e.sum(axis=1, keepdims=True)
print(json.dumps({"onnx": float(np.abs(logits - want).max()), "safetensors": float(np.abs(z - want).max()),
                  "probabilities": float(np.abs(probs - p).max()), "meta": meta}))
