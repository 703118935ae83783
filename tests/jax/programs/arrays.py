"""Arrays and calls: transfers, donation, deletion, memories, layouts, inspection."""

from __future__ import annotations

import gc
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import layout

from tests.jax.programs.table import normal, program

WIDE = [jnp.bool_, jnp.int8, jnp.int16, jnp.int32, jnp.uint8, jnp.uint16, jnp.uint32]
FLOATS = [jnp.bfloat16, jnp.float16, jnp.float32, jnp.complex64]
NARROW = [jnp.int2, jnp.int4, jnp.uint2, jnp.uint4, jnp.float4_e2m1fn]
BYTES = ["e4m3fn", "e5m2", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz", "e3m4", "e4m3", "e8m0fnu"]
ALL_TYPES = [*WIDE, *FLOATS, *NARROW, *(getattr(jnp, f"float8_{name}") for name in BYTES)]


@program
def every_type_there_and_back():
    found = []
    for dtype in ALL_TYPES:
        host = (np.arange(6) % 2).astype(jnp.dtype(dtype)).reshape(2, 3)
        array = jax.device_put(host)
        assert array.dtype == host.dtype
        np.testing.assert_array_equal(np.asarray(array).view(np.uint8), host.view(np.uint8))
        found.append(jax.jit(lambda x: x.T)(array).astype(jnp.complex64))
    return found


@program
def hosts_of_all_strides():
    host = np.arange(120, dtype=np.int32).reshape(4, 5, 6)
    views = [
        host[::-1, ::2, ::-3],
        host.transpose(2, 0, 1),
        np.broadcast_to(host[0, 0], (3, 6)),
        np.asfortranarray(host),
        host[1:1],
        host[:, :0],
        np.int32(7),
        host[0, 0, 0:0],
    ]
    return [jax.device_put(v) for v in views] + [jnp.asarray(v) + 1 for v in views]


@program
def host_memory_is_the_callers():
    host = np.arange(5.0, dtype=np.float32)
    array = jnp.array(host)
    host[:] = -1
    back = np.asarray(array)
    assert not back.flags.writeable
    return [array, back, np.array(array) + 1]


@program
def donation():
    @partial(jax.jit, donate_argnums=(0, 1))
    def step(a, b, c):
        return a + c, b * c

    a, b, c = (jnp.full(4, value) for value in (1.0, 2.0, 3.0))
    results = step(a, b, c)
    assert a.is_deleted()
    assert b.is_deleted()
    assert not c.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(a)
    with pytest.raises((RuntimeError, ValueError), match="deleted"):
        step(a, c, c)
    with pytest.raises((RuntimeError, ValueError), match="donate"):
        step(c, c, c)
    return results


@program
def deletion():
    x = jnp.arange(4.0)
    y = x + 1
    x.delete()
    assert x.is_deleted()
    with pytest.raises(RuntimeError, match="deleted"):
        x + 1
    assert y.is_ready()
    return [y.block_until_ready(), y.copy(), jnp.arange(3).at[1].set(7)]


@program
def between_devices():
    devices = jax.devices()
    x = jax.device_put(jnp.arange(6.0), devices[3])
    y = jax.device_put(x, devices[5])
    assert [a.devices() for a in (x, y)] == [{devices[3]}, {devices[5]}]
    with pytest.raises(ValueError, match=r"[Ii]ncompatible devices"):
        jax.jit(jnp.add)(x, y)
    z = jax.jit(lambda a: a * 2)(y)
    assert z.devices() == {devices[5]}
    with jax.default_device(devices[2]):
        w = jnp.ones(3) + 1
    assert w.devices() == {devices[2]}
    return [x, y, z, w]


@program
def memory_kinds():
    device = jax.devices()[0]
    kinds = sorted(m.kind for m in device.addressable_memories())
    assert kinds == ["device", "pinned_host", "unpinned_host"]
    there = jax.sharding.SingleDeviceSharding(device, memory_kind="pinned_host")
    here = jax.sharding.SingleDeviceSharding(device, memory_kind="device")
    x = jax.device_put(jnp.arange(8.0), there)
    assert x.sharding.memory_kind == "pinned_host"
    y = jax.jit(lambda v: jax.device_put(v, here) * 2)(x)
    assert y.sharding.memory_kind == "device"
    z = jax.jit(lambda v: v + 1, out_shardings=there)(jnp.arange(3.0))
    assert z.sharding.memory_kind == "pinned_host"
    return [x, y, z, jax.device_put(z, here)]


@program
def layouts():
    x = normal(3, 5)
    formatted = jax.jit(lambda a: a * 2).lower(x).compile()
    chosen = formatted.output_formats
    assert chosen.layout.major_to_minor == (0, 1)
    assert x.format.layout.major_to_minor == (0, 1)
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    row_major = layout.Format(layout.Layout((0, 1)), here)
    automatic = jax.jit(lambda a: a.T, in_shardings=layout.Format(layout.Layout.AUTO, here))
    program_of_any = automatic.lower(jax.ShapeDtypeStruct((3, 5), jnp.float32)).compile()
    assert program_of_any.input_formats[0][0].layout.major_to_minor == (0, 1)
    found = [jax.device_put(x, row_major), program_of_any(x)]
    column_major = layout.Format(layout.Layout((1, 0)), here)
    # haloc has row-major arrays only, and says so; it never takes one order for another.
    try:
        found.append(np.asarray(jax.jit(lambda a: a + 1, out_shardings=column_major)(x)))
    except jax.errors.JaxRuntimeError as error:
        assert "UNIMPLEMENTED: layout {0,1} of result 0" in str(error)
        found.append(x + 1)
    return found


@program
def what_is_compiled():
    compiled = jax.jit(lambda a, b: jnp.tanh(a @ b)).lower(normal(8, 4), normal(4, 8)).compile()
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 256
    assert memory.output_size_in_bytes == 256
    assert compiled.runtime_executable().size_of_generated_code_in_bytes() >= 0
    return compiled(normal(8, 4), normal(4, 8))


@program
def views_of_arrays():
    x = jnp.arange(6.0).reshape(2, 3)
    assert x.unsafe_buffer_pointer() > 0
    assert x.nbytes == 24
    assert x.on_device_size_in_bytes() == 24
    assert isinstance(jax.devices()[0].memory_stats(), dict | None)
    gc.collect()
    return [
        np.asarray(x),
        np.array(x, copy=True),
        x.__array__(),
        list(x),
        float(x[1, 1]),
        x.item(4),
    ]
