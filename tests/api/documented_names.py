"""The names that the documents describe (the stubs in `documented/`), beside haloc's."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
STUBS = Path(__file__).parent / "documented"

_ABSENT = object()
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_KEYWORD = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_USES = {"__len__": r"\blen\(", "__str__": r"\bstr\("}
"""How the methods are used that are not called by their names."""


@dataclass(frozen=True)
class Name:
    """A documented name. path: "Client.compile". node: its stub; a field's is an annotation.
    tests: files and folders to look for its use in. jaxlib: (parameter, jaxlib's name of it or
    its default there). later: what is missing for it to do more than raise UnimplementedError."""

    module: str
    path: str
    node: ast.FunctionDef | ast.ClassDef | ast.AnnAssign
    tests: tuple[str, ...] = ()
    jaxlib: tuple[tuple[str, Any], ...] = ()
    later: str = ""

    @property
    def own(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def documented(self) -> str:
        """The signature in the documents, without `self`."""
        if isinstance(self.node, ast.AnnAssign):
            return f": {ast.unparse(self.node.annotation)}"
        if isinstance(self.node, ast.ClassDef):
            return "class"
        arguments = ast.unparse(self._arguments())
        returns = f" -> {ast.unparse(self.node.returns)}" if self.node.returns else ""
        return f"({arguments}){returns}"

    def _arguments(self) -> ast.arguments:
        assert isinstance(self.node, ast.FunctionDef)
        given = self.node.args
        fields = dict(ast.iter_fields(given))
        for kind in ("posonlyargs", "args"):
            if fields[kind] and fields[kind][0].arg == "self":
                return ast.arguments(**{**fields, kind: fields[kind][1:]})
        return given

    def here(self) -> Any:
        """What haloc has by this name; AttributeError if it has nothing. A field that only
        instances have is given as None."""
        found = importlib.import_module(f"haloc{self.module}")
        for part in self.path.split("."):
            own = inspect.getattr_static(found, part, _ABSENT)
            if own is _ABSENT and isinstance(found, type) and part in _instance_fields(found):
                return None
            found = getattr(found, part)
        return found

    def signature_here(self) -> inspect.Signature | None:
        """haloc's signature, without `self`; None for what is not called."""
        if not isinstance(self.node, ast.FunctionDef):
            return None
        if self.own == "__init__":
            return inspect.signature(replace(self, path=self.path.rpartition(".")[0]).here())
        own = inspect.signature(self.here())
        parameters = list(own.parameters.values())
        if parameters and parameters[0].name == "self":
            own = own.replace(parameters=parameters[1:])
        return own

    def text_here(self) -> str:
        """haloc's signature without types; "same" if it is the documented one."""
        ours = self.signature_here()
        if ours is None:
            return "same"
        bare = [p.replace(annotation=p.empty) for p in ours.parameters.values()]
        text = str(ours.replace(parameters=bare, return_annotation=ours.empty))
        text = re.sub(r"<(?:function )?([\w.]+)(?:: | at ).*?>", r"\1", text)
        return "same" if text == f"({ast.unparse(_without_types(self._arguments()))})" else text

    def faults(self) -> list[str]:
        """What of the documented ways to call it fails here."""
        ours = self.signature_here()
        return [] if ours is None else list(faults_of(self._arguments(), ours, dict(self.jaxlib)))

    def used_in(self) -> str:
        """The first test file that uses it, or, for a class, a member of it; "" if none does."""
        parent, _, own = self.path.rpartition(".")
        name = rf"[.'\"]{own}\b" if parent else rf"\b{own}\b"
        if own == "__init__":
            name = rf"\b{parent}\("
        pattern = re.compile(_USES.get(own, name))
        for place in self.tests:
            root = TESTS / place
            for file in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
                if file.exists() and pattern.search(file.read_text()):
                    return str(file.relative_to(TESTS.parent))
        if isinstance(self.node, ast.ClassDef):
            return next(filter(None, (m.used_in() for m in _names(self.node.body, self))), "")
        return ""


