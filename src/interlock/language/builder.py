"""Machines in Python, for those who would rather not write YAML.

    order = Machine("order", version=1, initial="draft", data={"amount": {"type": "number"}})
    draft = order.state("draft")
    small, large = order.final("small"), order.final("large")
    draft.on("submit", small, when="data.amount < 100")
    draft.on("submit", large, when="data.amount >= 100")
    definition = order.define()

States come first and transitions afterwards, so that a transition can name the states themselves.
What is made is the document that a file would hold: it means the same, is checked alike and has the
same digest. A diagnostic tells of the call instead of a place in a file.

A state that is given as an object is written by the shortest name that finds it from there, as by
somebody who writes the file by hand: history shows these names.
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeAlias, TypedDict, TypeGuard, TypeVar, Unpack

from interlock.core.declaration import Path
from interlock.core.text import clipped
from interlock.language.definition import STATES_MAX, Definition, compile_document
from interlock.language.diagnostic import DefinitionError, Diagnostic
from interlock.language.document import read_document
from interlock.language.node import BUDGETS, Budgets
from interlock.language.site import CallSource, Site, site_of_caller
from interlock.language.source import UNFIT, character

BITS_MAX = 3 * BUDGETS.digits  # of a whole number, so that its digits are within the budget

#: A field by its JSON Schema, as a file would have it: `{"type": "number", "minimum": 0}`.
Fields: TypeAlias = Mapping[str, Mapping[str, Any]]
#: A condition as a function of this module makes it.
Condition: TypeAlias = Mapping[str, Any]
#: An expression, or a condition.
When: TypeAlias = str | Condition
#: The name of a registered hook, or what `raise_` makes.
Hook: TypeAlias = str | Mapping[str, str]
Hooks: TypeAlias = Hook | Sequence[Hook]
#: A state, or its name as a file would have it.
Target: TypeAlias = "Node | str"
#: Where a branch leads: a state, or one in each of several regions.
Targets: TypeAlias = "Target | Sequence[Target]"


class BranchWords(TypedDict, total=False):
    """What a branch says beside where it leads."""

    when: When
    guard: str
    set: Mapping[str, str]
    do: Hooks
    internal: bool
    name: str
    description: str


class StateWords(TypedDict, total=False):
    """What any state may say."""

    on_enter: Hooks
    on_exit: Hooks
    data: Sequence[str] | Fields
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class Branch:
    """One way that a transition may lead; `branch` and `otherwise` make it."""

    words: Mapping[str, Any]
    site: Site = field(repr=False)


@dataclass(frozen=True, slots=True)
class FirstMatch:
    """Branches of which the first that may be taken is."""

    branches: tuple[Branch, ...]
    site: Site = field(repr=False)


def branch(
    to: "Targets | None" = None,
    *,
    when: When | None = None,
    guard: str | None = None,
    set: Mapping[str, str] | None = None,
    do: Hooks | None = None,
    internal: bool | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Branch:
    """Make one way that a transition may lead; without `to` it stays where it is.

    Args:
        when: what has to be true: an expression, or a condition.
        guard: a label that the caller asserts, such as a signature.
        set: data that it changes, each with an expression.
        do: hooks of the move itself.
        internal: whether the state is not left when the target is inside it.
        name: what it is called in history, where its target does not tell it from the others.
    """
    words = {
        "to": to,
        "when": when,
        "guard": guard,
        "set": set,
        "do": do,
        "internal": internal,
        "name": name,
        "description": description,
    }
    return Branch(_said(words), _here())


def otherwise(to: "Targets | None" = None, **words: Unpack[BranchWords]) -> Branch:
    """Make the last branch of `first_match`, which is taken whatever else is the case."""
    made = branch(to, **words)
    return Branch({**made.words, "otherwise": True}, made.site)


def first_match(*branches: Branch) -> FirstMatch:
    """Put branches in order: the first that may be taken is."""
    return FirstMatch(branches, _here())


def check(name: str) -> Condition:
    """Ask a guard in Python, by the name that it is registered under."""
    return {"check": name}


def in_(state: Target) -> Condition:
    """Whether another region is in a state."""
    return {"in": state}


def not_(condition: When) -> Condition:
    """Whether a condition is false."""
    return {"not": condition}


def all_(*conditions: When) -> Condition:
    """Whether all conditions are true."""
    return {"all": conditions}


def any_(*conditions: When) -> Condition:
    """Whether one of some conditions is true."""
    return {"any": conditions}


def raise_(event: str) -> Hook:
    """Send an event to the same instance within the same move."""
    return {"raise": event}


class Node:
    """A named state that others can lead to; nothing leads out of it unless it is a `State`."""

    def __init__(self, scope: "Scope", name: str, words: Mapping[str, Any]) -> None:
        self._scope = scope
        self._name = name
        self._words = _said(words)
        self._site = _here()
        self._children: dict[str, Node] = {}

    @property
    def path(self) -> str:
        """Its name and those of the states around it, with dots between."""
        return ".".join(reversed([node._name for node in self._outwards()]))

    def __repr__(self) -> str:
        return f"<state {self.path!r} of {self._machine._name!r}>"

    def _outwards(self) -> "Iterator[Node]":
        """Give it and the states around it, the innermost first."""
        scope: Scope | Node = self
        while isinstance(scope, Node):
            yield scope
            scope = scope._scope

    @property
    def _machine(self) -> "Machine":
        *_, outermost = self._outwards()
        assert isinstance(outermost._scope, Machine)
        return outermost._scope

    def _write(self, writer: "_Writer", where: Path) -> dict[str, Any]:
        """Give what a file would say of it."""
        writer.sites[where] = self._site
        if not writer.is_fit(self._name, where):
            return {}
        return writer.plain(self._words, where, self) or {}


_N = TypeVar("_N", bound=Node)


class Scope:
    """What holds states: a machine, or a state."""

    _children: dict[str, Node]

    def state(
        self, name: str, *, initial: str | Sequence[str] | None = None, **words: Unpack[StateWords]
    ) -> "State":
        """Add a state.

        Args:
            initial: the name of the state inside that it begins in.
        """
        return self._keep(State(self, name, {"initial": initial, **_words_of_state(**words)}))

    def parallel(
        self, name: str, *, order: Sequence[str] | None = None, **words: Unpack[StateWords]
    ) -> "State":
        """Add a state whose inner states are active together, as regions.

        Args:
            order: names of the regions in their order; without it they stand by name.
        """
        words_of_it = {"type": "parallel", "order": order, **_words_of_state(**words)}
        return self._keep(State(self, name, words_of_it))

    def final(self, name: str, **words: Unpack[StateWords]) -> Node:
        """Add a state that nothing leads out of."""
        return self._keep(Node(self, name, {"final": True, **_words_of_state(**words)}))

    def history(
        self,
        name: str,
        *,
        deep: bool = False,
        to: "Targets | None" = None,
        label: str | None = None,
        description: str | None = None,
    ) -> Node:
        """Add a state that leads where the state around it last was.

        Args:
            deep: it remembers the innermost states, not only a child of that state.
            to: where it leads the first time.
        """
        words = {"type": "history", "history": "deep" if deep else None, "to": to}
        return self._keep(Node(self, name, {**words, "label": label, "description": description}))

    def _keep(self, node: _N) -> _N:
        first = self._children.setdefault(node._name, node)
        if first is not node:
            what = f"duplicate key `{clipped(node._name)}`: the state is there already"
            node._machine._faults.append(node._site.diagnostic("duplicate-key", what))
        return node


class State(Node, Scope):
    """A state that transitions lead out of.

    A transition that is said again is one more branch of the same choice: branches exclude each
    other. Each method gives the state itself, so that calls can be strung together.
    """

    def __init__(self, scope: Scope, name: str, words: Mapping[str, Any]) -> None:
        super().__init__(scope, name, words)
        self._choices: dict[tuple[str, ...], list[Branch] | FirstMatch] = {}

    def on(
        self,
        event: str,
        to: "Targets | Branch | FirstMatch | None" = None,
        *more: Branch,
        **words: Unpack[BranchWords],
    ) -> Self:
        """Say where an event leads: to a state, by branches, or by `first_match`."""
        return self._lead(("on", event), to, more, words)

    def always(
        self,
        to: "Targets | Branch | FirstMatch | None" = None,
        *more: Branch,
        **words: Unpack[BranchWords],
    ) -> Self:
        """Say where it leads by itself, as soon as it may."""
        return self._lead(("always",), to, more, words)

    def on_done(
        self,
        to: "Targets | Branch | FirstMatch | None" = None,
        *more: Branch,
        **words: Unpack[BranchWords],
    ) -> Self:
        """Say where it leads once a final state inside it is reached."""
        return self._lead(("on_done",), to, more, words)

    def after(
        self,
        duration: str,
        to: "Targets | Branch | FirstMatch | None" = None,
        *more: Branch,
        **words: Unpack[BranchWords],
    ) -> Self:
        """Say where it leads after a time in it, such as `P3D` or `30m`."""
        return self._lead(("after", duration), to, more, words)

    def at(
        self,
        timer: str,
        moment: str,
        to: "Targets | None" = None,
        **words: Unpack[BranchWords],
    ) -> Self:
        """Say where it leads at a moment, which an expression gives.

        Args:
            timer: what it is called in history.
        """
        made = branch(to, **words)
        due = Branch({"at": moment, **made.words}, made.site)
        return self._add_choice(("after", timer), [due])

    def _lead(
        self,
        key: tuple[str, ...],
        to: "Targets | Branch | FirstMatch | None",
        more: tuple[Branch, ...],
        words: BranchWords,
    ) -> Self:
        if isinstance(to, FirstMatch) and not (more or words):
            return self._add_choice(key, to)
        if isinstance(to, Branch) and not words:
            return self._add_choice(key, [to, *more])
        if isinstance(to, FirstMatch | Branch) or more:
            raise TypeError("a transition is one `first_match(…)`, or each branch a `branch(…)`")
        return self._add_choice(key, [branch(to, **words)])

    def _add_choice(self, key: tuple[str, ...], choice: "list[Branch] | FirstMatch") -> Self:
        first = self._choices.setdefault(key, choice)
        if first is choice:
            return self
        if _is_open(first) and _is_open(choice):
            first += choice
            return self
        what = f"duplicate key `{clipped(key[-1])}`: a choice in order and a moment stand alone"
        hint = "put all branches in one `first_match`"
        self._machine._faults.append(_here().diagnostic("duplicate-key", what, hint=hint))
        return self

    def _write(self, writer: "_Writer", where: Path) -> dict[str, Any]:
        written = super()._write(writer, where)
        for key, choice in self._choices.items():
            at = (*where, *key)
            writer.sites[at] = choice.site if isinstance(choice, FirstMatch) else choice[0].site
            if writer.is_fit(key[-1], at):
                found = writer.choice(choice, at, self)
                if len(key) == 1:
                    written[key[0]] = found
                else:
                    written.setdefault(key[0], {})[key[1]] = found
        if self._children:
            written["states"] = writer.states(self._children, where)
        return written


class Machine(Scope):
    """A machine. It says what a machine document says, and is compiled by `define`.

    Args:
        name: which machine it is.
        version: which version of it; a used name and version never changes its meaning, `dev` may.
        data: the fields that an instance keeps, by name, each a JSON Schema.
        events: the fields that come with each event.
        initial: the name of the state that it begins in.
        gates: labels of guards that only an approval satisfies.
        conflicts: `first-region` lets the first of two regions win.
    """

    def __init__(
        self,
        name: str,
        *,
        version: int | str | None = None,
        description: str | None = None,
        data: Fields | None = None,
        events: Mapping[str, Fields] | None = None,
        initial: str | Sequence[str] | None = None,
        gates: Mapping[str, Mapping[str, Any]] | None = None,
        conflicts: Literal["first-region"] | None = None,
    ) -> None:
        words = {
            "machine": name,
            "version": version,
            "description": description,
            "data": data,
            "events": events,
            "gates": gates,
            "conflicts": conflicts,
            "initial": initial,
        }
        self._name = name
        self._words = _said(words)
        self._site = _here()
        self._children: dict[str, Node] = {}
        self._never: list[tuple[Mapping[str, Any], Site]] = []
        self._faults: list[Diagnostic] = []

    def __repr__(self) -> str:
        return f"<machine {self._name!r}>"

    def never(self, *, reach: Target, without: "Target | Mapping[str, str] | None" = None) -> Self:
        """Say what must not be possible, to be proved by `define`.

        Args:
            reach: the state that must not be reached.
            without: what every way there has to pass: a state, `{"action": NAME}`, or
                `{"guard": LABEL}`; without it, no way may lead there.
        """
        self._never.append((_said({"reach": reach, "without": without}), _here()))
        return self

    def document(self) -> dict[str, Any]:
        """Give the machine document that a file would hold.

        Raises:
            DefinitionError: something is said twice, or with what a document cannot hold.
        """
        return self._written()[0]

    def define(
        self, *, prove: bool = True, states_max: int = STATES_MAX, budgets: Budgets = BUDGETS
    ) -> Definition:
        """Compile it, as `interlock.define` does a mapping.

        Args:
            prove: whether branches are proved to exclude each other, as far as that can be done.
            states_max: the most flat states, which parallel regions multiply.

        Raises:
            DefinitionError: every fault is among its diagnostics, each at the call that made it.
        """
        document, sites = self._written()
        text = json.dumps(document, ensure_ascii=False)
        try:
            read = read_document(text, budgets=budgets)
        except DefinitionError as fault:  # it is larger than the budgets
            raise DefinitionError(
                self._site.diagnostic(one.code, one.message) for one in fault.diagnostics
            ) from None
        placed = replace(read, source=CallSource(text, sites))
        definition, found = compile_document(placed, prove=prove, states_max=states_max)
        if definition is None:
            raise DefinitionError(found)
        return definition

    def _written(self) -> tuple[dict[str, Any], dict[Path, Site]]:
        writer = _Writer(self)
        document = writer.plain(self._words, (), None)
        document["states"] = writer.states(self._children, ())
        for place, (words, site) in enumerate(self._never):
            where = ("never", place)
            writer.sites[where] = site
            document.setdefault("never", []).append(writer.plain(words, where, None))
        if faults := [*self._faults, *writer.faults]:
            raise DefinitionError(faults)
        return document, writer.sites


class _Writer:
    """Makes plain values of what was said, and keeps which call said it."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.sites: dict[Path, Site] = {(): machine._site}
        self.faults: list[Diagnostic] = []

    def states(self, children: Mapping[str, Node], where: Path) -> dict[str, Any]:
        if self._is_deep(where):
            return {}
        return {
            name: child._write(self, (*where, "states", name)) for name, child in children.items()
        }

    def choice(self, choice: list[Branch] | FirstMatch, where: Path, source: State) -> Any:
        """Write what a trigger leads to, as short as a file would."""
        if isinstance(choice, FirstMatch):
            branches = self._branches(choice.branches, (*where, "branches"), source)
            return {"order": "first-match", "branches": branches}
        if len(choice) > 1:
            return self._branches(choice, where, source)
        written = self.plain(choice[0].words, where, source)
        short = written.keys() == {"to"} and isinstance(written["to"], str)
        return written["to"] if short else written

    def _branches(self, branches: Sequence[Branch], where: Path, source: State) -> list[Any]:
        for place, made in enumerate(branches):
            self.sites[*where, place] = made.site
        return [
            self.plain(made.words, (*where, place), source) for place, made in enumerate(branches)
        ]

    def plain(self, value: Any, where: Path, source: Node | None) -> Any:
        """Give a value as JSON has it; a state becomes its name, as the source would say it."""
        if not self._is_deep(where):
            match value:
                case str() if self.is_fit(value, where):
                    return value
                case Node():
                    return self._name(value, where, source)
                case Mapping():
                    return {
                        key: self.plain(part, (*where, key), source)
                        for key, part in value.items()
                        if self.is_fit(key, where)
                    }
                case Sequence() if not isinstance(value, str | bytes | bytearray):
                    return [
                        self.plain(part, (*where, place), source)
                        for place, part in enumerate(value)
                    ]
                case None | bool():
                    return value
                case int() if value.bit_length() <= BITS_MAX:
                    return value
                case float() if math.isfinite(value):
                    return value
                case str():
                    pass
                case _:
                    what = f"the {type(value).__name__} `{clipped(value)}` is no value of JSON"
                    self._report("wrong-type", what, where)
        return None

    def is_fit(self, text: object, where: Path) -> bool:
        """Whether it is a text that a document can hold; what is not is reported."""
        if not isinstance(text, str):
            self._report("wrong-type", f"the name `{clipped(text)}` is no text", where)
            return False
        if unfit := UNFIT.search(text):
            self._report("yaml-syntax", f"the text holds {character(unfit[0])}", where)
        return unfit is None

    def _is_deep(self, where: Path) -> bool:
        deep = len(where) > BUDGETS.depth
        if deep:
            what = f"nested deeper than {BUDGETS.depth} levels (budget `depth`)"
            self._report("budget-exceeded", what, where)
        return deep

    def _name(self, node: Node, where: Path, source: Node | None) -> str | None:
        """Give the shortest name that finds a state, seen from the source."""
        machine = node._machine
        if machine is not self._machine:
            what = f"`{node.path}` is a state of another machine, `{machine._name}`"
            self._report("unknown-state", what, where)
            return None
        chain = [one._name for one in node._outwards()]
        for size in range(1, len(chain)):
            names = chain[size - 1 :: -1]
            if self._find(names, source) is node:
                return ".".join(names)
        return node.path

    def _find(self, names: Sequence[str], source: Node | None) -> Node | None:
        """Find a state by a name as the compiler does."""
        around: list[Scope | Node] = [*source._outwards()] if source is not None else []
        for scope in [*around[1:], self._machine, *around[:1]]:
            found: Scope | Node | None = scope
            for name in names:
                found = found._children.get(name) if found is not None else None
            if isinstance(found, Node):
                return found
        return None

    def _report(self, code: str, message: str, where: Path) -> None:
        while where not in self.sites:
            where = where[:-1]
        self.faults.append(self.sites[where].diagnostic(code, message))


def _here() -> Site:
    return site_of_caller(__name__)


def _said(words: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what was not said."""
    return {word: value for word, value in words.items() if value is not None}


def _words_of_state(
    *,
    on_enter: Hooks | None = None,
    on_exit: Hooks | None = None,
    data: Sequence[str] | Fields | None = None,
    label: str | None = None,
    description: str | None = None,
) -> dict[str, Any]:
    """Take the words of any state; another is an error of Python's own."""
    return {
        "on_enter": on_enter,
        "on_exit": on_exit,
        "data": data,
        "label": label,
        "description": description,
    }


def _is_open(choice: list[Branch] | FirstMatch) -> TypeGuard[list[Branch]]:
    """Whether another branch may be added to a choice."""
    return isinstance(choice, list) and all("at" not in one.words for one in choice)
