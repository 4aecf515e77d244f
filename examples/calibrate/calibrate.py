"""The calibrators of plumbline in Python: probabilities = calibrate(json.load(open("cal.json")), logits), logits N x K.

A reference for those who apply a calibrator in a language of their own. A record of the topic plumbline.calibrators has
the same object under "calibrator". correct(top, p) is for the "top" of an answer, and records of the stage top.
docs/format.md has the parameters and the formula of each method.
"""
import numpy as np


def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def log(v):
    return np.log(np.maximum(v, 2.0**-53))


# Maps of all classes, of the parameters p and the logits z.


def ensemble_temperature(p, z):
    scaled, plain, uniform = p["weights"]
    return scaled * softmax(z / p["temperature"]) + plain * softmax(z) + uniform / z.shape[1]


def matrix(p, z):
    k = z.shape[1]
    return softmax(z @ p["w"].reshape(k, k).T + p["b"])


def dirichlet(p, z):
    z = z - z.max(axis=1, keepdims=True)
    return matrix(p, z - np.log(np.exp(z).sum(axis=1, keepdims=True)))


def class_weights(p, z):
    w = calibrate(p["base"], z) * p["weights"]
    return w / w.sum(axis=1, keepdims=True)


def metacal(p, z):
    q = softmax(z)
    entropy = -(q * np.log(np.maximum(q, 1e-300))).sum(axis=1, keepdims=True)
    return np.where(entropy <= p["threshold"], calibrate(p["base"], z), 1 / z.shape[1])


def parameterised_temperature(p, z):  # a network gives each row its temperature, .05 to 20
    gaps = np.sort(z.max(axis=1, keepdims=True) - z, axis=1)[:, 1:p["top"]]
    h = np.tanh(np.maximum(-gaps, -100) @ p["w1"].reshape(p["hidden"], -1).T + p["b1"])
    h = np.tanh(h @ p["w2"].reshape(p["hidden"], -1).T + p["b2"])
    log_t = np.log(.05) + np.log(400) / (1 + np.exp(-(h @ p["w3"] + p["b3"])))
    return softmax(z / np.exp(log_t)[:, None])


def intra_order_preserving(p, z):  # the integral of a piecewise linear slope over the gap to the top class
    gap, s, x = z.max(axis=1, keepdims=True) - z, p["slopes"], p["knots"]
    j = np.searchsorted(x, gap, side="right") - 1
    at = np.concatenate([[0], np.cumsum((s[:-1] + s[1:]) / 2 * np.diff(x))])
    bend = np.concatenate([np.diff(s) / (2 * np.diff(x)), [0]])
    return softmax(-(at[j] + (gap - x[j]) * (s[j] + bend[j] * (gap - x[j]))))


ALL = {
    "ensemble_temperature": ensemble_temperature,
    "class_temperature": lambda p, z: softmax(z / p["temperatures"]),
    "vector": lambda p, z: softmax(z * p["w"] + p["b"]),
    "matrix": matrix,
    "dirichlet": dirichlet,
    "class_weights": class_weights,
    "metacal": metacal,
    "parameterised_temperature": parameterised_temperature,
    "intra_order_preserving": intra_order_preserving,
}


# Maps of the top class's confidence v, N. The others share the rest as before.


def platt(p, v):
    return sigmoid(p["slope"] * (log(v) - log(1 - v)) + p["intercept"])


def beta(p, v):
    return sigmoid(p["a"] * log(v) - p["b"] * log(1 - v) + p["m"])


def histogram(p, v):
    values = p["values"]
    return values[np.clip(np.searchsorted(p["edges"], v) - 1, 0, len(values) - 1)]


TOP = {
    "platt": platt,
    "beta": beta,
    "isotonic": lambda p, v: np.interp(v, p["x"], p["v"]),
    "spline": lambda p, v: np.interp(v, p["confidences"], p["values"]),
    "histogram": histogram,
    "scaling_binning": lambda p, v: histogram(p, platt(p, v)),
}


def calibrate(c, z):
    z, method = np.asarray(z, np.float64), c["method"]
    if method in ("identity", "temperature"):
        return softmax(z / c.get("temperature", 1))
    p = {name: np.asarray(v) if isinstance(v, list) else v for name, v in c["params"].items()}
    if method in ALL:
        return ALL[method](p, z)
    top = TOP[method](p, softmax(z).max(axis=1))[:, None]
    is_top = np.arange(z.shape[1]) == z.argmax(axis=1)[:, None]
    return np.where(is_top, top, (1 - top) * softmax(np.where(is_top, -np.inf, z)))


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
