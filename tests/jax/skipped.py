"""`Skipped`: what a program gives that needs a library which is not installed."""


class Skipped(str):
    """The reason."""
