"""Real streams scored by a model that never learns again: frozen.py DATA OUT writes OUT/frozen.json and arrays beside it.

INSECTS, gas sensors, elec2: a multi-layer perceptron is trained on the first 15 % of the rows in time order, its top-label
confidence calibrated by isotonic regression on the next 5 % (clipped to [0.01, 0.99]), and what follows is the stream. Dated
forecasts: the favourite's published probability, as it is, in order of dates. Two arrays each, c<i>.npy of float32 and a<i>.npy of uint8.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.isotonic import IsotonicRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

SETS = {"INSECTS, gradual": "drift_insects_gradual_bal", "gas sensors": "drift_gas_sensor_b1-6_8_9", "elec2": "drift_elec2"}
LEAGUES = ("mlb", "nba", "nfl", "nhl")


def scored(x, y):
    """Calibrated confidence and outcome of the rows after the first fifth."""
    n = len(y)
    train, cal = slice(0, int(0.15 * n)), slice(int(0.15 * n), int(0.2 * n))
    model = make_pipeline(StandardScaler(), MLPClassifier((64,), max_iter=200, early_stopping=True, random_state=0))
    model.fit(x[train], y[train])
    p = model.predict_proba(x)
    c, right = p.max(1), model.classes_[p.argmax(1)] == y
    iso = IsotonicRegression(y_min=0.01, y_max=0.99, out_of_bounds="clip").fit(c[cal], right[cal])
    rest = slice(cal.stop, n)
    return iso.predict(c[rest]), right[rest]


def main():
    data, out = Path(sys.argv[1]), Path(sys.argv[2])
    streams = []
    for name, file in SETS.items():
        z = np.load(data / f"{file}.npz", allow_pickle=False)
        x = z["X"].astype(np.float64)
        if name == "elec2":
            x = x[:, 1:]  # the date: a model that learned it extrapolates
        streams.append((name, *scored(x, z["y"])))
    z = np.load(data / "forecasts_538_games.npz", allow_pickle=False)
    for league in LEAGUES:
        order = np.argsort(z[f"{league}_games_day"], kind="stable")
        p, y = z[f"{league}_games_p1"][order].astype(float), z[f"{league}_games_y1"][order]
        streams.append((f"forecasts, {league.upper()}", np.maximum(p, 1 - p), (p >= 0.5) == (y == 1)))
    listed = []
    for i, (name, c, right) in enumerate(streams):
        files = f"frozen-c{i}.npy", f"frozen-a{i}.npy"
        np.save(out / files[0], c.astype(np.float32)[None, :])
        np.save(out / files[1], np.asarray(right, dtype=np.uint8)[None, :])
        listed.append({"group": "real streams", "name": name, "rows": len(c), "runs": 1, "change": 0, "bounded": False,
                       "confidence": files[0], "right": files[1]})
        print(f"{name}: {len(c)} rows, accuracy {np.mean(right):.3f}, mean confidence {np.mean(c):.3f}", file=sys.stderr)
    (out / "frozen.json").write_text(json.dumps(listed))


if __name__ == "__main__":
    main()
