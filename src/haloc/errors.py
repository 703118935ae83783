"""The one tree of errors haloc raises. Each class carries its absl status code.

    HloError (RuntimeError)           any failure that has a status code
    ├── InvalidArgumentError          the program or an argument is wrong
    │   ├── HloParseError             text that is not HLO; knows line and column
    │   └── VerificationError         a well-formed program that breaks an op's constraint
    ├── NotFoundError                 a name that does not exist
    ├── FailedPreconditionError       the right call at the wrong time (deleted buffer, ...)
    ├── UnimplementedError            valid, and haloc does not do it (yet)
    ├── ResourceExhaustedError        out of memory
    ├── DeadlineExceededError         a timeout passed
    ├── NonFiniteError                a NaN or an infinity, where a guard looks for them
    └── InternalError                 a bug in haloc

`str(error)` begins with the status code, as jaxlib's `XlaRuntimeError` does:
"INVALID_ARGUMENT: transpose: dimensions={0,0} is not a permutation of ...".
Context is added on the way up with `add_note`, never by wrapping.
"""

from __future__ import annotations


class HloError(RuntimeError):
    """Base class of every haloc failure; `code` is the absl status code's name."""

    code = "UNKNOWN"

    def __init__(self, message: str, code: str = ""):
        """code: for a status code that has no class of its own."""
        if code:
            self.code = code
        self.message = message
        super().__init__(f"{self.code}: {message}")

    @property
    def status(self) -> int:
        """The status code's number, as native code passes it."""
        return STATUS_CODES.index(self.code)


class InvalidArgumentError(HloError):
    code = "INVALID_ARGUMENT"


class HloParseError(InvalidArgumentError):
    """Text that does not parse. `line` and `column` are 1-based."""

    def __init__(self, message: str, line: int = 0, column: int = 0):
        super().__init__(message)
        self.line = line
        self.column = column


class VerificationError(InvalidArgumentError):
    """An instruction whose operands, attributes or shape break its op's constraints."""


class NotFoundError(HloError):
    code = "NOT_FOUND"


class FailedPreconditionError(HloError):
    code = "FAILED_PRECONDITION"


class UnimplementedError(HloError):
    code = "UNIMPLEMENTED"


class ResourceExhaustedError(HloError):
    code = "RESOURCE_EXHAUSTED"


class DeadlineExceededError(HloError):
    code = "DEADLINE_EXCEEDED"


class NonFiniteError(HloError):
    """An instruction made a NaN or an infinity, and was asked not to."""

    code = "OUT_OF_RANGE"


class InternalError(HloError):
    """A broken invariant inside haloc: always a bug worth reporting."""

    code = "INTERNAL"

    def __init__(self, message: str):
        super().__init__(f"{message} (this is a bug in haloc)")


STATUS_CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)
"""absl's status codes, by number."""

_CLASSES = (
    InvalidArgumentError,
    NotFoundError,
    FailedPreconditionError,
    UnimplementedError,
    ResourceExhaustedError,
    DeadlineExceededError,
)


def error_of_status(status: int, message: str) -> HloError:
    """The error of an absl status code other than 0; a number that is none is UNKNOWN."""
    code = STATUS_CODES[status] if 0 < status < len(STATUS_CODES) else "UNKNOWN"
    for kind in _CLASSES:
        if kind.code == code:
            return kind(message)
    return HloError(message, code)
