"""The rules of the durable turn hold. `test_mutants` breaks them one by one."""

from tests.stories.rules import *  # noqa: F403
