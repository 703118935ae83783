"""Passes: functions `module -> changed`, one a file, and the pipelines that list them."""
