"""Layouts: of arrays, of programs' parameters and results, and what happens where they differ."""

from __future__ import annotations

import ctypes
import itertools
import pickle
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import InvalidArgumentError, UnimplementedError
from haloc.formats.hlo_text import parse_module
from haloc.runtime.array import ArrayImpl
from haloc.xla_client import (
    Client,
    CompileOptions,
    Layout,
    LoadedExecutable,
    Shape,
    SingleDeviceSharding,
    batched_device_put,
    make_cpu_client,
    make_interpreter_client,
)
from tests.oracle import run_in_jaxlib

CPU = make_cpu_client()
CLIENTS = [CPU, make_interpreter_client()]
BY_PLATFORM = pytest.mark.parametrize("client", CLIENTS, ids=lambda c: c.platform)

DIMS = {1: (5,), 2: (3, 4), 3: (2, 3, 4), 4: (2, 3, 1, 4)}
ORDERS = [o for rank in DIMS for o in itertools.permutations(range(rank))]
DTYPES = {
    "f32": np.float32,
    "pred": np.bool_,
    "s8": np.int8,
    "f64": np.float64,
    "c64": np.complex64,
    "bf16": ml_dtypes.bfloat16,
    "s4": ml_dtypes.int4,
    "u2": ml_dtypes.uint2,
}


def values(dtype: Any, dims: tuple[int, ...], start: int = 0) -> np.ndarray:
    count = int(np.prod(dims))
    return (np.arange(start, start + count) % 4).astype(dtype).reshape(dims)


def memory_of(array: ArrayImpl) -> np.ndarray:
    """The elements in the order in which they lie in memory."""
    nbytes = array.size * array.dtype.itemsize
    data = (ctypes.c_ubyte * nbytes).from_address(array.unsafe_buffer_pointer())
    return np.frombuffer(bytes(data), array.dtype)


def in_order(value: np.ndarray, minor_to_major: Sequence[int]) -> np.ndarray:
    return value.transpose(minor_to_major[::-1]).reshape(-1)


def written(order: Sequence[int]) -> str:
    return "{" + ",".join(map(str, order)) + "}"


def load(client: Client, text: str, options: CompileOptions | None = None) -> LoadedExecutable:
    return client.compile_and_load(text, client.devices()[:1], options)


# --- Arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS, ids=written)
def test_an_array_in_any_layout(order: tuple[int, ...]) -> None:
    dims = DIMS[len(order)]
    for name, dtype in DTYPES.items():
        value = values(dtype, dims)
        array = CPU.buffer_from_pyval(value, device_layout=order)
        assert np.array_equal(np.asarray(array), value), name
        assert np.array_equal(memory_of(array), in_order(value, order)), name
        assert array.layout == Layout(order)
        assert str(array._pjrt_layout) == written(order)
        assert array.format.layout is not None
        assert array.format.layout.major_to_minor == order[::-1]
        row_major = CPU.buffer_from_pyval(value)
        assert array.on_device_size_in_bytes() == row_major.on_device_size_in_bytes()


def test_large_arrays_and_empty_ones() -> None:
    value = np.random.default_rng(0).random((100, 7, 50))
    array = CPU.buffer_from_pyval(value, device_layout=(1, 0, 2))
    assert np.array_equal(memory_of(array), in_order(value, (1, 0, 2)))
    empty = CPU.buffer_from_pyval(np.zeros((2, 0, 3)), device_layout=(0, 1, 2))
    assert np.asarray(empty).shape == (2, 0, 3) and empty.layout == Layout((0, 1, 2))


def test_fortran_order_is_shared() -> None:
    value = np.asfortranarray(np.arange(10_000.0).reshape(100, 100))
    array = CPU.buffer_from_pyval(value, device_layout=(0, 1))
    assert array.unsafe_buffer_pointer() == value.ctypes.data
    assert np.array_equal(np.asarray(array), value)
    copied = CPU.buffer_from_pyval(value, device_layout=(0, 1), force_copy=True)
    assert copied.unsafe_buffer_pointer() != value.ctypes.data
    row_major = CPU.buffer_from_pyval(value)
    assert row_major.unsafe_buffer_pointer() != value.ctypes.data
    assert np.array_equal(np.asarray(row_major), value)


