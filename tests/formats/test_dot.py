"""Graphs: the grammar holds, every value has its place, and names with any character are safe."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from haloc.formats.dot import to_dot
from haloc.formats.hlo_text import parse_module
from haloc.passes.pipelines import run_pipeline
from tests.fuzz.generate import random_module

_TOKEN = re.compile(
    r'\s*(?:(?P<quoted>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_][\w]*|-?[\d.]+)|(?P<mark>->|[{}\[\];,=])'
    r"|(?P<html><))",
    re.DOTALL,
)


class Graph:
    """What a dot text says: nodes with attributes, edges, clusters; fails where it is none."""

    def __init__(self, text: str):
        self.text, self.at = text, 0
        self.nodes: dict[str, dict[str, str]] = {}
        self.edges: list[tuple[str, str, dict[str, str]]] = []
        self.clusters: dict[str, list[str]] = {}
        assert self.next() == "digraph"
        self.next()
        self.body("")
        assert not text[self.at :].strip()
        for start, end, _ in self.edges:
            assert start in self.nodes and end in self.nodes, (start, end)

    def next(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        assert match, self.text[self.at : self.at + 60]
        self.at = match.end()
        if match["html"]:
            begin, depth = self.at, 1
            while depth:
                depth += {"<": 1, ">": -1}.get(self.text[self.at], 0)
                self.at += 1
            label = self.text[begin : self.at - 1]
            ElementTree.fromstring(f"<label>{label}</label>")
            return f"<{label}>"
        return match.group().strip()

    def body(self, cluster: str) -> None:
        assert self.next() == "{"
        while (word := self.next()) != "}":
            if word == "subgraph":
                name = self.next()
                assert name.startswith("cluster") and name not in self.clusters
                self.clusters[name] = []
                self.body(name)
                continue
            follower = self.next()
            if follower == "=":
                self.next()
                assert self.next() == ";"
            elif follower == "->":
                end = self.next()
                self.edges.append((word, end, self.attributes()))
            else:
                assert follower == "[" and word not in self.nodes
                self.at -= 1
                self.nodes[word] = self.attributes()
                if cluster:
                    self.clusters[cluster].append(word)

    def attributes(self) -> dict[str, str]:
        assert self.next() == "["
        found = {}
        while True:
            key = self.next()
            assert self.next() == "="
            found[key] = self.next()
            if (mark := self.next()) == "]":
                break
            assert mark == ","
        assert self.next() == ";"
        return found

    def named(self, name: str) -> str:
        """The node with a name in its label."""
        (node,) = [n for n, a in self.nodes.items() if f"<b>{name}</b>" in a["label"]]
        return node

    def ends(self, start: str) -> set[str]:
        return {end for begin, end, _ in self.edges if begin == start}


REDUCE = """
HloModule red
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e {
  x = f32[10,20] parameter(0)
  zero = f32[] constant(0)
  ROOT r.1 = f32[10] reduce(x, zero), dimensions={1}, to_apply=add,
    metadata={op_name="jit(f)/sum" source_file="f.py" source_line=7}
}
"""
LOOP = """
HloModule loop
body { s = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[3] get-tuple-element(s), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[3] tanh(v)
  ROOT t = (s32[], f32[3]) tuple(j, w) }
cond { q = (s32[], f32[3]) parameter(0)
  k = s32[] get-tuple-element(q), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(k, ten), direction=LT }
