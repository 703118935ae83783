"""Imports every file that registers a kernel emitter."""
