"""Compiling, executing, donation, and what an executable says about itself."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

import numpy as np
import pytest

from haloc.xla_client import (
    ArrayImpl,
    Client,
    CompileOptions,
    LoadedExecutable,
    Token,
    XlaRuntimeError,
    make_interpreter_client,
)
from tests.runtime.programs import ADD, DONATE, DONATE_MEMBER, LOOP, SWAP, TUPLES

Load = Callable[[str], LoadedExecutable]
Put = Callable[..., ArrayImpl]


def ones(count: int = 3) -> np.ndarray:
    return np.ones(count, np.float32)


@pytest.mark.parametrize("form", [str, str.encode], ids=["str", "bytes"])
def test_hlo_text_in_numbers_out(client: Client, form: Callable) -> None:
    executable = client.compile_and_load(form(ADD), executable_devices=client.devices())
    a = client.buffer_from_pyval(np.array([1, 2, 3], np.float32))
    b = client.buffer_from_pyval(np.array([4, 5, 6], np.float32))
    (result,) = executable.execute([a, b])
    assert np.array(result).tolist() == [5, 7, 9]
    assert result.dtype == np.float32
    assert result.committed
    assert result.devices() == {client.devices()[0]}


def test_tuples_are_flattened(load: Load, put: Put) -> None:
    arguments = [put(np.array([1, 2], np.float32)), put(np.int32(21)), put(ones(0))]
    x, m, z = load(TUPLES).execute(arguments)
    assert np.asarray(x).tolist() == [1, 2]
    assert int(m) == 42
    assert z.shape == (0,)


def test_a_loop(load: Load, put: Put) -> None:
    (result,) = load(LOOP).execute([put(ones(4))])
    assert np.asarray(result).tolist() == [1024] * 4


def test_no_outputs(load: Load) -> None:
    assert load("HloModule m\nENTRY e { ROOT t = () tuple() }").execute([]) == []


def test_a_parameter_as_result_is_a_copy(load: Load, put: Put) -> None:
    x = put(ones())
    (result,) = load("HloModule m\nENTRY e { ROOT x = f32[3] parameter(0) }").execute([x])
    assert result.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()
    assert np.asarray(result).tolist() == [1, 1, 1]


def test_one_argument_for_two_parameters(load: Load, put: Put) -> None:
    x = put(ones())
    (result,) = load(ADD).execute((x, x))
    assert np.asarray(result).tolist() == [2, 2, 2]


def test_sharded_on_one_device(load: Load, put: Put) -> None:
    executable = load(ADD)
    results = executable.execute_sharded([[put(ones())], [put(ones())]], with_tokens=True)
    assert len(results) == 1
    results.consume_token().block_until_ready()
    with pytest.raises(ValueError, match="token already consumed"):
        results.consume_token()
    ((result,),) = results.disassemble_into_single_device_arrays()
    assert np.asarray(result).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="ExecuteResults already exploded"):
        len(results)


def test_results_in_parts(load: Load, put: Put) -> None:
    x, y = put(ones(1000)), put(ones(1000))
    results = load(DONATE).execute_sharded([x, y])
    with pytest.raises(ValueError, match="5 > 2"):
        results.disassemble_prefix_into_single_device_arrays(5)
    assert len(results.disassemble_prefix_into_single_device_arrays(1)) == 1
    with pytest.raises(ValueError, match="out_handlers and num_results: 0 vs 1"):
        results.consume_with_handlers([])
    assert results.consume_with_handlers([len]) == [1]


def test_execute_with_token(load: Load, put: Put) -> None:
    (result,), token = load(ADD).execute_with_token([put(ones()), put(ones())])
    assert isinstance(token, Token)
    assert token.block_until_ready() is None
    assert token.block_until_ready() is None
    assert np.asarray(result).tolist() == [2, 2, 2]


class TestDonation:
    def test_the_argument_is_consumed_and_its_memory_used(self, load: Load, put: Put) -> None:
        x, y = put(ones(1000)), put(ones(1000))
        pointer = x.unsafe_buffer_pointer()
        total, difference = load(DONATE).execute([x, y])
        assert x.is_deleted()
        assert not y.is_deleted()
        assert total.unsafe_buffer_pointer() == pointer
        assert (np.asarray(total) == 2).all()
        assert (np.asarray(difference) == 0).all()

    def test_a_view_of_the_argument_stays_valid(self, load: Load, put: Put) -> None:
        x, y = put(ones(1000)), put(ones(1000))
        view = np.asarray(x)
        total, _ = load(DONATE).execute([x, y])
        assert x.is_deleted()
        assert (view == 1).all()
        assert (np.asarray(total) == 2).all()

    def test_a_clone_of_the_argument_stays_valid(self, load: Load, put: Put) -> None:
        x, y = put(ones(1000)), put(ones(1000))
        clone = x.clone()
        load(DONATE).execute([x, y])
        assert (np.asarray(clone) == 1).all()

    def test_a_clone_may_be_the_other_argument(self, load: Load, put: Put) -> None:
        x = put(ones(1000))
        total, difference = load(DONATE).execute([x, x.clone()])
        assert (np.asarray(total) == 2).all()
        assert (np.asarray(difference) == 0).all()

    def test_numpy_memory_is_never_written(self, client: Client, load: Load, put: Put) -> None:
        raw = np.ones(1100, np.float32)
        start = -raw.ctypes.data % 64 // 4
        data = raw[start : start + 1000]
        x = client.buffer_from_pyval(data)
        assert x.unsafe_buffer_pointer() == data.ctypes.data
        total, _ = load(DONATE).execute([x, put(ones(1000))])
        assert (np.asarray(total) == 2).all()
        assert (data == 1).all()

    def test_the_donated_array_cannot_be_used_twice(self, load: Load, put: Put) -> None:
        executable = load(DONATE)
        x, y = put(ones(1000)), put(ones(1000))
        executable.execute([x, y])
        with pytest.raises(XlaRuntimeError, match="argument 0: buffer has been deleted or donated"):
            executable.execute([x, y])

    def test_nor_in_the_same_call(self, load: Load, put: Put) -> None:
        x = put(ones(1000))
        with pytest.raises(XlaRuntimeError, match=r"flattened argument 1, .*first use: 0"):
            load(DONATE).execute([x, x])
        assert not x.is_deleted()

    def test_results_may_trade_places(self, load: Load, put: Put) -> None:
        x, y = put(ones(4)), put(2 * ones(4))
        first, second = load(SWAP).execute([x, y])
        assert np.asarray(first).tolist() == [2] * 4
        assert np.asarray(second).tolist() == [1] * 4

    def test_a_member_beside_a_token(self, load: Load, put: Put) -> None:
        x, y = put(ones(3)), put(ones(5))
        total, kept = load(DONATE_MEMBER).execute([x, y])
        assert np.asarray(total).tolist() == [2] * 5
        assert np.asarray(kept).tolist() == [1] * 3
        assert (x.is_deleted(), y.is_deleted()) == (False, True)

    def test_alias_bytes_are_counted_once_in_the_peak(self, load: Load) -> None:
        stats = load(DONATE).get_compiled_memory_stats()
        assert stats.alias_size_in_bytes == 4000
        assert stats.peak_memory_in_bytes == 8000 + 8016 + stats.temp_size_in_bytes - 4000


class TestWhatItSays:
    def test_memory_stats(self, load: Load) -> None:
        stats = load(ADD).get_compiled_memory_stats()
        assert (stats.argument_size_in_bytes, stats.output_size_in_bytes) == (24, 12)
        assert str(stats).startswith("CompiledMemoryStats(generated_code_size_in_bytes=")
        assert "argument_size_in_bytes=24, output_size_in_bytes=12, alias_size" in str(stats)

    def test_a_tuple_adds_eight_bytes_a_member(self, load: Load) -> None:
        text = """HloModule m
        ENTRY e {
          x = f32[2] parameter(0)
          y = f32[] parameter(1)
          ROOT t = (f32[2], f32[]) tuple(x, y)
        }"""
        assert load(text).get_compiled_memory_stats().output_size_in_bytes == 8 + 4 + 16

    def test_code_size(self, client: Client, load: Load) -> None:
        size = load(ADD).size_of_generated_code_in_bytes()
        assert size > 0 if client.platform == "cpu" else size == 0

    def test_cost(self, load: Load) -> None:
        costs = load(ADD).cost_analysis()
        assert costs["flops"] == 3
        assert costs["bytes accessed"] == 36

    def test_modules_layouts_kinds(self, client: Client, load: Load) -> None:
        executable = load(ADD)
        (module,) = executable.hlo_modules()
        assert module.name == "add_module"
        assert module.to_string().startswith("HloModule add_module")
        assert module.computations()[-1].name == "add_computation"
        assert [str(x) for x in executable.get_parameter_layouts()] == ["{0}", "{0}"]
        assert [str(x) for x in executable.get_output_layouts()] == ["{0}"]
        assert executable.get_output_memory_kinds() == [["device"]]
        assert executable.get_parameter_shardings() is None
        assert executable.get_output_shardings() is None
        assert executable.local_devices() == client.devices()
        assert executable.client is client

    def test_fingerprint(self, load: Load) -> None:
        fingerprint = load(ADD).fingerprint
        assert fingerprint.isdigit()
        assert load(ADD).fingerprint == fingerprint
        assert load(ADD.replace("add(x", "subtract(x")).fingerprint != fingerprint

    def test_keep_alive(self, load: Load) -> None:
        class Marker:
            gone = False

            def __del__(self) -> None:
                Marker.gone = True

        executable = load(ADD)
        executable.keep_alive(Marker())
        gc.collect()
        assert not Marker.gone
        del executable
        gc.collect()
        assert Marker.gone

    def test_an_executable_that_is_not_loaded(self, client: Client) -> None:
        executable = client.compile(ADD, client.devices())
        assert executable.hlo_modules()[0].name == "add_module"
        assert executable.get_compiled_memory_stats().argument_size_in_bytes == 24
        assert not hasattr(executable, "execute")


def test_live_executables_newest_first(client: Client, load: Load) -> None:
    first, second = load(ADD), load(LOOP)
    assert client.live_executables() == [second, first]
    del second
    gc.collect()
    assert client.live_executables() == [first]


def test_it_runs_on_the_device_listed() -> None:
    client = make_interpreter_client(num_devices=3)
    executable = client.compile_and_load(ADD, client.devices()[1:2])
    assert executable.local_devices() == [client.devices()[1]]
    x = client.buffer_from_pyval(ones(), client.devices()[1])
    (result,) = executable.execute([x, x], device=client.devices()[1])
    assert result.device is client.devices()[1]
    with pytest.raises(XlaRuntimeError, match="loaded on InterpreterDevice"):
        executable.execute([x, x], device=client.devices()[0])


def test_a_module_can_be_compiled_again(client: Client, load: Load, put: Put) -> None:
    module = load(ADD).hlo_modules()[0]
    (result,) = client.compile_and_load(module, client.devices()).execute([put(ones())] * 2)
    assert np.asarray(result).tolist() == [2, 2, 2]


def test_threads_may_share_an_executable(load: Load, put: Put) -> None:
    executable = load(LOOP)
    wrong = []

    def work(start: float) -> None:
        for _ in range(20):
            (result,) = executable.execute([put(np.full(4, start, np.float32))])
            if np.asarray(result).tolist() != [start * 1024] * 4:
                wrong.append(start)

    threads = [threading.Thread(target=work, args=(float(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_progress_is_told(client: Client) -> None:
    stages: list[str] = []
    client.compile_and_load(
        ADD, client.devices(), on_progress=lambda stage, done, total: stages.append(stage)
    )
    assert stages[:2] == ["parse", "verify"]


def test_a_forgotten_spec_only_costs_a_slower_check(client: Client, load: Load, put: Put) -> None:
    x = put(ones())
    client.devices()[0].default_memory()._specs.clear()
    executable = load(ADD)
    assert executable._parameter_specs[0] is not x._spec
    (result,) = executable.execute([x, x])
    assert np.asarray(result).tolist() == [2, 2, 2]


def test_outputs_reuse_memory(load: Load, put: Put) -> None:
    x, y = put(ones()), put(ones())
    executable = load(ADD)
    pointers = {executable.execute([x, y])[0].unsafe_buffer_pointer() for _ in range(50)}
    assert len(pointers) <= 2


def test_options_may_be_given_by_position(client: Client) -> None:
    client.compile_and_load(ADD, client.devices(), CompileOptions())
