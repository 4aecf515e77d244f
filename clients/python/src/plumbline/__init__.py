"""Sends predictions and labels to plumbline, and applies the calibrators that it publishes."""

from ._calibrator import Calibrator
from ._logger import PlumblineLogger, Stats

__all__ = ["Calibrator", "PlumblineLogger", "Stats"]
__version__ = "0.1.0"
