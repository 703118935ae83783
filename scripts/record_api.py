"""Records what jaxlib answers to the questions in tests/api/questions.

    python scripts/record_api.py PYTHON [tests/api/recorded_071.json]

PYTHON: an interpreter that has jaxlib and jax 0.7.1. A question that crashes it is recorded as
{"crash": signal}; the rest is asked again in a new process.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.api.ask import Answer, questions  # noqa: E402  # found by the line above


def record(python: str) -> dict[str, dict[str, Answer]]:
    asked = [(section, name) for section, found in questions().items() for name in found]
    recorded: dict[str, dict[str, Answer]] = {}
    while asked:
        done = subprocess.run(
            [python, str(ROOT / "tests" / "api" / "ask.py"), "jaxlib"],
            input=json.dumps(asked),
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        lines = done.stdout.splitlines()
        for line in lines:
            section, name, answer = json.loads(line)
            recorded.setdefault(section, {})[name] = answer
        if len(lines) < len(asked):
            if done.returncode > 0:
                raise SystemExit(f"{python} ended with {done.returncode} at {asked[len(lines)]}")
            section, name = asked[len(lines)]
            recorded.setdefault(section, {})[name] = {"crash": str(-done.returncode)}
        asked = asked[len(lines) + 1 :]
    return recorded


if __name__ == "__main__":
    default = ROOT / "tests" / "api" / "recorded_071.json"
    target = Path(sys.argv[2]) if len(sys.argv) > 2 else default
    target.write_text(json.dumps(record(sys.argv[1]), indent=1) + "\n")
