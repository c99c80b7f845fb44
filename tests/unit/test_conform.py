"""The acceptance checks: they pass on our store, and each catches the fault it is there for."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

import interlock
from interlock.conform import FAULTS_KEPT, Check, conform
from interlock.core.entry import Entry
from interlock.core.rejection import (
    GuardNotSatisfied,
    InvalidTransition,
    NotKnown,
    StorageFailure,
    Terminal,
)
from interlock.store.store import Store
from tests.support.machines import BATCH, MACHINES, arrow, declare

IMMUTABLE, DECLARED, TERMINAL, HISTORY, GUARD, ENTRIES = (
    "declaration immutability",
    "only declared transitions",
    "terminal absorption",
    "history append-only and replay determinism",
    "guard gating",
    "every entry declared",
)

# A way on after every kind of state, so that each double below has an occasion to go wrong.
PROCESS = declare(
    ["a", "b", "c", "done", "lost"],
    [
        arrow("a", "go", "b"),
        arrow("b", "go", "c"),
        arrow("b", "back", "a"),
        arrow("c", "sign", "done", "four eyes"),
        arrow("c", "drop", "lost"),
    ],
    terminal_states=["done", "lost"],
)


class Double:
    """Our store, to be made worse by a subclass."""

    def __init__(self) -> None:
        self.inner: Store = interlock.open("sqlite://")

    def __enter__(self) -> "Double":
        return self

    def __exit__(self, *_: object) -> None:
        self.inner.close()

    def instantiate(self, declaration: Mapping[str, Any], actor_ref: str | None = None) -> str:
        return self.inner.instantiate(declaration, actor_ref)

    def fire(
        self,
        id: str,
        action: str,
        actor_ref: str | None = None,
        guard_satisfied: bool | None = None,
    ) -> str:
        return self.inner.fire(id, action, actor_ref, guard_satisfied)

    def current(self, id: str) -> str:
        return self.inner.current(id)

    def history(self, id: str) -> list[Entry]:
        return self.inner.history(id)

    def read_declaration(self, id: str) -> dict[str, Any]:
        return self.inner.read_declaration(id)


def failed(
    double: Callable[[], Double], declaration: dict[str, Any] = PROCESS
) -> dict[str, tuple[str, ...]]:
    checks = conform(declaration, open_store=double)
    assert [check.name for check in checks] == [
        *(IMMUTABLE, DECLARED, TERMINAL, HISTORY, GUARD, ENTRIES)
    ]
    return {check.name: check.faults for check in checks if not check.ok}


@pytest.mark.parametrize("name", MACHINES)
def test_our_store_conforms(name: str) -> None:
    checks = conform(MACHINES[name])
    assert [check.faults for check in checks] == [()] * 6
    assert all(check.ok for check in checks)


def test_the_double_itself_conforms() -> None:
    assert failed(Double) == {}


def test_each_check_probes() -> None:
    for check in conform(PROCESS):
        assert check.probes >= 5
        assert check.not_covered == ()


def test_every_state_is_tried_with_the_whole_alphabet() -> None:
    tried = set()

    class Watched(Double):
        def fire(self, id: str, action: str, *rest: Any) -> str:
            tried.add((self.current(id), action))
            return super().fire(id, action, *rest)

    assert failed(Watched) == {}
    actions = {"go", "back", "sign", "drop"}
    assert {(state, action) for state in PROCESS["states"] for action in actions} <= tried
    assert any(action not in actions for _, action in tried)


def test_a_store_that_ignores_guards() -> None:
    class Trusting(Double):
        def fire(self, id: str, action: str, actor_ref: str | None = None, _: Any = None) -> str:
            return self.inner.fire(id, action, actor_ref, True)

    found = failed(Trusting)
    assert list(found) == [GUARD]
    assert found[GUARD][0] == (
        "`sign` from `c` gave `done`; it should have been: refused guard-not-satisfied"
    )


def test_a_store_that_takes_false_for_an_assertion() -> None:
    class Lenient(Double):
        def fire(self, id: str, action: str, actor_ref: str | None = None, it: Any = None) -> str:
            return self.inner.fire(id, action, actor_ref, it is not None)

    assert list(failed(Lenient)) == [GUARD]


def test_a_store_that_does_not_record_the_assertion() -> None:
    class Silent(Double):
        def history(self, id: str) -> list[Entry]:
            return [entry._replace(guard_satisfied=None) for entry in super().history(id)]

    found = failed(Silent)
    assert list(found) == [GUARD]
    assert "recorded with guard_satisfied None, not True" in found[GUARD][0]


def test_a_store_that_gates_what_has_no_guard() -> None:
    class Strict(Double):
        def fire(self, id: str, action: str, actor_ref: str | None = None, it: Any = None) -> str:
            if action == "back" and it is not True:
                raise GuardNotSatisfied("no", instance_id=id, state="b", action=action, guard="?")
            return self.inner.fire(id, action, actor_ref, it)

    assert GUARD in failed(Strict)


def test_a_store_that_forgets_an_entry() -> None:
    class Forgetful(Double):
        def history(self, id: str) -> list[Entry]:
            return super().history(id)[:2]

    found = failed(Forgetful)
    assert HISTORY in found
    assert "2 entries for 3 fires" in " ".join(found[HISTORY])
    assert ENTRIES not in found
    assert TERMINAL not in found


def test_a_store_that_drops_old_entries() -> None:
    class Rolling(Double):
        def history(self, id: str) -> list[Entry]:
            kept = super().history(id)[-2:]
            return [entry._replace(sequence_number=n) for n, entry in enumerate(kept, 1)]

    assert "changed or removed entries" in " ".join(failed(Rolling)[HISTORY])


def test_a_store_that_rewrites_history() -> None:
    class Rewriting(Double):
        def history(self, id: str) -> list[Entry]:
            entries = super().history(id)
            return [entry._replace(actor_ref=f"seen {len(entries)}") for entry in entries]

    assert list(failed(Rewriting)) == [HISTORY]


def test_a_store_that_numbers_from_nought() -> None:
    class Nought(Double):
        def history(self, id: str) -> list[Entry]:
            entries = super().history(id)
            return [entry._replace(sequence_number=n) for n, entry in enumerate(entries)]

    assert list(failed(Nought)) == [HISTORY]


def test_a_store_that_records_refusals() -> None:
    class Chatty(Double):
        refused: dict[str, int]

        def __init__(self) -> None:
            super().__init__()
            self.refused = {}

        def fire(self, id: str, action: str, *rest: Any) -> str:
            try:
                return super().fire(id, action, *rest)
            except interlock.Rejected:
                self.refused[id] = self.refused.get(id, 0) + 1
                raise

        def history(self, id: str) -> list[Entry]:
            entries = super().history(id)
            return entries + entries[-1:] * self.refused.get(id, 0)

    assert {TERMINAL, HISTORY, GUARD} <= set(failed(Chatty))


def test_a_store_that_leaves_terminal_states() -> None:
    class Restless(Double):
        revived: set[str]

        def __init__(self) -> None:
            super().__init__()
            self.revived = set()

        def fire(self, id: str, action: str, *rest: Any) -> str:
            try:
                return super().fire(id, action, *rest)
            except Terminal:
                self.revived.add(id)
                return "a"

        def current(self, id: str) -> str:
            return "a" if id in self.revived else super().current(id)

    found = failed(Restless)
    assert list(found) == [TERMINAL]
    assert "from `done` gave `a`" in " ".join(found[TERMINAL])
    assert "from `lost` gave `a`" in " ".join(found[TERMINAL])


def test_a_store_that_gives_the_wrong_reason_in_a_terminal_state() -> None:
    class Vague(Double):
        def fire(self, id: str, action: str, *rest: Any) -> str:
            try:
                return super().fire(id, action, *rest)
            except Terminal as refusal:
                raise InvalidTransition("no", **vars(refusal), declared=[]) from None

    assert list(failed(Vague)) == [TERMINAL]


def test_a_store_that_makes_up_transitions() -> None:
    class Obliging(Double):
        def fire(self, id: str, action: str, *rest: Any) -> str:
            try:
                return super().fire(id, action, *rest)
            except InvalidTransition as refusal:
                return refusal.state

    found = failed(Obliging)
    assert DECLARED in found
    assert "it should have been: refused invalid-transition" in found[DECLARED][0]
    assert TERMINAL not in found


def test_a_store_that_moves_somewhere_else() -> None:
    class Astray(Double):
        def current(self, id: str) -> str:
            state = super().current(id)
            return "b" if state == "lost" else state

    assert {DECLARED, TERMINAL} <= set(failed(Astray))


def test_a_store_that_does_not_move() -> None:
    class Stuck(Double):
        def current(self, id: str) -> str:
            super().current(id)
            return "a"

    found = failed(Stuck)
    assert DECLARED in found
    assert "an instance that was brought to `b` is in `a`" in " ".join(found[DECLARED])


def test_a_store_in_which_a_way_is_closed() -> None:
    class Closed(Double):
        def fire(self, id: str, action: str, *rest: Any) -> str:
            if action == "go" and self.current(id) == "b":
                raise InvalidTransition("no", instance_id=id, state="b", action="go", declared=[])
            return super().fire(id, action, *rest)

    found = failed(Closed)
    assert "on the way to `c`: `go` from `b` refused invalid-transition" in " ".join(
        found[DECLARED]
    )
    assert set(found) == {IMMUTABLE, DECLARED, TERMINAL, HISTORY, GUARD, ENTRIES}


def test_a_store_that_records_another_move() -> None:
    class Inventive(Double):
        def history(self, id: str) -> list[Entry]:
            return [
                entry._replace(to_state="lost") if entry.action == "back" else entry
                for entry in super().history(id)
            ]

    found = failed(Inventive)
    assert set(found) == {HISTORY, ENTRIES}
    assert "is not declared: ('b', 'back', 'lost')" in found[ENTRIES][0]


def test_a_store_that_edits_the_declaration() -> None:
    class Tidy(Double):
        def read_declaration(self, id: str) -> dict[str, Any]:
            declaration = super().read_declaration(id)
            if self.history(id):
                declaration["states"].sort(reverse=True)
            return declaration

    assert list(failed(Tidy)) == [IMMUTABLE]


def test_a_store_that_reorders_the_keys_of_the_declaration() -> None:
    class Sorted(Double):
        def read_declaration(self, id: str) -> dict[str, Any]:
            return dict(sorted(super().read_declaration(id).items()))

    assert list(failed(Sorted)) == [IMMUTABLE]


def test_a_store_that_keeps_what_is_not_its_own() -> None:
    class Sharing(Double):
        """Keeps the caller's own object, and hands it out."""

        def __init__(self) -> None:
            super().__init__()
            self.kept: dict[str, Any] = {}

        def instantiate(self, declaration: Any, actor_ref: str | None = None) -> str:
            id = super().instantiate(declaration, actor_ref)
            self.kept[id] = dict(declaration)
            return id

        def read_declaration(self, id: str) -> dict[str, Any]:
            declaration: dict[str, Any] = self.kept[id]
            return declaration

    found = failed(Sharing)
    assert "a change to the declaration that was supplied" in found[IMMUTABLE][0]


