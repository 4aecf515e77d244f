"""Writes digits.bin.gz: the UCI Optical Recognition of Handwritten Digits test set, from scikit-learn's copy.

Needs scikit-learn (made with 1.9.1): python export.py
Format, after gunzip: "DIG1", uint32 N little endian, N labels (uint8, 0..9), N*64 pixels (uint8, 0..16, row-major 8x8).
"""

import gzip
import pathlib
import struct

from sklearn.datasets import load_digits

digits = load_digits()
pixels = digits.data.astype("uint8")
labels = digits.target.astype("uint8")
assert pixels.shape == (1797, 64) and (pixels == digits.data).all() and pixels.max() == 16

raw = b"DIG1" + struct.pack("<I", len(labels)) + labels.tobytes() + pixels.tobytes()
path = pathlib.Path(__file__).with_name("digits.bin.gz")
path.write_bytes(gzip.compress(raw, 9, mtime=0))
print(f"{path.name}: {len(labels)} images, {path.stat().st_size} bytes")
