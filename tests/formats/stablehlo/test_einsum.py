"""stablehlo.einsum and unary_einsum against numpy.einsum."""

import numpy as np
import pytest

from haloc import interpreter
from haloc.errors import HloError
from haloc.formats.stablehlo import parse_stablehlo
from haloc.verifier import verify

SIZES = {"i": 3, "j": 4, "k": 2, "b": 5}


def type_of(letters: str) -> str:
    return f"tensor<{''.join(f'{SIZES[x]}x' for x in letters)}f32>"


def program(equation: str) -> tuple[str, list[np.ndarray]]:
    inputs, out = equation.split("->")
    operands = inputs.split(",")
    types = [type_of(o) for o in operands]
    names = [f"%a{n}" for n in range(len(types))]
    op = "einsum" if len(operands) == 2 else "unary_einsum"
    signature = ", ".join(f"{n}: {t}" for n, t in zip(names, types))
    text = f"""func.func @main({signature}) -> {type_of(out)} {{
      %0 = "stablehlo.{op}"({", ".join(names)}) <{{einsum_config = "{equation}"}}> :
        ({", ".join(types)}) -> {type_of(out)}
      return %0 : {type_of(out)}
    }}"""
    rng = np.random.default_rng(0)
    shapes = [tuple(SIZES[x] for x in o) for o in operands]
    return text, [rng.standard_normal(s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize(
    "equation",
    [
        "ij,jk->ik",
        "bij,bjk->kbi",
        "ij,ij->",
        "i,j->ji",
        "iij,jk->ik",
        "ijb,jk->ik",
        "ii,kk->ik",
        "bib,jjk->",
        "iii,ik->k",
        "ii->i",
        "ii->",
        "ijj->ji",
        "ijk->ki",
        "ij->ij",
    ],
)
def test_equation(equation):
    text, arrays = program(equation)
    module = parse_stablehlo(text)
    verify(module)
    wanted = np.einsum(equation, *arrays)
    np.testing.assert_allclose(interpreter.run(module, arrays), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "fault"),
    [("ij,jk->ii", "the equation 'ij,jk->ii'"), ("ij,jk->ib", "the equation 'ij,jk->ib'")],
)
def test_refused(equation, fault):
    with pytest.raises(HloError) as error:
        parse_stablehlo(program(equation)[0])
    assert fault in str(error.value)


def test_one_letter_two_sizes():
    text, _ = program("ii,ij->j")
    with pytest.raises(HloError, match="einsum: i stands for dimensions of 3 and 7"):
        parse_stablehlo(text.replace("tensor<3x3xf32>", "tensor<3x7xf32>"))