def _instance_fields(cls: type) -> set[str]:
    """Names that the class annotates or that `__init__` gives to `self`."""
    found: set[str] = set()
    for base in cls.__mro__[:-1]:
        given = re.findall(r"\bself\.(\w+)(?:: [^=\n]+)? = ", inspect.getsource(base))
        found |= {*inspect.get_annotations(base), *given}
    return found


def faults_of(
    documented: ast.arguments, ours: inspect.Signature, jaxlib: dict[str, Any]
) -> Iterator[str]:
    """What of the documented ways to call a function of the signature `ours` fails. jaxlib: as in
    `Name`."""
    parameters = list(ours.parameters.values())
    takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if documented.kwarg and not takes_any:
        yield f"takes no **{documented.kwarg.arg}"
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    keywords = {p.name for p in parameters if p.kind in _KEYWORD}
    wanted = [*documented.posonlyargs, *documented.args]
    defaults = [None] * (len(wanted) - len(documented.defaults)) + documented.defaults
    known = set()
    for place, (argument, default) in enumerate(zip(wanted, defaults, strict=True)):
        theirs = jaxlib.get(argument.arg, _ABSENT)
        names = {argument.arg, theirs} if isinstance(theirs, str) else {argument.arg}
        has_name = argument not in documented.posonlyargs
        own = positional[place] if place < len(positional) else None
        if own is None or (has_name and own.name not in names):
            yield f"parameter {place} is {own and own.name}, not {argument.arg}"
            continue
        known |= {own.name, *names}
        if has_name and not takes_any:
            yield from (f"{n} cannot be given by keyword" for n in sorted(names - keywords))
        if default is not None:
            yield from _default_faults(own, default, theirs)
    for own in parameters:
        is_named = own.kind in {*_POSITIONAL, *_KEYWORD}
        if is_named and own.default is own.empty and own.name not in known:
            yield f"wants {own.name}, too"


def _default_faults(own: inspect.Parameter, default: ast.expr, jaxlib: Any) -> Iterator[str]:
    if own.default is own.empty:
        yield f"{own.name} has no default"
    elif not (isinstance(default, ast.Constant) and default.value is ...):
        wanted = ast.literal_eval(default)
        # An empty sequence is an empty sequence.
        if own.default not in (wanted, jaxlib) and (own.default != () or wanted != []):
            yield f"{own.name}={own.default!r}, not {wanted!r}"


def _without_types(arguments: ast.arguments) -> ast.arguments:
    fields = dict(ast.iter_fields(arguments))
    for kind in ("posonlyargs", "args"):
        fields[kind] = [ast.arg(a.arg) for a in fields[kind]]
    return ast.arguments(**fields)


def documented_names() -> list[Name]:
    """All of them, in the stubs' order; a class before its members."""
    found: list[Name] = []
    for stub in sorted(STUBS.glob("*.pyi"), reverse=True):
        module = "" if stub.stem == "jax" else f".{stub.stem}"
        found += _names(ast.parse(stub.read_text()).body, Name(module, "", ast.ClassDef("")))
    return found


def _names(body: list[ast.stmt], outer: Name) -> Iterator[Name]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            name = _marked(replace(outer, path=f"{outer.path}.{node.name}".lstrip("."), node=node))
            yield name
            if isinstance(node, ast.ClassDef):
                yield from _names(node.body, name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield replace(outer, path=f"{outer.path}.{node.target.id}", node=node, jaxlib=())


def _marked(name: Name) -> Name:
    """With what its decorators say; members are tested where their class is."""
    name = replace(name, jaxlib=())
    for mark in name.node.decorator_list:
        if not isinstance(mark, ast.Call) or not isinstance(mark.func, ast.Name):
            continue
        values = [ast.literal_eval(a) for a in mark.args]
        if mark.func.id == "tests":
            name = replace(name, tests=tuple(values))
        elif mark.func.id == "later":
            name = replace(name, later=values[0])
        elif mark.func.id == "jaxlib":
            pairs = tuple((str(k.arg), ast.literal_eval(k.value)) for k in mark.keywords)
            name = replace(name, jaxlib=pairs)
    return name
