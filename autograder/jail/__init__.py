"""Running code that can't be trusted: what goes in is text, what comes out is plain data, and nothing else gets out."""

from .limits import Limits
from .places import exposes
from .plain import Unreadable
from .runs import JailResult, close, floor, run_examined, run_jailed
from .warden import JailFault

__all__ = ["JailFault", "JailResult", "Limits", "Unreadable", "close", "exposes", "floor", "run_examined", "run_jailed"]
