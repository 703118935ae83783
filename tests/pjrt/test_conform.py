"""An independent tool's verdict on the plugin file: `pip install pypjrt`."""

import json
import subprocess
import sys

import pytest

import haloc

pytestmark = pytest.mark.nightly

EXPECTED = {"topology.create_by_name"}
"""What docs/pjrt.md says is not there."""


def test_conforms(tmp_path):
    pytest.importorskip("pypjrt")
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pypjrt.conform", haloc.pjrt_plugin_path()]
    done = subprocess.run(
        [*command, "--json", str(report)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    checks = json.loads(report.read_text())["checks"]
    results = {c["id"]: c["result"] for c in checks}
    assert [name for name, result in results.items() if result == "fail"] == []
    assert {name for name, result in results.items() if result == "unsupported"} <= EXPECTED
    assert sum(result == "pass" for result in results.values()) >= 53
