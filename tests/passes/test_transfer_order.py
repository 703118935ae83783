"""transfer-order: what participants send and wait for keeps its order through every pass."""

from haloc.formats.hlo_text import parse_module
from haloc.ops.table import Effect, op
from haloc.passes.driver import run_passes
from haloc.passes.pipelines import run_pipeline
from haloc.verifier import verify

STATE = "(f32[2], u32[], token[])"
TEXT = f"""
HloModule m
swap {{
  x = f32[2] parameter(0)
  y = f32[2] sine(x)
  t = token[] after-all()
  s = {STATE} send(y, t), channel_id=1
  u = token[] after-all()
  r = {STATE} recv(u), channel_id=1
  rd = (f32[2], token[]) recv-done(r), channel_id=1
  sd = token[] send-done(s), channel_id=1
  v = f32[2] get-tuple-element(rd), index=0
  ROOT w = f32[2] add(v, x)
}}
ENTRY e {{
  x = f32[2] parameter(0)
  z = f32[2] cosine(x)
  c = f32[2] call(z), to_apply=swap
  d = f32[2] call(c), to_apply=swap
  ROOT m = f32[2] multiply(d, z)
}}
"""


def module(text=TEXT):
    parsed = parse_module(text)
    verify(parsed)
    return parsed


def happens(computation):
    """What the computation does besides computing, calls included."""
    done = []
    for instruction in computation.instructions:
        if instruction.opcode == "call":
            done += happens(instruction.attrs["to_apply"])
        elif op(instruction).effect is Effect.SIDE_EFFECT:
            done.append(instruction.opcode)
    return done


def chains(m):
    (record,) = run_passes(m, ["transfer-order"]).passes
    return record.changed


def test_the_order_stays():
    m = module()
    before = happens(m.entry)
    assert before == 2 * ["send", "recv", "recv-done", "send-done"]
    run_pipeline(m)
    verify(m)
    assert happens(m.entry) == before


def test_a_second_run_changes_nothing():
    m = module()
    assert chains(m)
    assert not chains(m)


def test_host_transfers_are_ordered_by_their_tokens():
    m = module(TEXT.replace("channel_id=1", "channel_id=1, is_host_transfer=true"))
    assert not chains(m)