ENTRY e {
  x = (s32[], f32[3]) parameter(0)
  ROOT loop = (s32[], f32[3]) while(x), condition=cond, body=body
}
"""


def test_a_reduction():
    graph = Graph(to_dot(parse_module(REDUCE)))
    assert graph.ends("n0") == {"n1"} and graph.ends("n1") == {"root"}
    assert graph.nodes["n0"]["label"] == "<<b>Parameter 0</b><br/>x<br/>f32[10,20]{1,0}>"
    assert graph.nodes["n1"]["label"] == (
        "<<b>r.1</b><br/>reduce<br/>Subcomputation: <b>add</b><br/>dimensions={1}<br/>f32[10]<br/>"
        "<b>operand 1</b> = f32[] 0>"
    )
    assert graph.nodes["n1"]["tooltip"] == r'"jit(f)/sum\nf.py:7"'
    assert graph.nodes["n1"]["fillcolor"] != graph.nodes["n0"]["fillcolor"]
    assert not graph.clusters


def test_a_loop_has_its_bodies_beside_it():
    graph = Graph(to_dot(parse_module(LOOP)))
    loop = graph.named("loop")
    assert len(graph.clusters) == 2
    tails = {a["ltail"]: start for start, end, a in graph.edges if end == loop and "ltail" in a}
    assert set(tails) == set(graph.clusters)
    assert all(start in graph.clusters[cluster] for cluster, start in tails.items())


def test_a_fusion_is_a_cluster_in_the_flow():
    module = parse_module(
        "ENTRY e { x = f32[8,8] parameter(0)  y = f32[8,8] tanh(x)  z = f32[8,8] add(y, y)\n"
        "ROOT t = f32[8,8] transpose(z), dimensions={1,0} }"
    )
    run_pipeline(module)
    graph = Graph(to_dot(module))
    (inside,) = graph.clusters.values()
    assert graph.ends("n0") == {inside[0]}
    assert [node for node in inside if "root" in graph.ends(node)] == [inside[-1]]


def test_a_computation_alone():
    module = parse_module(LOOP)
    graph = Graph(to_dot(module.computations["body"]))
    assert graph.ends(graph.named("w")) == {graph.named("t")}


def test_one_computation_called_twice_is_drawn_once():
    module = parse_module(
        "f { a = f32[] parameter(0)  ROOT n = f32[] negate(a) }\n"
        "ENTRY e { x = f32[] parameter(0)  y = f32[] call(x), to_apply=f\n"
        "ROOT z = f32[] call(y), to_apply=f }"
    )
    graph = Graph(to_dot(module))
    assert len(graph.clusters) == 1
    assert graph.ends(graph.named("n")) == {graph.named("y"), graph.named("z")}


@pytest.mark.parametrize(
    "text", ['a "b" <c> & \\d', "</b>>", "\\", "a\x00b\x1fc", "line\nbreak", "]];}"]
)
def test_any_text_is_escaped(text):
    module = parse_module("ENTRY e { x = f32[4] parameter(0)  ROOT y = f32[4] tanh(x) }")
    module.entry.root.name = text
    module.name = text
    module.entry.root.metadata = {"op_name": text, "source_file": text, "source_line": 3}
    graph = Graph(to_dot(module))
    assert set(graph.nodes) == {"n0", "n1", "root"} and len(graph.edges) == 2


def test_order_without_data():
    module = parse_module(
        "ENTRY e { x = f32[] parameter(0)  y = f32[] negate(x)\n"
        "ROOT z = f32[] tanh(x), control-predecessors={y} }"
    )
    graph = Graph(to_dot(module))
    styles = {(s, e): a.get("style") for s, e, a in graph.edges}
    assert styles[graph.named("y"), graph.named("z")] == "dotted"


@pytest.mark.parametrize("seed", range(20))
def test_random_modules_before_and_after_the_passes(seed):
    module = random_module(seed)
    text = to_dot(module)
    Graph(text)
    assert to_dot(module.clone()) == text
    run_pipeline(module)
    Graph(to_dot(module))


def test_colours_follow_the_rows():
    """Ops that run alike look alike, whatever they are called."""
    module = parse_module(
        "ENTRY e { x = f32[4,4] parameter(0)  y = f32[4,4] tanh(x)  z = f32[4,4] add(y, x)\n"
        "d = f32[4,4] dot(z, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
        "ROOT t = f32[4,4] transpose(d), dimensions={1,0} }"
    )
    graph = Graph(to_dot(module))
    fill = {n: graph.nodes[graph.named(n)]["fillcolor"] for n in "yzdt"}
    assert fill["y"] == fill["z"] and len(set(fill.values())) == 3


def test_examples_draw():
    for path in Path(__file__).parents[2].glob("examples/**/*.hlo"):
        Graph(to_dot(parse_module(path.read_text())))
