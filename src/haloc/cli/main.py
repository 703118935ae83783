"""The `haloc` command: dispatch to subcommands, and how errors look."""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from haloc.errors import HloError, InternalError
from haloc.flags import Flags
from haloc.version import VERSION

COMMANDS = {
    "run": ("haloc.cli.run", "run an HLO program, check it, time it"),
    "opt": ("haloc.cli.opt", "run passes on an HLO program and print it"),
    "diff-run": ("haloc.cli.diff_run", "run two programs on the same inputs, show where they part"),
    "reduce": ("haloc.cli.reduce", "make a program that shows a fault small"),
    "bisect": ("haloc.cli.bisect", "name the pass and the rule that break a program"),
    "convert": ("haloc.cli.convert", "write an HLO program in another format"),
    "fmt": ("haloc.cli.fmt", "format an HLO program"),
    "cache": ("haloc.cli.cache", "look into the cache of compiled programs, empty it"),
}
"""{name: (module with `run(argv) -> exit code`, one line of help)}"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0 done, 1 failed, 2 wrongly called, 130 interrupted."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] in (["--version"], ["-V"]):
        print(f"haloc {VERSION}")
        return 0
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else 2
    name, *rest = arguments
    if name not in COMMANDS:
        print(f"haloc: no command {name!r}\n{_usage()}", file=sys.stderr)
        return 2
    try:
        # Imported by name, once known: `haloc fmt` need not load a compiler.
        code = int(importlib.import_module(COMMANDS[name][0]).run(rest))
        sys.stdout.flush()  # so that a closed pipe is found here, not at exit
        return code
    except SystemExit as stop:  # argparse: 2 for a usage error, 0 for --help
        return stop.code if isinstance(stop.code, int) else 2
    except BrokenPipeError:
        # Whoever read the output has closed it; nothing more can be written, at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("haloc: interrupted", file=sys.stderr)
        return 130
    except Exception as error:
        _report(error)
        return 1


def _report(error: Exception) -> None:
    """One message on stderr; the traceback from HALOC_DEBUG=1 on."""
    if Flags.from_environment().debug >= 1:
        traceback.print_exception(error)
        return
    expected = isinstance(error, HloError | OSError) and not isinstance(error, InternalError)
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    elif expected:
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    print("\n".join([f"haloc: {text}", *getattr(error, "__notes__", ())]), file=sys.stderr)
    if not expected:
        print("This is a bug in haloc. HALOC_DEBUG=1 shows where.", file=sys.stderr)


def _usage() -> str:
    listed = "\n".join(f"  haloc {name:8}  {line}" for name, (_, line) in COMMANDS.items())
    how = "usage: haloc COMMAND FILE ...   (haloc COMMAND --help; FILE may be '-')"
    return f"{how}\n\n{listed}\n  haloc --version"


if __name__ == "__main__":
    sys.exit(main())
