"""Small programs that several tests run."""

ADD = """
HloModule add_module

ENTRY add_computation {
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  ROOT add = f32[3] add(x, y)
}
"""

TUPLES = """
HloModule tuples

ENTRY e {
  p = (f32[2], (s32[], f32[0])) parameter(0)
  x = f32[2] get-tuple-element(p), index=0
  q = (s32[], f32[0]) get-tuple-element(p), index=1
  n = s32[] get-tuple-element(q), index=0
  z = f32[0] get-tuple-element(q), index=1
  m = s32[] add(n, n)
  inner = (f32[2], s32[]) tuple(x, m)
  none = () tuple()
  ROOT out = ((f32[2], s32[]), (), f32[0]) tuple(inner, none, z)
}
"""

DONATE = """
HloModule donate, input_output_alias={ {0}: (0, {}, may-alias) }

ENTRY e {
  x = f32[1000] parameter(0)
  y = f32[1000] parameter(1)
  s = f32[1000] add(x, y)
  d = f32[1000] subtract(x, y)
  ROOT out = (f32[1000], f32[1000]) tuple(s, d)
}
"""

LOOP = """
HloModule loop

condition {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(10)
  ROOT more = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[4]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4] add(x, x)
  ROOT next = (s32[], f32[4]) tuple(j, y)
}

ENTRY e {
  zero = s32[] constant(0)
  x = f32[4] parameter(0)
  start = (s32[], f32[4]) tuple(zero, x)
  end = (s32[], f32[4]) while(start), condition=condition, body=body
  ROOT y = f32[4] get-tuple-element(end), index=1
}
"""

SWAP = """
HloModule swap, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  ROOT out = (f32[4], f32[4]) tuple(y, x)
}
"""

DONATE_MEMBER = """
HloModule donate_member, input_output_alias={ {1}: (0, {1}, may-alias) }

ENTRY e {
  p = (f32[3], f32[5]) parameter(0)
  a = f32[3] get-tuple-element(p), index=0
  b = f32[5] get-tuple-element(p), index=1
  s = f32[5] add(b, b)
  t = token[] after-all()
  ROOT out = (token[], f32[5], f32[3]) tuple(t, s, a)
}
"""
