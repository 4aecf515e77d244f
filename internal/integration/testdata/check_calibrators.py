"""Compares every calibrator in a directory with its ONNX model in onnxruntime and with examples/calibrate/calibrate.py.

For each NAME.json there are NAME.onnx, NAME.logits (float32, little-endian, K in NAME.json's "classes"), NAME.probs and,
with its correction of the top confidence, NAME.top (float64).
Prints one JSON object: name -> the largest differences.
"""
import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, sys.argv[2])
from calibrate import calibrate, correct  # noqa: E402

out = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    case = json.loads(path.read_text())
    read = lambda kind, of: np.fromfile(path.with_suffix(kind), of).reshape(-1, case["classes"])
    z, want, top = read(".logits", "<f4"), read(".probs", "<f8"), read(".top", "<f8")
    model = onnx.load(path.with_suffix(".onnx"))
    onnx.checker.check_model(model, full_check=True)
    meta = {m.key: m.value for m in model.metadata_props}
    assert json.loads(meta["plumbline.calibrator"]) == case["calibrator"], path
    session = onnxruntime.InferenceSession(str(path.with_suffix(".onnx")), providers=["CPUExecutionProvider"])
    (got,) = session.run(["probabilities"], {"logits": z})
    bad = z.copy()
    bad[0, 0] = np.nan
    (one,) = session.run(["probabilities"], {"logits": bad})
    ours = calibrate(case["calibrator"], z)
    out[path.stem] = {
        "onnx": float(np.abs(got - want).max()),
        "python": float(max(np.abs(ours - want).max(), np.abs(correct(case["top"], ours) - top).max())),
        "nan": bool(np.isnan(one[0]).all() and not np.isnan(one[1:]).any()),
        "rows": len(z),
    }
print(json.dumps(out))