def test_a_store_that_loses_instances() -> None:
    class Losing(Double):
        def history(self, id: str) -> list[Entry]:
            raise NotKnown("gone", instance_id=id)

    found = failed(Losing)
    assert set(found) == {TERMINAL, HISTORY, GUARD, ENTRIES}
    assert "a call that had to succeed was refused not-known: gone" in found[HISTORY]


def test_a_store_that_confuses_long_names() -> None:
    class Clipping(Double):
        def fire(self, *arguments: Any) -> str:
            return super().fire(*arguments)[:511]

    assert DECLARED in failed(Clipping, MACHINES["long-names"])


def test_what_cannot_be_reached_is_named() -> None:
    declaration = declare(
        ["a", "b", "island", "end", "far end"],
        [
            arrow("a", "go", "b"),
            arrow("b", "sign", "end", "g"),
            arrow("island", "row", "far end", "h"),
        ],
        terminal_states=["end", "far end"],
    )
    gaps = {check.name: check.not_covered for check in conform(declaration)}
    row = "`row` from `island`: no way leads there"
    assert gaps == {
        IMMUTABLE: (),
        DECLARED: (row,),
        TERMINAL: ("terminal state `far end`: no way leads there",),
        HISTORY: (row,),
        GUARD: (row,),
        ENTRIES: (row,),
    }


