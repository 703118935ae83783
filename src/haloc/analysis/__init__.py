"""Analyses: pure functions of a module."""
