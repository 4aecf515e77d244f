"""NannyML's CBPE on the corrupted images: cbpe.py DATA OUT writes OUT/cbpe.json, estimated accuracy by array of logits.

The reference is the even clean rows, what is estimated the odd rows of every array, in one chunk; probabilities are softmax of
the logits, which CBPE calibrates on the reference by itself.
"""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

warnings.filterwarnings("ignore")


def frame(z, y=None):
    p = np.exp(z - z.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    d = pd.DataFrame({f"p{k}": p[:, k] for k in range(p.shape[1])})
    d["predicted"] = p.argmax(1).astype(str)
    if y is not None:
        d["label"] = y.astype(str)
    return d


def main():
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # it reports its use over the network otherwise, from the import on
    import nannyml

    z = np.load(Path(sys.argv[1]) / "c10jpeg_resnet_logits.npz")
    y = z["test_labels"]
    estimator = nannyml.CBPE(
        y_pred_proba={str(k): f"p{k}" for k in range(10)}, y_pred="predicted", y_true="label",
        problem_type="classification_multiclass", metrics=["accuracy"], chunk_number=1,
    )
    estimator.fit(frame(z["resnet20"][0::2], y[0::2]))
    out = {}
    for name in z.files:
        if name.startswith("resnet20"):
            result = estimator.estimate(frame(z[name][1::2])).filter(period="analysis").to_df()
            out[name] = float(result[("accuracy", "value")].iloc[0])
    (Path(sys.argv[2]) / "cbpe.json").write_text(json.dumps(out))
    print(out, file=sys.stderr)


if __name__ == "__main__":
    main()
