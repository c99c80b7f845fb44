"""Who is told of the branches that are taken: the coverage of tests.

A listener is called once for each call of an engine, with all that it takes, right before that is
committed. Nobody listens outside of tests.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from interlock.language.definition import Definition
from interlock.language.flatten import Branch

Listener: TypeAlias = Callable[[Definition, Sequence[Branch]], None]

listeners: list[Listener] = []


def tell(definition: Definition, branches: Sequence[Branch]) -> None:
    """Tell every listener of the branches that one call takes."""
    for listener in listeners:
        listener(definition, branches)
