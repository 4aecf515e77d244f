"""The calibrators of plumbline in Python: probabilities = calibrate(json.load(open("cal.json")), logits), logits N x K.

A reference for those who apply a calibrator in a language of their own. A record of the topic plumbline.calibrators has
the same object under "calibrator".
"""
import numpy as np


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def calibrate(c, z):
    z, k, m, p = np.asarray(z, np.float64), np.shape(z)[1], c["method"], c.get("params", {})
    a = {name: np.asarray(v) for name, v in p.items() if isinstance(v, list)}
    if m == "identity": return softmax(z)
    if m == "temperature": return softmax(z / c["temperature"])
    if m == "ensemble_temperature": return p["weights"][0] * softmax(z / p["temperature"]) + p["weights"][1] * softmax(z) + p["weights"][2] / k
    if m == "class_temperature": return softmax(z / a["temperatures"])
    if m == "vector": return softmax(z * a["w"] + a["b"])
    if m == "matrix": return softmax(z @ a["w"].reshape(k, k).T + a["b"])
    if m == "dirichlet":
        s = z - z.max(axis=1, keepdims=True)
        return softmax((s - np.log(np.exp(s).sum(axis=1, keepdims=True))) @ a["w"].reshape(k, k).T + a["b"])
    if m == "parameterised_temperature":
        top = -np.sort(-z, axis=1)[:, :p["top"]]
        h = np.tanh(np.maximum(top[:, 1:] - top[:, :1], -100) @ a["w1"].reshape(p["hidden"], -1).T + a["b1"])
        out = np.tanh(h @ a["w2"].reshape(p["hidden"], -1).T + a["b2"]) @ a["w3"] + p["b3"]
        return softmax(z / np.exp(np.log(.05) + np.log(400) / (1 + np.exp(-out)))[:, None])
    if m == "intra_order_preserving":
        g, s, x = z.max(axis=1, keepdims=True) - z, a["slopes"], a["knots"]
        j = np.searchsorted(x, g, side="right") - 1
        at = np.concatenate([[0], np.cumsum((s[:-1] + s[1:]) / 2 * np.diff(x))])
        bend = np.concatenate([np.diff(s) / (2 * np.diff(x)), [0]])
        return softmax(-(at[j] + (g - x[j]) * (s[j] + bend[j] * (g - x[j]))))
    if m == "metacal":
        q = softmax(z)
        h = -(q * np.log(np.maximum(q, 1e-300))).sum(axis=1, keepdims=True)
        return np.where(h <= p["threshold"], calibrate(p["base"], z), 1 / k)
    if m == "class_weights":
        q = calibrate(p["base"], z) * a["weights"]
        return q / q.sum(axis=1, keepdims=True)
    q, y = softmax(z), np.arange(k) == z.argmax(axis=1)[:, None]  # the rest change the confidence of the top class
    conf, log = q.max(axis=1), lambda v: np.log(np.maximum(v, 2.0**-53))
    platt = lambda v: 1 / (1 + np.exp(-(p["slope"] * (log(v) - log(1 - v)) + p["intercept"])))
    binned = lambda v: a["values"][np.clip(np.searchsorted(a["edges"], v) - 1, 0, len(a["values"]) - 1)]
    conf = {"platt": lambda: platt(conf), "beta": lambda: 1 / (1 + np.exp(-(p["a"] * log(conf) - p["b"] * log(1 - conf) + p["m"]))),
            "isotonic": lambda: np.interp(conf, a["x"], a["v"]), "spline": lambda: np.interp(conf, a["confidences"], a["values"]),
            "histogram": lambda: binned(conf), "scaling_binning": lambda: binned(platt(conf))}[m]()[:, None]
    return np.where(y, conf, (1 - conf) * softmax(np.where(y, -np.inf, z)))
