"""20,000 instructions parse in about a fifth of a second on the reference machine."""

import time

from haloc.formats.hlo_text import parse_module, to_text


def big_module(count: int) -> str:
    lines = [
        "HloModule big\n\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(x, y)\n}\n\nENTRY main {\n"
        "  p = f32[8,16]{1,0} parameter(0)\n  z = f32[] constant(0)\n"
    ]
    previous = "p"
    for i in range(count // 4):
        place = (
            f', metadata={{op_name="jit(f)/layer{i % 50}/dot_general" '
            f'source_file="/a/b/c.py" source_line={i % 300}}}\n'
        )
        lines += [
            f"  %mul.{i} = f32[8,16]{{1,0}} multiply(%{previous}, %p){place}",
            f"  %r.{i} = f32[8]{{0}} reduce(%mul.{i}, %z), dimensions={{1}}, to_apply=%add{place}",
            f"  %b.{i} = f32[8,16]{{1,0}} broadcast(%r.{i}), dimensions={{0}}{place}",
            f"  %a.{i} = f32[8,16]{{1,0}} add(f32[8,16]{{1,0}} %b.{i}, %mul.{i}){place}",
        ]
        previous = f"a.{i}"
    return "".join(lines) + f"  ROOT out = (f32[8,16]{{1,0}}) tuple({previous})\n}}\n"


def test_parsing_and_printing_twenty_thousand_instructions_is_quick():
    text = big_module(20_000)
    start = time.perf_counter()
    module = parse_module(text)
    parsed = time.perf_counter()
    printed = to_text(module)
    done = time.perf_counter()
    assert len(module.entry) == 20_003
    assert len(printed) > 2_000_000
    assert parsed - start < 3.0, "seconds to parse; the machine may be shared"
    assert done - parsed < 3.0, "seconds to print"