def test_what_a_layout_may_be() -> None:
    value = np.arange(6.0).reshape(2, 3)
    model = CPU.buffer_from_pyval(value, device_layout=Layout((0, 1)))
    for given in (model.layout, model._pjrt_layout, model.format, model.format.layout, [0, 1]):
        array = CPU.buffer_from_pyval(value, device_layout=given)
        assert array.layout == model.layout
    with pytest.raises(InvalidArgumentError, match=r"device_layout=\{0,1,2\}.* 2 dimensions"):
        CPU.buffer_from_pyval(value, device_layout=(0, 1, 2))
    with pytest.raises(UnimplementedError, match=r"device_layout=\{1,0:T\(8,128\)\}.*not tiled"):
        CPU.buffer_from_pyval(value, device_layout=Layout((1, 0), [(8, 128)]))
    with pytest.raises(UnimplementedError, match=r"f64 takes 64 bits, not 4"):
        CPU.buffer_from_pyval(value, device_layout=Layout((1, 0), (), 4))


def test_an_array_converted_to_another_layout() -> None:
    value = np.arange(6.0).reshape(2, 3)
    array = CPU.buffer_from_pyval(value)
    turned = CPU.buffer_from_pyval(array, device_layout=(0, 1))
    assert np.array_equal(memory_of(turned), value.T.reshape(-1))
    back = CPU.buffer_from_pyval(turned, device_layout=(1, 0))
    assert np.array_equal(memory_of(back), value.reshape(-1))
    same = CPU.buffer_from_pyval(turned, device_layout=(0, 1))
    assert same.unsafe_buffer_pointer() == turned.unsafe_buffer_pointer()


def test_copies_keep_the_layout() -> None:
    client = make_cpu_client(num_devices=2)
    there = client.devices()[1]
    value = np.arange(6.0).reshape(2, 3)
    array = client.buffer_from_pyval(value, device_layout=(0, 1))
    copies = [
        array.clone(),
        client.buffer_from_pyval(array, there),
        batched_device_put(array.aval, SingleDeviceSharding(there), [array], [there]),
        pickle.loads(pickle.dumps(array)),
    ]
    for copy in copies:
        assert copy.layout == Layout((0, 1))
        assert np.array_equal(np.asarray(copy), value)
        assert np.array_equal(memory_of(copy), value.T.reshape(-1))


def test_dlpack_has_strides() -> None:
    value = np.arange(24.0).reshape(2, 3, 4)
    array = CPU.buffer_from_pyval(value, device_layout=(0, 2, 1))
    read = np.from_dlpack(array)
    assert np.array_equal(read, value) and read.ctypes.data == array.unsafe_buffer_pointer()


def test_deleted_arrays() -> None:
    array = CPU.buffer_from_pyval(np.zeros((2, 3)), device_layout=(0, 1))
    array.delete()
    assert array.format.layout is None
    with pytest.raises(InvalidArgumentError, match="deleted"):
        _ = array.layout


def test_default_layout() -> None:
    layout = CPU.get_default_layout(np.dtype(np.float32), (2, 3, 4), CPU.devices()[0])
    assert str(layout) == "{2,1,0}"


# --- Programs -------------------------------------------------------------------------------------


def module_text(dtype: str, dims: tuple[int, ...], orders: Sequence[Sequence[int]]) -> str:
    plain = f"{dtype}[{','.join(map(str, dims))}]"
    a, b, c = (plain + written(o) for o in orders)
    # Values of one order go everywhere: into arithmetic, to the results as they are, and moved.
    moved = f"{dtype}[{','.join(map(str, dims[::-1]))}]"
    reverse = ",".join(map(str, range(len(dims))[::-1]))
    return f"""
    HloModule m, entry_computation_layout={{({a}, {b})->({c}, {a}, {moved}{{{reverse}}})}}
    ENTRY e {{
      x = {plain} parameter(0)
      y = {plain} parameter(1)
      either = {plain} maximum(x, y)
      moved = {moved} transpose(y), dimensions={{{reverse}}}
      ROOT t = ({plain}, {plain}, {moved}) tuple(either, x, moved)
    }}"""


@pytest.mark.parametrize("dtype", ["f32", "s8", "bf16", "s4", "u2"])
@pytest.mark.parametrize("rank", sorted(DIMS))
def test_entry_layouts_give_jaxlibs_values(dtype: str, rank: int) -> None:
    dims = DIMS[rank]
    inputs = [values(DTYPES[dtype], dims), values(DTYPES[dtype], dims, 7)]
    rows = tuple(range(rank))[::-1]
    expected = run_in_jaxlib(module_text(dtype, dims, [rows] * 3), inputs)
    orders = list(itertools.permutations(range(rank)))
    for number, order in enumerate(orders):
        others = orders[number - 1], orders[(5 * number + 3) % len(orders)]
        text = module_text(dtype, dims, (order, *others))
        for client in CLIENTS:
            executable = load(client, text)
            assert str(executable.get_parameter_layouts()[0]) == written(order)
            given = [
                client.buffer_from_pyval(x, device_layout=layout)
                for x, layout in zip(inputs, executable.get_parameter_layouts(), strict=True)
            ]
            results = executable.execute(given)
            for result, layout, wanted in zip(results, executable.get_output_layouts(), expected):
                order_ = layout._xla_layout().minor_to_major()
                assert result.layout.minor_to_major() == order_
                assert np.array_equal(memory_of(result), in_order(wanted, order_)), text
            assert [str(x) for x in executable.get_output_layouts()][:2] == [
                written(others[1]),
                written(order),
            ]


