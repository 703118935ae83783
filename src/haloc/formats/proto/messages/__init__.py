"""The tables of XLA's messages, as of June 2026 (jaxlib 0.10.2), and of pprof."""

from haloc.formats.proto.messages import debug_options, hlo, options, pprof, xla_data

__all__ = ["debug_options", "hlo", "options", "pprof", "xla_data"]
