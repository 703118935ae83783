"""The oracle: runs a module in NumPy, one instruction at a time, by the op table."""

from haloc.interpreter.guard import NanGuard
from haloc.interpreter.run import Interpreter, run
from haloc.interpreter.trace import trace

__all__ = ["Interpreter", "NanGuard", "run", "trace"]
