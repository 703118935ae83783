"""infeed, outfeed, and send and recv with the host, from native code: by their rows' meaning."""

from __future__ import annotations

import numpy as np

from haloc.cpu.run_context import RunContext
from haloc.ffi.python_targets import store
from haloc.ffi.sites import TRANSFERS, Site
from haloc.ffi.targets import Abi, Target
from haloc.interpreter.leaves import flat, nested
from haloc.interpreter.participant import Participant
from haloc.ops.table import op


def _transfer(
    site: Site, operands: list[np.ndarray], results: list[np.ndarray], run: RunContext | None
) -> None:
    """Evaluate the instruction; what leaves the program is copied: its memory is used again."""
    assert run is not None and site.instruction is not None
    arrays = iter([np.array(o) for o in operands])
    leaves = iter([next(arrays) if s.is_array else None for s in site.operands])
    values = [nested(o.shape, leaves) for o in site.instruction.operands]
    value = op(site.instruction).evaluate(site.instruction, values, _participant(run))  # type: ignore[arg-type]
    store([leaf for leaf in flat(value) if leaf is not None], results, site.where)


def _participant(run: RunContext) -> Participant:
    """The run as ops see it: it numbers the run's transfers."""
    if run.participant is None:
        device_id = (run.replica_id, run.partition_id)
        number = run.host.participant(run) if run.host is not None else 0
        run.participant = Participant(device_id, run.host, None, number)
    return run.participant


for _opcode in ("infeed", "outfeed", "send", "send-done", "recv", "recv-done"):
    TRANSFERS[_opcode] = Target(_opcode, Abi.PYTHON, _transfer, python=_transfer)