DOT = """
HloModule m, entry_computation_layout={(f32[6,4]{0,1}, f32[4,5]{0,1})->f32[6,5]{0,1}}
ENTRY e {
  x = f32[6,4] parameter(0)
  y = f32[4,5] parameter(1)
  ROOT d = f32[6,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""


def dot_arguments(client: Client, orders: Sequence[Sequence[int]] = ((0, 1),) * 2) -> list[Any]:
    parts = [np.arange(np.prod(d), dtype=np.float32).reshape(d) for d in ((6, 4), (4, 5))]
    return [client.buffer_from_pyval(x, device_layout=o) for x, o in zip(parts, orders)]


@BY_PLATFORM
def test_the_optimised_module_tells_the_truth(client: Client) -> None:
    executable = load(client, DOT)
    (module,) = executable.hlo_modules()
    assert "entry_computation_layout={(f32[6,4]{0,1}, f32[4,5]{0,1})->f32[6,5]{0,1}}" in (
        module.to_string()
    )
    arguments = dot_arguments(client)
    inputs = [np.asarray(a) for a in arguments]
    again = parse_module(module.to_string())
    assert np.array_equal(interpreter.run(again, inputs), inputs[0] @ inputs[1])
    assert np.array_equal(np.asarray(executable.execute(arguments)[0]), inputs[0] @ inputs[1])


def test_the_entry_has_the_layouts_in_its_shapes() -> None:
    (module,) = load(CPU, DOT).hlo_modules()
    text = module.to_string()
    assert "f32[6,4]{0,1} parameter(0)" in text and "ROOT %bitcast" in text
    assert "transpose(" not in text  # they are folded into the product


@BY_PLATFORM
def test_another_layout_is_refused(client: Client) -> None:
    executable = load(client, DOT)
    message = (
        r"parameter 1 in layout \{0,1\} \(f32\[4,5\]\{0,1\}\) but got a buffer in layout \{1,0\} "
        r"\(f32\[4,5\]\{1,0\}\); client.buffer_from_pyval\(array, device_layout=\(0, 1\)\)"
    )
    arguments = dot_arguments(client, ((0, 1), (1, 0)))
    with pytest.raises(InvalidArgumentError, match=message):
        executable.execute(arguments)
    with pytest.raises(InvalidArgumentError, match=message):
        executable.execute_sharded([[a] for a in arguments])
    plain = load(client, DOT.replace("{0,1}", ""))
    with pytest.raises(InvalidArgumentError, match=r"parameter 0 in layout \{1,0\}"):
        plain.execute(arguments)


def test_where_dimensions_of_size_1_stand_does_not_matter() -> None:
    text = """
    HloModule m, entry_computation_layout={(f32[1,5]{0,1})->f32[5,1]{0,1}}
    ENTRY e { x = f32[1,5] parameter(0)
      ROOT r = f32[5,1] reshape(x) }"""
    value = np.arange(5, dtype=np.float32).reshape(1, 5)
    executable = load(CPU, text)
    for order in ((0, 1), (1, 0)):
        (result,) = executable.execute([CPU.buffer_from_pyval(value, device_layout=order)])
        assert np.array_equal(np.asarray(result), value.T)
        assert result.layout == Layout((0, 1))


@BY_PLATFORM
def test_options_come_first(client: Client) -> None:
    options = CompileOptions()
    options.argument_layouts = [Shape("f32[6,4]{1,0}"), Shape("f32[4,5]{0,1}")]
    options.executable_build_options.result_layout = Shape("f32[6,5]{1,0}")
    executable = load(client, DOT, options)
    assert [str(x) for x in executable.get_parameter_layouts()] == ["{1,0}", "{0,1}"]
    assert [str(x) for x in executable.get_output_layouts()] == ["{1,0}"]
    arguments = dot_arguments(client, ((1, 0), (0, 1)))
    wanted = np.asarray(arguments[0]) @ np.asarray(arguments[1])
    (result,) = executable.execute(arguments)
    assert np.array_equal(memory_of(result), wanted.reshape(-1))


def test_layouts_that_do_not_fit() -> None:
    options = CompileOptions()
    options.argument_layouts = [Shape("f32[6,4]{1,0}")]
    with pytest.raises(InvalidArgumentError, match=r"specify 1 argument layouts, .* 2 arguments"):
        load(CPU, DOT, options)
    options.argument_layouts = [Shape("f32[6,4]{1,0}"), Shape("f32[5,4]{1,0}")]
    with pytest.raises(InvalidArgumentError, match=r"argument_layouts\[1\] is f32\[5,4\]\{1,0\}"):
        load(CPU, DOT, options)
    options.argument_layouts = [Shape("f32[6,4]{1,0:T(2,2)}"), Shape("f32[4,5]{1,0}")]
    with pytest.raises(UnimplementedError, match=r"layout of parameter 0=.*not tiled"):
        load(CPU, DOT, options)
    tiled = DOT.replace("->f32[6,5]{0,1}", "->f32[6,5]{0,1:T(8,128)}")
    with pytest.raises(UnimplementedError, match=r"layout of the result=.*not tiled"):
        load(CPU, tiled)


def stablehlo(argument: str, result: str) -> str:
    return f"""
    module @m {{
      func.func public @main(%x: tensor<2x3xf32> {{mhlo.layout_mode = "{argument}"}})
          -> (tensor<2x3xf32> {{mhlo.layout_mode = "{result}"}}) {{
        %0 = stablehlo.negate %x : tensor<2x3xf32>
        return %0 : tensor<2x3xf32>
      }}
    }}"""


def test_layout_modes() -> None:
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    for modes, orders in (
        (("{0,1}", "default"), ((0, 1), (1, 0))),
        (("default", "{0,1}"), ((1, 0), (0, 1))),
        (("auto", "auto"), ((1, 0), (1, 0))),
    ):
        executable = load(CPU, stablehlo(*modes))
        argument = CPU.buffer_from_pyval(value, device_layout=orders[0])
        (result,) = executable.execute([argument])
        assert np.array_equal(memory_of(result), in_order(-value, orders[1]))
    with pytest.raises(Exception, match="layout") as raised:
        load(CPU, stablehlo("{0,2}", "default"))
    assert "arg_layout_modes" in "".join(getattr(raised.value, "__notes__", []))


@BY_PLATFORM
@pytest.mark.parametrize("orders", [((0, 1), (0, 1)), ((0, 1), (1, 0)), ((1, 0), (0, 1))])
def test_donation(client: Client, orders: tuple[Any, Any]) -> None:
    a, b = map(written, orders)
    text = f"""
    HloModule m, input_output_alias={{ {{}}: (0, {{}}, may-alias) }},
      entry_computation_layout={{(f32[30,40]{a})->f32[30,40]{b}}}
    ENTRY e {{ x = f32[30,40] parameter(0)
      ROOT n = f32[30,40] negate(x) }}"""
    value = np.random.default_rng(0).random((30, 40), dtype=np.float32)
    # NumPy's memory is not a program's to take over.
    argument = client.buffer_from_pyval(value, force_copy=True, device_layout=orders[0])
    pointer = argument.unsafe_buffer_pointer()
    (result,) = load(client, text).execute([argument])
    assert argument.is_deleted() and result.unsafe_buffer_pointer() == pointer
    assert np.array_equal(memory_of(result), in_order(-value, orders[1]))


@BY_PLATFORM
def test_tuples(client: Client) -> None:
    text = """
    HloModule m, entry_computation_layout={
      ((f32[2,3]{0,1}, (s4[1,5]{0,1}, f32[3]{0})))->((f32[2,3]{0,1}, (s4[1,5]{1,0}, f32[3]{0})),
      f32[3,2]{1,0})}
    ENTRY e {
      p = (f32[2,3], (s4[1,5], f32[3])) parameter(0)
      g = f32[2,3] get-tuple-element(p), index=0
      n = f32[3,2] transpose(g), dimensions={1,0}
      ROOT t = ((f32[2,3], (s4[1,5], f32[3])), f32[3,2]) tuple(p, n)
    }"""
    executable = load(client, text)
    value = np.arange(6, dtype=np.float32).reshape(2, 3)
    parts = [value, values(ml_dtypes.int4, (1, 5)), np.arange(3, dtype=np.float32)]
    layouts = executable.get_parameter_layouts()
    given = [client.buffer_from_pyval(x, device_layout=o) for x, o in zip(parts, layouts)]
    results = executable.execute(given)
    for result, wanted in zip(results, [*parts, value.T], strict=True):
        assert np.array_equal(np.asarray(result), wanted)
    assert results[0].layout == Layout((0, 1))


def test_tuple_arguments() -> None:
    options = CompileOptions()
    options.tuple_arguments = True
    executable = load(CPU, DOT, options)
    arguments = dot_arguments(CPU)
    wanted = np.asarray(arguments[0]) @ np.asarray(arguments[1])
    assert np.array_equal(np.asarray(executable.execute(arguments)[0]), wanted)


def test_serialised_executables_keep_layouts() -> None:
    executable = load(CPU, DOT)
    again = CPU.deserialize_executable(executable.serialize(), CPU.devices()[:1])
    assert again.get_parameter_layouts() == executable.get_parameter_layouts()
    assert again.get_output_layouts() == executable.get_output_layouts()
    arguments = dot_arguments(CPU)
    (wanted,), (result,) = executable.execute(arguments), again.execute(arguments)
    assert np.array_equal(memory_of(result), memory_of(wanted))
    with pytest.raises(InvalidArgumentError, match="in layout"):
        again.execute(dot_arguments(CPU, ((0, 1), (1, 0))))


def test_shards_lie_as_the_whole_does() -> None:
    client = make_cpu_client(num_devices=2)
    text = """
    HloModule m, num_partitions=2, entry_computation_layout={(f32[4,6]{0,1})->f32[4,6]{0,1}}
    ENTRY e {
      x = f32[4,6] parameter(0), sharding={devices=[2,1]<=[2]}
      ROOT n = f32[4,6] negate(x), sharding={devices=[2,1]<=[2]}
    }"""
    options = CompileOptions()
    options.num_partitions = 2
    options.executable_build_options.use_spmd_partitioning = True
    executable = client.compile_and_load(text, client.devices(), options)
    value = np.arange(24, dtype=np.float32).reshape(4, 6)
    shards = [
        client.buffer_from_pyval(part, device, device_layout=(0, 1))
        for part, device in zip(np.split(value, 2), client.devices(), strict=True)
    ]
    results = executable.execute_sharded([shards]).disassemble_into_single_device_arrays()[0]
    for result, part in zip(results, np.split(value, 2), strict=True):
        assert np.array_equal(memory_of(result), in_order(-part, (0, 1)))


def test_zero_sized_results_have_their_layout() -> None:
    text = """
    HloModule m, entry_computation_layout={(f32[0,3]{0,1})->f32[0,3]{0,1}}
    ENTRY e { x = f32[0,3] parameter(0)
      ROOT n = f32[0,3] negate(x) }"""
    (result,) = load(CPU, text).execute([CPU.buffer_from_pyval(np.zeros((0, 3), np.float32))])
    assert result.shape == (0, 3)


JAXLIB = textwrap.dedent("""
    import jax, numpy as np
    from jaxlib import xla_client

    device = jax.devices("cpu")[0]
    options = xla_client.CompileOptions()
    options.argument_layouts = [xla_client.Shape("f32[2,3]{0,1}")]
    options.executable_build_options.result_layout = xla_client.Shape("f32[2,3]{1,0}")
    mlir = '''module @m { func.func public @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %0 = stablehlo.negate %x : tensor<2x3xf32>  return %0 : tensor<2x3xf32> } }'''
    executable = device.client.compile_and_load(mlir, xla_client.DeviceList((device,)), options)
    # jaxlib does not look at the argument's layout: it gets bytes.
    argument = jax.device_put(np.arange(6, dtype=np.float32).reshape(2, 3), device)
    (result,) = executable.execute([argument])
    print([str(x) for x in executable.get_parameter_layouts()], np.asarray(result).tolist())
""")


def test_jaxlib_takes_argument_layouts_so_too() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", JAXLIB], capture_output=True, text=True, check=True
    )
    memory = np.arange(6, dtype=np.float32)
    value = memory.reshape(3, 2).T
    assert done.stdout.strip() == f"['{{0,1}}'] {(-value).tolist()}"
    options = CompileOptions()
    options.argument_layouts = [Shape("f32[2,3]{0,1}")]
    executable = load(CPU, stablehlo("default", "default"), options)
    argument = CPU.buffer_from_pyval(value, device_layout=(0, 1))
    assert np.array_equal(memory_of(argument), memory)
    assert np.array_equal(np.asarray(executable.execute([argument])[0]), -value)
