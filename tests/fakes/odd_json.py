"""JSON that is well formed and that no reader takes."""

LEVELS = 20_000
DEEP = f'{{"choices": {"[" * LEVELS}{"]" * LEVELS}}}'
"""Nested too deeply."""
LONG_NUMBER = "9" * 5_000
"""A number of more digits than Python converts."""
