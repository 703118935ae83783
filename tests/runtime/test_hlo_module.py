"""Computations of modules: their pages."""

from __future__ import annotations

import html.parser
from pathlib import Path

from haloc import xla_client

TEXT = """HloModule m
small { a = f32[] parameter(0) b = f32[] parameter(1) ROOT l = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = f32[8] parameter(0)
  ROOT s = f32[8] sort(x), dimensions={0}, to_apply=small
}"""


class Reader(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.rows: list[dict[str, str | None]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append(str(dict(attrs)["href"]))
        if tag == "tr" and attrs:
            self.rows.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_computations_page(tmp_path: Path) -> None:
    small, entry = xla_client.hlo_module_from_text(TEXT).computations()
    small.render_html(tmp_path / "small.html")
    reader = Reader()
    reader.feed((tmp_path / "small.html").read_text())
    assert reader.rows == [{"id": "a"}, {"id": "b"}, {"id": "l", "class": "root"}]
    assert reader.links == ["#a", "#b"]
    assert "direction=LT" in reader.text and "digraph" in reader.text
    entry.render_html(str(tmp_path / "entry.html"))
    assert "to_apply" in (tmp_path / "entry.html").read_text()
