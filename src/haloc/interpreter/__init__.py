"""The oracle: runs a module in NumPy, one instruction at a time, by the op table."""

from haloc.interpreter.guard import NanGuard
from haloc.interpreter.host_transfers import HostTransfers
from haloc.interpreter.participants import run_participants
from haloc.interpreter.run import Interpreter, run
from haloc.interpreter.trace import trace

__all__ = ["HostTransfers", "Interpreter", "NanGuard", "run", "run_participants", "trace"]
