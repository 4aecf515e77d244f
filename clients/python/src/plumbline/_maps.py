"""The calibrators of plumbline in Python: probabilities = calibrate(json.load(open("cal.json")), logits), logits N x K.

A reference for those who apply a calibrator in a language of their own. A record of the topic plumbline.calibrators has
the same object under "calibrator". correct(top, p) is for the "top" of an answer, and records of the stage top.
"""
import numpy as np


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def calibrate(c, z):
    z, k, m, p = np.asarray(z, np.float64), np.shape(z)[1], c["method"], c.get("params", {})
    a, log = {name: np.asarray(v) for name, v in p.items() if isinstance(v, list)}, lambda v: np.log(np.maximum(v, 2.0**-53))
    q, gap, y = softmax(z), z.max(axis=1, keepdims=True) - z, np.arange(k) == z.argmax(axis=1)[:, None]
    if m in ("identity", "temperature"): return softmax(z / c.get("temperature", 1))
    if m == "ensemble_temperature": return p["weights"][0] * softmax(z / p["temperature"]) + p["weights"][1] * q + p["weights"][2] / k
    if m == "class_temperature": return softmax(z / a["temperatures"])
    if m == "vector": return softmax(z * a["w"] + a["b"])
    if m == "matrix": return softmax(z @ a["w"].reshape(k, k).T + a["b"])
    if m == "dirichlet": return softmax((-gap - np.log(np.exp(-gap).sum(axis=1, keepdims=True))) @ a["w"].reshape(k, k).T + a["b"])
    if m == "class_weights": return (lambda w: w / w.sum(axis=1, keepdims=True))(calibrate(p["base"], z) * a["weights"])
    if m == "metacal": return np.where(-(q * np.log(np.maximum(q, 1e-300))).sum(axis=1, keepdims=True) <= p["threshold"], calibrate(p["base"], z), 1 / k)
    if m == "parameterised_temperature":
        h = np.tanh(np.maximum(-np.sort(gap, axis=1)[:, 1:p["top"]], -100) @ a["w1"].reshape(p["hidden"], -1).T + a["b1"])
        out = np.tanh(h @ a["w2"].reshape(p["hidden"], -1).T + a["b2"]) @ a["w3"] + p["b3"]
        return softmax(z / np.exp(np.log(.05) + np.log(400) / (1 + np.exp(-out)))[:, None])
    if m == "intra_order_preserving":
        s, x, j = a["slopes"], a["knots"], np.searchsorted(a["knots"], gap, side="right") - 1
        at = np.concatenate([[0], np.cumsum((s[:-1] + s[1:]) / 2 * np.diff(x))])
        bend = np.concatenate([np.diff(s) / (2 * np.diff(x)), [0]])
        return softmax(-(at[j] + (gap - x[j]) * (s[j] + bend[j] * (gap - x[j]))))
    top, platt = q.max(axis=1), lambda v: 1 / (1 + np.exp(-(p["slope"] * (log(v) - log(1 - v)) + p["intercept"])))  # the rest change the top class's confidence
    conf = {"platt": platt, "beta": lambda v: 1 / (1 + np.exp(-(p["a"] * log(v) - p["b"] * log(1 - v) + p["m"]))), "scaling_binning": platt, "histogram": lambda v: v,
            "isotonic": lambda v: np.interp(v, a["x"], a["v"]), "spline": lambda v: np.interp(v, a["confidences"], a["values"])}[m](top)
    conf = (a["values"][np.clip(np.searchsorted(a["edges"], conf) - 1, 0, len(a["values"]) - 1)] if "edges" in a else conf)[:, None]
    return np.where(y, conf, (1 - conf) * softmax(np.where(y, -np.inf, z)))


def correct(top, p):
    p = np.asarray(p, np.float64)
    best, power = p.argmax(axis=1), top.get("power", 1)
    p = p if power == 1 else softmax(power * np.log(np.maximum(p, 2.0**-1074)))
    y = np.arange(p.shape[1]) == best[:, None]
    rest = np.where(y, 0, p)
    slope, intercept = (np.full((len(p), 1), float(top[name])) for name in ("slope", "intercept"))
    for own in top.get("apart", []):  # predicted classes with a map of their own
        rows = best == own["class"]
        slope[rows], intercept[rows] = own["slope"], own["intercept"]
    doubt, second = rest.sum(axis=1, keepdims=True), rest.max(axis=1, keepdims=True) * (1 + 2.0**-20)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(p.max(axis=1, keepdims=True) / doubt)
        at = np.clip(odds, -np.log(9999), np.log(9999))
        x = slope * at + intercept + (odds - at)
        now, others = softmax(np.hstack([x, 0 * x])).T[:, :, None]
        low = now * doubt < second * others  # another class would come out on top
        now, others = np.where(low, second / (doubt + second), now), np.where(low, doubt / (doubt + second), others)
        return np.where(doubt > 0, np.where(y, now, p * others / doubt), p)
