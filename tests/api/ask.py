"""Asks an implementation of the API questions, and prints its answers.

Runs with the standard library and the implementation alone: also in the environment of an old
jaxlib, which knows nothing of haloc.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import sys
import warnings
from pathlib import Path
from typing import Any

DEVICE_COUNT = 4
HERE = Path(__file__).parent

Answer = dict[str, str]


def questions() -> dict[str, dict[str, str]]:
    """{section: {name: code}}: the sections are the files beside this one."""
    found = {}
    for path in sorted((HERE / "questions").glob("[a-z]*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found[path.stem] = module.QUESTIONS
    return found


def jaxlib_names() -> dict[str, Any]:
    import jax  # noqa: PLC0415  # the implementation is chosen at run time
    from jax import sharding  # noqa: PLC0415
    from jaxlib import _jax, xla_client  # noqa: PLC0415

    client = xla_client.make_cpu_client(num_devices=DEVICE_COUNT)
    # Arrays belong to jax's own client wherever jax fills in what jaxlib leaves out.
    jax.config.update("jax_num_cpu_devices", DEVICE_COUNT)
    jax.config.update("jax_enable_x64", True)
    names = {n: getattr(_jax, n) for n in dir(_jax) if not n.startswith("_")}
    names |= {n: getattr(_jax.pmap_lib, n) for n in dir(_jax.pmap_lib) if n[0].isupper()}
    names |= {n: getattr(xla_client, n) for n in dir(xla_client) if not n.startswith("_")}
    del client
    names |= {
        "Mesh": sharding.Mesh,
        "XlaRuntimeError": _jax.XlaRuntimeError,
        "client": jax.devices()[0].client,
        "make_aval": lambda shape, dtype: jax.core.ShapedArray(shape, dtype),
    }
    return names


def haloc_names() -> dict[str, Any]:
    from haloc import xla_client  # noqa: PLC0415

    names = {n: getattr(xla_client, n) for n in dir(xla_client) if not n.startswith("_")}
    names |= {
        "client": xla_client.make_cpu_client(num_devices=DEVICE_COUNT),
        "make_aval": xla_client.ShapedArray,
    }
    return names


def namespace(implementation: str) -> dict[str, Any]:
    """What the questions may use: the API's names, np, ml_dtypes, pickle, put, aval, ..."""
    import pickle  # noqa: PLC0415

    import ml_dtypes  # noqa: PLC0415
    import numpy as np  # noqa: PLC0415

    names = jaxlib_names() if implementation == "jaxlib" else haloc_names()
    client = names["client"]
    devices = client.devices()
    names |= {"np": np, "ml_dtypes": ml_dtypes, "pickle": pickle, "devices": devices}

    def put(value: Any, device: int | None = None) -> Any:
        """A copy of a value on the device of this number."""
        where = None if device is None else devices[device]
        return client.buffer_from_pyval(np.asarray(value), where, force_copy=True)

    def aval(*shape: int, dtype: str = "float32") -> Any:
        return names["make_aval"](shape, np.dtype(dtype))

    def mesh(**axes: int) -> Any:
        count = int(np.prod([*axes.values()]))
        grid = np.array(devices[:count], object).reshape([*axes.values()])
        return names["Mesh"](grid, tuple(axes))

    return names | {"put": put, "aval": aval, "mesh": mesh}


def answer(code: str, names: dict[str, Any]) -> Answer:
    """The repr of the code's last expression, or its error."""
    tree = ast.parse(code.strip())
    if isinstance(tree.body[-1], ast.Expr):
        tree.body.append(ast.parse(f"answer = {ast.unparse(tree.body.pop())}").body[0])
    scope = names | {"answer": None}
    try:
        exec(compile(tree, "<question>", "exec"), scope)
        return {"value": _without_addresses(repr(scope["answer"]))}
    except Exception as error:
        known = isinstance(error, names["XlaRuntimeError"])
        kind = "XlaRuntimeError" if known else type(error).__name__
        return {"error": kind, "message": _without_addresses(str(error))}


def _without_addresses(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)


def main(implementation: str) -> None:
    """Questions are pairs of section and name, as JSON on standard input; each answer is printed
    as soon as it is known: an implementation may crash on the next question."""
    os.environ.pop("XLA_FLAGS", None)
    asked = questions()
    names = namespace(implementation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for section, name in json.load(sys.stdin):
            found = answer(asked[section][name], names)
            print(json.dumps([section, name, found]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