def test_a_machine_with_little_in_it() -> None:
    gaps = {check.name: check.not_covered for check in conform(MACHINES["still"])}
    assert gaps[IMMUTABLE] == ("no transition can be fired from the initial state",)
    assert gaps[TERMINAL] == ("the declaration has no terminal state",)
    assert gaps[GUARD] == ("the declaration has no guarded transition",)


def test_a_foreign_action_is_foreign() -> None:
    declaration = declare(
        ["a"], [arrow("a", "undeclared", "a"), arrow("a", "undeclared-action", "a")]
    )
    assert all(check.ok for check in conform(declaration))


def test_faults_are_counted_beyond_those_kept() -> None:
    class Silent(Double):
        def history(self, id: str) -> list[Entry]:
            return []

    check = next(
        check
        for check in conform(MACHINES["thirty-states"], open_store=Silent)
        if check.name == HISTORY
    )
    assert len(check.faults) == FAULTS_KEPT
    assert check.failures > FAULTS_KEPT
    assert check.as_dict()["failures"] == check.failures


def test_a_check_as_values() -> None:
    check = Check(
        name="n", invariants=(1,), probes=3, failures=1, faults=("f",), not_covered=("c",)
    )
    assert check.as_dict() == {
        "ok": False,
        "name": "n",
        "invariants": (1,),
        "probes": 3,
        "failures": 1,
        "faults": ("f",),
        "not_covered": ("c",),
    }


def test_no_check_is_made_of_what_is_no_declaration() -> None:
    with pytest.raises(interlock.InvalidDeclaration):
        conform({**BATCH, "initial_state": "nowhere"})


def test_a_store_that_cannot_be_used_is_no_verdict() -> None:
    class Broken(Double):
        def fire(self, *_: Any) -> str:
            raise StorageFailure("the disk failed", kind="io")

    with pytest.raises(StorageFailure):
        conform(PROCESS, open_store=Broken)


def test_progress_is_told() -> None:
    told: list[int] = []
    conform(MACHINES["complete"], on_probe=told.append)
    assert told == sorted(told)
    assert told


def test_a_long_chain_takes_few_instances() -> None:
    class Counted(Double):
        begun = 0

        def instantiate(self, declaration: Any, actor_ref: str | None = None) -> str:
            Counted.begun += 1
            return super().instantiate(declaration, actor_ref)

    assert failed(Counted, MACHINES["ring-of-twelve"]) == {}
    assert Counted.begun < 10
