"""Functions are named by content: what is equal stands once."""

from haloc.codegen.kernel import Kernel, Phase
from haloc.codegen.target import host_target
from haloc.cpu.builder import Builder
from haloc.cpu.linker import Linker, grain

TEMPLATE = """define void @KERNEL.run(ptr %b0, ptr %scratch, i64 %begin, i64 %end) nounwind {{
  call void @KERNEL.step(ptr %b0)
  call void @KERNEL.step_more(ptr %b0)
  store i64 {number}, ptr %b0
  ret void
}}

define internal void @KERNEL.step(ptr %p) nounwind {{
  ret void
}}

define  void @KERNEL.step_more(ptr %p) nounwind {{
  %v = load i64, ptr @KERNEL.table
  call void @KERNEL.step(ptr %p)
  ret void
}}

@KERNEL.table = internal constant i64 7
"""


def kernel(number):
    return Kernel(TEMPLATE.format(number=number), (Phase("KERNEL.run"),))


def test_equal_kernels_are_one():
    linker = Linker()
    assert linker.add(kernel(1)) == linker.add(kernel(1))
    assert len(linker.texts) == 4


def test_different_kernels_share_their_functions():
    linker = Linker()
    one, two = linker.add(kernel(1)), linker.add(kernel(2))
    assert one["KERNEL.run"] != two["KERNEL.run"]
    assert one["KERNEL.step_more"] == two["KERNEL.step_more"]
    assert len(linker.texts) == 5


def test_no_placeholder_is_left_and_all_have_sections():
    linker = Linker()
    names = linker.add(kernel(1))
    text = linker.text("")
    assert "KERNEL" not in text
    assert text.count("define hidden void @k") == 3
    run = linker.texts[names["KERNEL.run"]]
    assert f"call void @{names['KERNEL.step']}(ptr %b0)" in run
    assert f"call void @{names['KERNEL.step_more']}(ptr %b0)" in run


def test_functions_that_call_each_other():
    text = (
        "define void @KERNEL.a(ptr %p) {\n  call void @KERNEL.b(ptr %p)\n  ret void\n}\n"
        "define void @KERNEL.b(ptr %p) {\n  call void @KERNEL.a(ptr %p)\n  ret void\n}\n"
    )
    linker = Linker()
    names = linker.add(Kernel(text, (Phase("KERNEL.a"),)))
    assert "KERNEL" not in linker.text("")
    assert f"@{names['KERNEL.a']}(" in linker.texts[names["KERNEL.b"]]
    assert f"@{names['KERNEL.b']}(" in linker.texts[names["KERNEL.a"]]


def test_small_phases_stay_on_the_calling_thread():
    assert grain(Phase("f", 1, 1e9)) is None
    assert grain(Phase("f", 100, 10.0)) is None
    assert grain(Phase("f", 1000, 1000.0)) == 15


def test_data_is_named_by_its_content_and_never_becomes_text():
    def reading(data):
        text = TEMPLATE.format(number=1).replace("@KERNEL.table\n", "@KERNEL.twiddles\n")
        return Kernel(text, (Phase("KERNEL.run"),), data={"KERNEL.twiddles": data})

    units = []
    linker = Linker(units.append)
    one, two = linker.add(reading(b"12345678")), linker.add(reading(b"87654321"))
    assert one["KERNEL.run"] != two["KERNEL.run"]
    assert one == linker.add(reading(b"12345678"))
    assert [list(unit.data.values()) for unit in units] == [[b"12345678"], [b"87654321"]]
    assert "external hidden constant [8 x i8], align" in units[0].declares[one["KERNEL.twiddles"]]
    assert "12345678" not in linker.text("")


def test_a_thunk_brings_along_what_is_inlined_into_it():
    units = []
    linker = Linker(units.append)
    names = linker.add(kernel(1), inline=True)
    linker.thunk(names["KERNEL.run"], 2)
    for symbol in ("KERNEL.run", "KERNEL.step", "KERNEL.step_more"):
        assert f"@{names[symbol]}(" in units[-1].inlined[names[symbol]]


def test_what_is_inlined_into_two_functions_is_compiled_once():
    """Both the thunk, which the pool calls, and the program itself."""
    builder = Builder(host_target(), 2)
    linker = Linker(builder.add)
    names = linker.add(kernel(1), inline=True)
    thunk = linker.thunk(names["KERNEL.run"], 2)
    sequence = (
        f"define void @program(ptr %a, ptr %b) nounwind {{\n"
        f"  call void @{names['KERNEL.run']}(ptr %a, ptr %b, i64 0, i64 1)\n"
        f"  call void @{thunk}(ptr %a, i64 0, i64 1)\n"
        "  ret void\n}\n"
    )
    assert "program" in builder.image(linker.program_unit("program", sequence), "program").exports
