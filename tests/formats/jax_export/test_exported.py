"""Exported functions run natively and agree with JAX, for several sizes and platforms."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import haloc
from haloc.cli.main import main
from haloc.errors import HloParseError, InvalidArgumentError, UnimplementedError
from haloc.formats.jax_export import (
    Aval,
    Custom,
    DisabledCheck,
    NamedSharding,
    dimensions,
    is_artifact,
    read_artifact,
    read_exported,
)
from tests.formats.jax_export.programs import PROGRAMS, array, typed

RTOL, ATOL = 2e-5, 2e-5
"""f32 sums and elementary functions in another order than XLA's."""


def exported(function, types, platforms=None, **options):
    return export.export(jax.jit(function), platforms=platforms, **options)(*types)


def plain(value):
    """A random key as its bits; anything else as it is."""
    if hasattr(value, "dtype") and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(value))
    return value


def check(program):
    function, types, argument_sets, *rest = program
    artifact = exported(function, types, *rest)
    ours = haloc.load_exported(bytes(artifact.serialize()))
    for arguments in argument_sets:
        want = artifact.call(*arguments)
        got = ours.call(*jax.tree.map(plain, arguments))
        assert jax.tree.structure(got) == jax.tree.structure(want)
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            assert np.asarray(a).dtype == b.dtype
            np.testing.assert_allclose(np.asarray(a), b, RTOL, ATOL)


@pytest.mark.parametrize("name", list(PROGRAMS)[::3])
def test_some_agree(name):
    check(PROGRAMS[name])


@pytest.mark.nightly
@pytest.mark.parametrize("name", PROGRAMS)
def test_all_agree(name):
    check(PROGRAMS[name])


# --- Fields --------------------------------------------------------------------------------------


