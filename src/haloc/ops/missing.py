"""Rows of ops that haloc reads and prints but does not run yet, each with the reason.

Their attributes are complete, so that text with them parses, prints and is carried through.
"""

from __future__ import annotations

from haloc.ops.attrs import (
    Bool,
    Computation,
    Dims,
    Groups,
    Int,
    OneDim,
    OneShape,
    Pairs,
    Raw,
    Text,
)
from haloc.ops.table import Attr, Effect, register_missing

NO_COLLECTIVES = "collectives between devices are not executed yet"
NO_ASYNC = "asynchronous start/update/done pairs are not executed yet"
NO_TRANSFER = "transfers to and from the host inside a program are not executed yet"
NO_DYNAMIC = "dynamic shapes are not executed yet; only their text and shapes are carried"

CHANNEL = Attr("channel_id", Int(), 0)
GROUPS = Attr("replica_groups", Groups(), None, "*")
GLOBAL_IDS = Attr("use_global_device_ids", Bool(), False)
CONSTRAIN = Attr("constrain_layout", Bool(), False)
TO_APPLY = Attr("to_apply", Computation(), proto="called_computation_ids[0]")
COLLECTIVE = (CHANNEL, GROUPS)
GATHER = (*COLLECTIVE, Attr("dimensions", Dims()), CONSTRAIN, GLOBAL_IDS)
REDUCE = (*COLLECTIVE, CONSTRAIN, GLOBAL_IDS, TO_APPLY)
PERMUTE = (CHANNEL, Attr("source_target_pairs", Pairs(), ()), Attr("slice_sizes", Raw(), ""))

# Collectives.
register_missing("all-gather", ("operands*",), NO_COLLECTIVES, attrs=GATHER)
register_missing("all-gather-start", ("operands*",), NO_COLLECTIVES, attrs=GATHER)
register_missing("all-gather-done", ("operand",), NO_COLLECTIVES)
register_missing("all-reduce", ("operands*",), NO_COLLECTIVES, attrs=REDUCE)
register_missing("all-reduce-start", ("operands*",), NO_COLLECTIVES, attrs=REDUCE)
register_missing("all-reduce-done", ("operand",), NO_COLLECTIVES)
register_missing(
    "reduce-scatter",
    ("operands*",),
    NO_COLLECTIVES,
    attrs=(*COLLECTIVE, CONSTRAIN, GLOBAL_IDS, Attr("dimensions", Dims()), TO_APPLY),
)
register_missing(
    "all-to-all",
    ("operands*",),
    NO_COLLECTIVES,
    # Of an array: the dimension to split and join. A tuple is exchanged element by element.
    attrs=(*COLLECTIVE, CONSTRAIN, Attr("dimensions", Dims(), None)),
)
register_missing(
    "ragged-all-to-all",
    ("operand", "output", "input_offsets", "send_sizes", "output_offsets", "recv_sizes"),
    NO_COLLECTIVES,
    attrs=COLLECTIVE,
)
register_missing("collective-broadcast", ("operands*",), NO_COLLECTIVES, attrs=COLLECTIVE)
register_missing("collective-permute", ("operands*",), NO_COLLECTIVES, attrs=PERMUTE)
register_missing("collective-permute-start", ("operands*",), NO_COLLECTIVES, attrs=PERMUTE)
register_missing("collective-permute-done", ("operand",), NO_COLLECTIVES, attrs=(CHANNEL,))

# Asynchronous execution. In text `negate-start(x)` is async-start calling a negate.
ASYNC = (
    Attr("async_execution_thread", Text(), ""),
    Attr("calls", Computation(), proto="called_computation_ids[0]"),
)
register_missing("async-start", ("operands*",), NO_ASYNC, attrs=ASYNC)
# What they belong to is known from async-start; older text repeats it.
AGAIN = (Attr("calls", Computation(), None, "called_computation_ids[0]"),)
register_missing("async-update", ("operand",), NO_ASYNC, attrs=AGAIN)
register_missing("async-done", ("operand",), NO_ASYNC, attrs=AGAIN)
register_missing(
    "copy-start", ("operand",), NO_ASYNC, attrs=(Attr("cross_program_prefetch_index", Int(), -1),)
)
register_missing("copy-done", ("operand",), NO_ASYNC)

# Transfers.
TRANSFER = (CHANNEL, Attr("is_host_transfer", Bool(), False))
register_missing("infeed", ("token",), NO_TRANSFER, attrs=(Attr("infeed_config", Text(), ""),))
register_missing(
    "outfeed",
    ("operand", "token"),
    NO_TRANSFER,
    attrs=(Attr("outfeed_shape", OneShape(), None), Attr("outfeed_config", Text(), "")),
)
register_missing("send", ("operand", "token"), NO_TRANSFER, attrs=TRANSFER)
register_missing("send-done", ("operand",), NO_TRANSFER, attrs=TRANSFER)
register_missing("recv", ("token",), NO_TRANSFER, attrs=TRANSFER)
register_missing("recv-done", ("operand",), NO_TRANSFER, attrs=TRANSFER)

# Dynamic shapes.
register_missing(
    "set-dimension-size",
    ("operand", "size"),
    NO_DYNAMIC,
    attrs=(Attr("dimensions", OneDim(), proto="dimensions[0]"),),
    effect=Effect.PURE,
)
register_missing("dynamic-reshape", ("operand", "sizes*"), NO_DYNAMIC, effect=Effect.PURE)
