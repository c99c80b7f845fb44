"""What there is to try: the declarations, the entries and the histories of a small scope.

declared(2, 1)              # 33 declarations of at most 2 states and 1 action, smallest first
candidates(2, 1, [1, 2])    # 16 entries, declared or not
walks(config, 4)            # the histories of at most 4 entries that a declaration allows
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, permutations, product
from typing import TypeAlias

from tests.formal.model import INITIAL, Config, Entries, Entry, Trans

STATES = (INITIAL, "s1", "s2")
ACTIONS = ("a", "b")


def declared(states: int, actions: int, **cut: bool) -> list[Config]:
    """List the declarations of at most so many states and actions, the smallest first."""
    found = [config for count in range(1, states + 1) for config in configs(count, actions, **cut)]
    return sorted(found, key=lambda config: (config.size, config.transitions))


def configs(
    states: int, actions: int, *, guards: bool = True, absorbing: bool = True
) -> Iterator[Config]:
    """List the well-formed declarations of exactly so many states, one for each up to renaming.

    Each pair of a state and an action has no transition or one, to any state, with and without a
    guard. A renaming permutes the actions and all states but the initial one.

    Args:
        actions: at most so many; a declaration need not use each.
        absorbing: False lets transitions leave terminal states, which is not well formed.
    """
    names, labels = STATES[:states], (False, True) if guards else (False,)
    targets = [None, *product(names, labels)]
    for terminal in _subsets(names[1:]):
        sources = [name for name in names if not (absorbing and name in terminal)]
        triggers = [*product(sources, ACTIONS[:actions])]
        for slots in product(targets, repeat=len(triggers)):
            rows = zip(triggers, slots, strict=True)
            config = Config(
                states=names,
                transitions=tuple(Trans(*trigger, *slot) for trigger, slot in rows if slot),
                terminal=frozenset(terminal),
            )
            if _form(config) == min(renamings(config, actions)):
                yield config


Form: TypeAlias = tuple[tuple[Trans, ...], tuple[str, ...]]


def renamings(config: Config, actions: int) -> set[Form]:
    """Give all the forms that renaming gives to a declaration, itself included."""
    return {_form(config, renaming) for renaming in _renamings(len(config.states), actions)}


@cache
def _renamings(states: int, actions: int) -> list[dict[str, str]]:
    named, acting = STATES[1:states], ACTIONS[:actions]
    return [
        {INITIAL: INITIAL, **dict(zip((*named, *acting), (*one, *other), strict=True))}
        for one in permutations(named)
        for other in permutations(acting)
    ]


def _form(config: Config, renaming: Mapping[str, str] | None = None) -> Form:
    if renaming is None:
        return tuple(sorted(config.transitions)), tuple(sorted(config.terminal))
    transitions = [
        Trans(renaming[from_state], renaming[action], renaming[to_state], guarded)
        for from_state, action, to_state, guarded in config.transitions
    ]
    return tuple(sorted(transitions)), tuple(sorted(renaming[state] for state in config.terminal))


def _subsets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def candidates(
    states: int, actions: int, numbers: Iterable[int], asserted: Iterable[int | None] = (None, 1)
) -> list[Entry]:
    """List every entry of a scope, lawful or not: a history may hold any of them at any place."""
    names = STATES[:states]
    return [
        Entry(*fields) for fields in product(names, ACTIONS[:actions], names, numbers, asserted)
    ]


def histories(entries: Sequence[Entry], length: int) -> Iterator[Entries]:
    """List every history of at most `length` of the `entries`, lawful or not, shortest first."""
    for size in range(length + 1):
        yield from product(entries, repeat=size)


def walks(config: Config, length: int) -> Iterator[Entries]:
    """List what a declaration allows: its paths from the initial state, shortest first."""
    level: list[Entries] = [()]
    for number in range(1, length + 2):
        yield from level
        level = [
            (*walk, Entry(*trans[:3], number, 1 if trans.guarded else None))
            for walk in level
            for trans in config.transitions
            if trans.from_state == (walk[-1].to_state if walk else INITIAL)
        ]
