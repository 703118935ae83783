"""The PJRT C API, both ways: haloc as a plugin, and a client of any plugin."""