def test_fields():
    mesh = jax.sharding.AbstractMesh((4,), ("x",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", None))
    artifact = exported(
        lambda x, d: ({"out": (x + 1, d["a"] * 2), "n": None}, [x]),
        [
            jax.ShapeDtypeStruct((8, 3), jnp.float32, sharding=split),
            {"a": typed((4,), jnp.bfloat16), "z": typed((), bool)},
        ],
        disabled_checks=[export.DisabledSafetyCheck.custom_call("foo")],
    )
    fields = read_artifact(bytes(artifact.serialize(vjp_order=1)))
    assert fields.function_name == "<lambda>"
    assert fields.calling_convention_version == artifact.calling_convention_version
    assert fields.platforms == ("cpu",)
    assert fields.nr_devices == 4
    assert fields.in_avals == (
        Aval((8, 3), "f32"),
        Aval((4,), "bf16"),
        Aval((), "pred"),
    )
    assert [str(a) for a in fields.out_avals] == ["f32[8,3]", "bf16[4]", "f32[8,3]"]
    assert str(fields.in_tree) == "((*, {'a': *, 'z': *}), {})"
    assert str(fields.out_tree) == "({'n': None, 'out': (*, *)}, [*])"
    assert fields.module_kept_variables == artifact.module_kept_var_idx == (0, 1)
    assert fields.in_shardings[0] == NamedSharding((("x", 4),), (("x",), ()))
    assert fields.in_shardings[1:] == (None, None)
    assert fields.disabled_checks == (DisabledCheck("foo"),)
    assert fields.ordered_effects == fields.unordered_effects == ()
    assert not fields.uses_global_constants
    assert fields.module == artifact.mlir_module_serialized
    assert fields.has_vjp and not fields.vjp.has_vjp


DTYPES = {
    "bool": "pred", "int8": "s8", "int16": "s16", "int32": "s32", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "float16": "f16", "float32": "f32", "complex64": "c64", "bfloat16": "bf16",
    "int4": "s4", "uint4": "u4", "float8_e3m4": "f8e3m4", "float8_e4m3": "f8e4m3",
    "float8_e4m3b11fnuz": "f8e4m3b11fnuz", "float8_e4m3fn": "f8e4m3fn",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2": "f8e5m2", "float8_e5m2fnuz": "f8e5m2fnuz",
    "float8_e8m0fnu": "f8e8m0fnu", "float4_e2m1fn": "f4e2m1fn",
}  # fmt: skip


@pytest.mark.parametrize("name", DTYPES)
def test_element_types(name):
    artifact = exported(lambda x: x, [typed((2,), jnp.dtype(name))])
    aval = read_artifact(bytes(artifact.serialize())).in_avals[0]
    assert aval == Aval((2,), DTYPES[name])
    assert aval.element_type.name == DTYPES[name]


def test_symbolic_sizes():
    artifact = exported(lambda x: x, [typed("a, 2*b + 1, 3")])
    ours = read_exported(bytes(artifact.serialize()))
    assert ours.in_avals == (Aval(("a", "2*b + 1", 3), "f32"),)
    assert ours.symbols == ("a", "b")


class Pair:
    def __init__(self, x, y):
        self.x, self.y = x, y


jax.tree_util.register_pytree_node(
    Pair, lambda p: ((p.x, p.y), "aux"), lambda _, parts: Pair(*parts)
)
export.register_pytree_node_serialization(
    Pair,
    serialized_name="test.Pair",
    serialize_auxdata=lambda aux: aux.encode(),
    deserialize_auxdata=lambda data: data.decode(),
)


def test_custom_nodes():
    artifact = exported(lambda p: Pair(p.y, p.x + 1), [Pair(typed((2,)), typed(()))])
    ours = haloc.load_exported(bytes(artifact.serialize()))
    result = ours.call((np.ones(2, np.float32), np.float32(3)))
    assert isinstance(result, Custom)
    assert (result.name, result.auxdata) == ("test.Pair", b"aux")
    assert float(result.children[0]) == 3
    np.testing.assert_array_equal(np.asarray(result.children[1]), [2, 2])


def test_keywords():
    artifact = export.export(jax.jit(lambda x, *, y: x - y))(typed(()), y=typed(()))
    ours = haloc.load_exported(bytes(artifact.serialize()))
    assert float(ours.call(5.0, y=2.0)) == 3


def test_vjp():
    artifact = exported(lambda x: jnp.sin(x) * x, [typed("n")])
    ours = haloc.load_exported(bytes(artifact.serialize(vjp_order=1)))
    x, ct = array(3), array(3)
    (got,) = ours.vjp().call(x, ct)
    (want,) = artifact.vjp().call(x, ct)
    np.testing.assert_allclose(np.asarray(got), want, RTOL, ATOL)
    with pytest.raises(InvalidArgumentError, match="exported without its derivative"):
        ours.vjp().vjp()


# --- What does not fit ---------------------------------------------------------------------------


def message_of(call, kind=InvalidArgumentError):
    with pytest.raises(kind) as caught:
        call()
    return caught.value.message


@pytest.fixture(scope="module")
def square():
    artifact = exported(lambda x: x.sum(1), [typed("b, 2*b")])
    return haloc.load_exported(bytes(artifact.serialize()))


def test_sizes_that_break_the_constraints(square):
    message = message_of(lambda: square.call(array(2, 5)))
    assert "Input shapes do not match the polymorphic shapes specification" in message
    assert "= 5" in message, "the numbers are filled in"


def test_wrong_rank(square):
    message = message_of(lambda: square.call(array(2)))
    assert message == "flat argument 0 of '<lambda>' has sizes [2], expected f32[b,2*b]"


def test_wrong_element_type(square):
    message = message_of(lambda: square.call(np.ones((1, 2))))
    assert message == "flat argument 0 of '<lambda>' is float64[1, 2], expected f32[b,2*b]"


def test_wrong_tree(square):
    message = message_of(lambda: square.call(array(1, 2), array(1, 2)))
    assert message.startswith("arguments[0]: found a tuple of 2, expected (*,)")


def test_sizes_left_out(square):
    message = message_of(square.to_hlo)
    assert message == "'<lambda>' has symbolic sizes (f32[b,2*b]): argument_shapes is needed"


def test_wrong_platform():
    artifact = exported(lambda x: x, [typed(())], ["cuda", "tpu"])
    ours = haloc.load_exported(bytes(artifact.serialize()))
    message = message_of(lambda: ours.call(1.0))
    assert message == "'<lambda>' was exported for cuda, tpu, not for cpu"


def test_platform_check_switched_off():
    checks = [export.DisabledSafetyCheck.platform()]
    artifact = exported(lambda x: x + 1, [typed(())], ["tpu"], disabled_checks=checks)
    assert float(haloc.load_exported(bytes(artifact.serialize())).call(1.0)) == 2


class LoudEffect(jax._src.effects.Effect):
    __str__ = lambda self: "Loud"  # noqa: E731

    def __eq__(self, other):
        return isinstance(other, LoudEffect)

    def __hash__(self):
        return hash(LoudEffect)


def test_ordered_effects_are_refused():
    effects = jax._src.effects
    for kinds in (effects.lowerable_effects, effects.ordered_effects):
        kinds.add_type(LoudEffect)
    primitive = jax._src.core.Primitive("loud")

    @primitive.def_effectful_abstract_eval
    def typed_loud(x):
        return x, {LoudEffect()}

    def lower(context, x):
        tokens = context.tokens_in.get(LoudEffect())
        context.set_tokens_out(jax._src.interpreters.mlir.TokenSet({LoudEffect(): tokens}))
        return [x]

    jax.interpreters.mlir.register_lowering(primitive, lower)
    artifact = exported(primitive.bind, [typed(())])
    ours = haloc.load_exported(bytes(artifact.serialize()))
    message = message_of(lambda: ours.call(1.0), UnimplementedError)
    assert "has ordered effects (" in message and "LoudEffect" in message


# --- Files ---------------------------------------------------------------------------------------

WITHOUT_JAX = """
import sys
for name in ("jax", "jaxlib", "flatbuffers"):
    sys.modules[name] = None          # importing it fails
import numpy as np
import haloc
f = haloc.load_exported(sys.argv[1])
for n in (2, 5):
    x = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
    np.testing.assert_allclose(np.asarray(f.call(x)["y"]), np.tanh(x).sum(0), 1e-5)
assert not [n for n, m in sys.modules.items() if m and n.split(".")[0] in ("jax", "jaxlib")]
print("ran", f)
"""


def test_without_jax(tmp_path):
    """A model runs natively where jax cannot be imported."""
    artifact = exported(lambda x: {"y": jnp.tanh(x).sum(0)}, [typed("b,3")])
    path = tmp_path / "model.bin"
    path.write_bytes(artifact.serialize())
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JAX, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ran <exported <lambda>(f32[b,3]) -> (f32[3])>\n"


@pytest.mark.parametrize("stop", [0, 1, 7, 8, 40, 200, -100])
def test_truncated(stop):
    data = bytes(exported(lambda x: x + 1, [typed("b,3")]).serialize())[:stop]
    with pytest.raises(HloParseError, match=r"jax\.export artifact|MLIR bytecode"):
        read_exported(data)


def mutated(data, rng):
    out = bytearray(data)
    for _ in range(rng.integers(1, 4)):
        at = int(rng.integers(len(out)))
        out[at] = rng.integers(256)
    return bytes(out)


@pytest.mark.parametrize("count", [500, pytest.param(20_000, marks=pytest.mark.nightly)])
def test_mutations(count):
    """Whatever the bytes are, reading and refining end with an HloError or a program."""
    artifact = exported(lambda x, y: {"a": x @ x.T + y}, [typed("b,3"), typed(())], ["cpu", "cuda"])
    data = bytes(artifact.serialize())
    rng = np.random.default_rng(count)
    for number in range(count):
        bad = mutated(data, rng)
        is_artifact(bad)
        try:
            ours = read_exported(bad)
            ours.refined("cpu", [(4, 3), ()])
        except (HloParseError, InvalidArgumentError, UnimplementedError):
            pass
        except Exception as error:
            error.add_note(f"mutation {number}: {bad.hex()}")
            raise


# --- Sizes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("b", 7),
        ("2*b + 1", 15),
        ("b^2 - a", 46),
        ("floordiv(b, 2)", 3),
        ("mod(-1*b, 4)", 1),
        ("max(0, a - b) + min(a, b)", 3),
        ("-1 + b", 6),
    ],
)
def test_expressions(expression, wanted):
    assert dimensions.value(expression, {"a": 3, "b": 7}) == wanted


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("c", "size 'c': no value given for dimension variable 'c'"),
        ("a - b", "size 'a - b' is -4, below zero"),
        ("floordiv(a, a - a)", "size 'floordiv(a, a - a)' divides by zero"),
        ("a.b", "size 'a.b' is no expression of dimension variables"),
        ("f(a)", "size 'f(a)' is no expression of dimension variables"),
        ("a +", "size 'a +' is no expression of dimension variables"),
        ("'a'", "size \"'a'\" is no expression of dimension variables"),
    ],
)
def test_bad_expressions(expression, message):
    assert message_of(lambda: dimensions.value(expression, {"a": 3, "b": 7})) == message


def test_argument_shapes(square):
    exported_function = square.exported
    assert exported_function.argument_shapes(b=3) == [(3, 6)]
    message = message_of(lambda: exported_function.argument_shapes(c=3))
    assert message == "'<lambda>' has no dimension variable 'c'; it has b"
    message = message_of(exported_function.argument_shapes)
    assert message == "size 'b': no value given for dimension variable 'b'"


def test_run_command(tmp_path, capsys):
    path = tmp_path / "model.bin"
    path.write_bytes(exported(lambda x: x.sum(1), [typed("b, 2*b")]).serialize())
    assert main(["run", str(path), "--size", "b=3", "--random", "--check"]) == 0
    printed = capsys.readouterr().out
    assert "output 0: float32[3] " in printed
    assert "check output 0: ok" in printed
    np.save(tmp_path / "x.npy", np.ones((2, 4), np.float32))
    assert main(["run", str(path), "--size", "b=2", "-i", str(tmp_path / "x.npy")]) == 0
    assert "[4., 4.]" in capsys.readouterr().out
    assert main(["run", str(path), "--random"]) == 1
    assert "has symbolic sizes (f32[b,2*b])" in capsys.readouterr().err
