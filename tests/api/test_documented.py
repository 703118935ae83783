"""haloc has every documented name, takes what its documents say, and tests use it."""

from __future__ import annotations

import ast
import inspect

import pytest

from haloc import xla_client
from tests.api.documented_names import Name, documented_names, faults_of

NAMES = documented_names()
IDS = [f"{name.module[1:]}.{name.path}" for name in NAMES]


def test_names_of_all_documents_are_there() -> None:
    assert len(NAMES) > 300
    assert {"Client", "CompileOptions.ParseFromString", "get_compile_options"} <= {
        n.path for n in NAMES
    }


@pytest.mark.parametrize("name", NAMES, ids=IDS)
def test_it_exists_as_documented(name: Name) -> None:
    assert callable(name.here()) or not isinstance(name.node, ast.FunctionDef)
    assert name.faults() == []


@pytest.mark.parametrize("name", NAMES, ids=IDS)
def test_a_test_uses_it(name: Name) -> None:
    assert name.used_in(), f"none of {name.tests} uses {name.path}"


@pytest.mark.parametrize(
    "name", [n for n in NAMES if n.module == ".xla_client"], ids=lambda n: n.path
)
def test_it_is_exported(name: Name) -> None:
    assert name.path.partition(".")[0] in xla_client.__all__


class TestFaults:
    """The comparison itself notices what differs."""

    @staticmethod
    def faults(documented: str, ours: str, **jaxlib: object) -> list[str]:
        stub = ast.parse(f"def f({documented}): ...").body[0]
        assert isinstance(stub, ast.FunctionDef)
        names: dict[str, object] = {}
        exec(f"def f({ours}): ...", names)
        return list(faults_of(stub.args, inspect.signature(names["f"]), jaxlib))

    def test_the_same(self) -> None:
        assert self.faults("a, b=1, **c", "a, b=1, **c") == []
        assert self.faults("a, b=...", "a, b=(), *, more=None") == []

    def test_names_and_order(self) -> None:
        assert self.faults("a, b", "b, a") == [
            "parameter 0 is b, not a",
            "parameter 1 is a, not b",
            "wants b, too",
            "wants a, too",
        ]
        assert self.faults("a, b", "a") == ["parameter 1 is None, not b"]
        assert self.faults("a, /", "other") == []
        assert self.faults("a", "a, b") == ["wants b, too"]

    def test_keywords(self) -> None:
        assert self.faults("a", "a, /") == ["a cannot be given by keyword"]
        assert self.faults("a, **b", "a") == ["takes no **b"]

    def test_defaults(self) -> None:
        assert self.faults("a=1", "a") == ["a has no default"]
        assert self.faults("a=1", "a=2") == ["a=2, not 1"]
        assert self.faults("a=1", "a=None") == ["a=None, not 1"]
        assert self.faults("a=1", "a=2", a=2) == []

    def test_both_spellings(self) -> None:
        assert self.faults("a", "b", a="b") == ["a cannot be given by keyword"]
        assert self.faults("a", "b, *, a=None", a="b") == []
