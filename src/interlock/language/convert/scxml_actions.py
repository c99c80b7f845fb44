"""What the executable content of an SCXML document does: hooks, timers, and statements on data.

Our language sets data on transitions only, so what a document assigns on the way out of states, on
a transition and on the way into states is computed, in that order, into one term per name:

    <onexit> x = x + 1, transition x = x * 2, <onentry> x = x - 3    ->  x: (x + 1) * 2 - 3
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from interlock.language.chart import Hook
from interlock.language.convert.ecma import Broken
from interlock.language.convert.result import Findings
from interlock.language.convert.scxml_tree import OURS, State, Transition, Tree
from interlock.language.convert.terms import (
    FALSE,
    TRUE,
    Lit,
    Name,
    Op,
    Term,
    Unreadable,
    names,
    op,
    size,
    states,
    substitute,
)
from interlock.language.convert.xml_tree import Element
from interlock.language.source import Mark

MAX_TERM = 200  # parts of a term: a longer one is not for people to read
SENT_HERE = (None, "", "#_internal", "#_scxml_session")
SCXML_IO = (None, "", "scxml", "http://www.w3.org/TR/scxml/#SCXMLEventProcessor")
DELAY = re.compile(r"\+?(\d+(?:\.\d{1,6})?|\.\d{1,6})(ms|s|m|h|d)?")
UNITS_US = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


@dataclass(frozen=True, slots=True)
class Assign:
    name: str
    term: Term


@dataclass(frozen=True, slots=True)
class If:
    """Cases in order; the last may have no condition."""

    cases: tuple[tuple[Term | None, tuple["Statement", ...]], ...]


Statement: TypeAlias = Assign | If
Values: TypeAlias = dict[str, Term]


@dataclass(frozen=True, slots=True)
class Delayed:
    """An event that is sent to the machine itself after a time, unless that is cancelled."""

    event: str
    after_us: int
    id: str | None
    mark: Mark


@dataclass(slots=True)
class Block:
    """What a group of elements does."""

    does: list[Hook] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    delayed: list[Delayed] = field(default_factory=list)
    cancelled: list[tuple[str, Mark]] = field(default_factory=list)

    def add(self, other: "Block") -> None:
        self.does += other.does
        self.statements += other.statements
        self.delayed += other.delayed
        self.cancelled += other.cancelled


@dataclass(slots=True)
class Contents:
    """What is done on the way into each state, out of it, and by each transition."""

    entry: dict[State, Block]
    exit: dict[State, Block]
    moves: dict[Transition, Block]

    def blocks(self) -> Iterator[Block]:
        yield from self.entry.values()
        yield from self.exit.values()
        yield from self.moves.values()


def read_contents(
    tree: Tree, declared: Collection[str], parse: Callable[[str], Term], findings: Findings
) -> Contents:
    """Read all executable content; what cannot be carried over is refused by name.

    Args:
        declared: names of data.
        parse: reads an expression.
    """
    actions = _Actions(declared, parse, tree.root.element.space, findings)
    every = tree.every()
    return Contents(
        {state: _joined(actions, state.entry) for state in every},
        {state: _joined(actions, state.exit) for state in every},
        {move: actions.block(move.element.children) for s in every for move in s.transitions},
    )


def _joined(actions: "_Actions", blocks: list[Element]) -> Block:
    """Read the blocks of a state: a state may have several, and a fault ends only its own."""
    whole = Block()
    for element in blocks:
        whole.add(actions.block(element.children))
    return whole


class _Actions:
    def __init__(
        self,
        declared: Collection[str],
        parse: Callable[[str], Term],
        space: str,
        findings: Findings,
    ) -> None:
        self._declared = declared
        self._parse = parse
        self._space = space  # actions of other namespaces are the work of other processors
        self._findings = findings

    def block(self, elements: Iterable[Element]) -> Block:
        """Read `<onentry>`, `<onexit>` or the inside of a transition."""
        block = Block()
        for element in elements:
            match self._tag(element):
                case "raise":
                    self._raise(element.get("event"), element, block)
                case "send":
                    self._send(element, block)
                case "cancel" if id := element.get("sendid"):
                    block.cancelled.append((id, element.mark))
                case "our hook" if name := element.get("name"):
                    block.does.append(Hook(name))
                case "assign" | "if" | "log":
                    try:
                        block.statements += self._statements([element])
                    except Broken as fault:
                        # A processor answers an illegal expression with this event, and leaves out
                        # the rest of the block.
                        message = f"an expression that never ends well raises an error: {fault}"
                        self._findings.note("broken-expression", message, element.mark)
                        block.does.append(Hook("error.execution", raises=True))
                        break
                case _:
                    self._refuse(element)
        return block

    def _tag(self, element: Element) -> str:
        if element.space == self._space:
            return element.tag
        return f"our {element.tag}" if element.space == OURS else f"foreign {element.tag}"

    def _raise(self, event: str | None, element: Element, block: Block) -> None:
        if event:
            block.does.append(Hook(event, raises=True))
        else:
            self._findings.refuse("no-event", f"`<{element.tag}>` names no event", element.mark)

    def _send(self, element: Element, block: Block) -> None:
        given = element.attributes
        delay = given.get("delay")
        if "namelist" in given or element.children:
            self._findings.refuse("send-with-data", "an event is sent with data", element.mark)
        elif given.get("target") not in SENT_HERE or given.get("type") not in SCXML_IO:
            where = given.get("target") or given.get("type")
            self._findings.refuse("send-elsewhere", f"an event is sent to `{where}`", element.mark)
        elif odd := sorted(set(given) - {"event", "target", "type", "id", "delay"}):
            self._findings.refuse("send-computed", f"`<send>` with `{odd[0]}`", element.mark)
        elif delay is None or _microseconds(delay) == 0:
            self._raise(given.get("event"), element, block)
        elif (after_us := _microseconds(delay)) is None or not given.get("event"):
            message = f"an event is sent after `{delay}`"
            self._findings.refuse("delayed-send", message, element.mark)
        else:
            block.delayed.append(Delayed(given["event"], after_us, given.get("id"), element.mark))

    def _statements(self, elements: Iterable[Element]) -> list[Statement]:
        found: list[Statement] = []
        for element in elements:
            match self._tag(element):
                case "log":
                    message = "what is written to a log is left out"
                    self._findings.note("log-dropped", message, element.mark)
                case "assign":
                    found += self._assign(element)
                case "if":
                    found += self._cases(element)
                case "raise" | "send":
                    message = f"`<{element.tag}>` inside `<if>`"
                    self._findings.refuse("conditional-raise", message, element.mark)
                case _:
                    self._refuse(element)
        return found

    def _assign(self, element: Element) -> list[Statement]:
        name, text = element.get("location") or "", element.get("expr")
        if name not in self._declared:
            message = f"`<assign>` to `{name}`, which is not declared"
            self._findings.refuse("assign-location", message, element.mark)
            return []
        if text is None:
            message = f"`{name}` is not set by `expr`"
            self._findings.refuse("assign-content", message, element.mark)
            return []
        term = self._term(text, element)
        return [] if term is None else [Assign(name, term)]

    def _cases(self, element: Element) -> list[Statement]:
        conds: list[tuple[Term | None, list[Element]]] = [(self._condition(element), [])]
        for child in element.children:
            if child.tag == "elseif":
                conds.append((self._condition(child), []))
            elif child.tag == "else":
                conds.append((None, []))
            else:
                conds[-1][1].append(child)
        made = [(cond, tuple(self._statements(inside))) for cond, inside in conds]
        return [If(tuple(made))] if any(inside for _, inside in made) else []

    def _condition(self, element: Element) -> Term | None:
        term = self._term(element.get("cond") or "", element)
        return FALSE if term is None else term

    def _term(self, text: str, element: Element) -> Term | None:
        try:
            term = self._parse(text)
            if unknown := sorted(names(term) - set(self._declared)):
                raise Unreadable(f"`{unknown[0]}` is not declared")
            if states(term):
                raise Unreadable("In() outside of the condition of a transition")
        except Broken:
            raise
        except Unreadable as fault:
            message = f"the expression `{text}` cannot be carried over: {fault}"
            self._findings.refuse("expression", message, element.mark)
            return None
        return term

    def _refuse(self, element: Element) -> None:
        message = f"the action `<{self._tag(element)}>` cannot be carried over"
        self._findings.refuse("unsupported", message, element.mark)


def _microseconds(delay: str) -> int | None:
    """Read a delay as CSS writes times; None if it is none."""
    found = DELAY.fullmatch(delay.strip(), 0)
    if found is None or len(delay) > 20:
        return None
    return round(float(found[1]) * UNITS_US[found[2] or "ms"])


def run(statements: Iterable[Statement], values: Mapping[str, Term]) -> Values:
    """Compute what names hold after some statements, from what they hold before.

    Raises:
        Unreadable: a term grows too long.
    """
    after: Values = dict(values)
    for statement in statements:
        match statement:
            case Assign(name, term):
                after[name] = _bounded(substitute(term, after))
            case If(cases):
                after = _chosen(cases, after)
    return after


def _chosen(cases: tuple[tuple[Term | None, tuple[Statement, ...]], ...], values: Values) -> Values:
    after = values
    for cond, inside in reversed(cases):
        test = TRUE if cond is None else substitute(cond, values)
        if test == FALSE:
            continue
        yes, no = run(inside, values), after
        after = yes
        if test != TRUE:
            after = {
                name: _bounded(op("?:", test, _held(name, yes), _held(name, no)))
                for name in {**yes, **no}
            }
    return after


def _held(name: str, values: Values) -> Term:
    return values.get(name, Name(name))


def _bounded(term: Term) -> Term:
    if size(term) > MAX_TERM:
        raise Unreadable("what is assigned on the way grows too long")
    return term


def known(condition: Term | None) -> Values:
    """Give the names whose value a condition fixes, such as `x` in `x === 10 && y`."""
    match condition:
        case Op("==", (Name(name), Lit() as value)):
            return {name: value}
        case Op("&&", (one, two)):
            return known(one) | known(two)
        case _:
            return {}
