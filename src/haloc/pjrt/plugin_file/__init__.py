"""A file that is haloc's PJRT plugin in any process, whatever language that is written in."""

from haloc.pjrt.plugin_file.path import pjrt_plugin_path

__all__ = ["pjrt_plugin_path"]
