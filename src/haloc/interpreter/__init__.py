"""The oracle: runs a module in NumPy, one instruction at a time, by the op table."""

from haloc.interpreter.run import Interpreter, run

__all__ = ["Interpreter", "run"]
