"""SCXML documents as machine documents: the same states, events and order of transitions.

    converted = from_scxml(text, events=["foo.bar"])

- The ids of SCXML are global; ours are paths. `states` and `events` of the result say what became
  of each name.
- An event descriptor stands for every event that it matches: of those that the document names, and
  of those in `events`, which others may send. A wildcard is written out in the same way.
- Of several transitions that one event enables in a state the first in the document is taken.
- `done.state.X` becomes `on_done` of X, or an event that the final states of X raise.
- An event that a state sends itself after a time, and cancels when it is left, is a timer.
- What is assigned on the way out, on the transition and on the way in is one `set`.
- A condition that cannot be read becomes data of its own, true or false, which others must supply.
"""

from collections.abc import Iterable
from typing import Any

from interlock.language.convert.branches import count_states
from interlock.language.convert.declared import json_value
from interlock.language.convert.paths import Hidden
from interlock.language.convert.result import Converted, ConvertError, Definition, Findings
from interlock.language.convert.scxml_actions import read_contents, run
from interlock.language.convert.scxml_branches import Branches, Data, one_or_all
from interlock.language.convert.scxml_cel import OUR_DATA, CelData
from interlock.language.convert.scxml_data import EcmaData
from interlock.language.convert.scxml_moves import Moves
from interlock.language.convert.scxml_names import (
    DONE,
    EventNames,
    StateNames,
    can_be_done,
    plain_descriptor,
)
from interlock.language.convert.scxml_timers import Timers
from interlock.language.convert.scxml_tree import OURS, State, Transition, Tree, read_tree
from interlock.language.convert.settle import Places, settle
from interlock.language.convert.terms import Lit, Term, Unreadable
from interlock.language.convert.xml_tree import read_xml
from interlock.language.node import BUDGETS, Budgets
from interlock.language.source import decode


def from_scxml(
    data: str | bytes,
    *,
    name: str | None = None,
    events: Iterable[str] = (),
    file: str | None = None,
    budgets: Budgets = BUDGETS,
) -> Converted:
    """Turn an SCXML document into a machine document.

    Args:
        name: of the machine; without it the document's own, or `machine`.
        events: what may be sent besides the events that the document names; prefixes and
            wildcards are written out for these too.
        file: its name in diagnostics.

    Raises:
        ConvertError: it holds what cannot be carried over; every such construct is named.
        DefinitionError: it is no text, or too large.
    """
    source = decode(data, file, max_bytes=budgets.bytes)
    root, given = read_xml(source, budgets), tuple(events)
    apart = steps = False
    while True:
        findings = Findings(source)
        tree = read_tree(root, findings)
        importer = _Importer(tree, findings, name, given, apart=apart, steps=steps)
        try:
            return importer.convert()
        except Hidden:
            apart = True
        except ConvertError as error:
            codes = {fault.code for fault in error.diagnostics}
            if steps or codes != {"automatic-cycle"} or not importer.may_step():
                raise
            steps = True


class _Importer:
    """Carries one document over.

    Args:
        apart: no inner state is called like one at the top.
        steps: automatic transitions wait for an event, which every move raises: what they go round
            in is bounded then, as all that is raised is.
    """

    def __init__(
        self,
        tree: Tree,
        findings: Findings,
        name: str | None,
        events: Iterable[str],
        *,
        apart: bool,
        steps: bool,
    ) -> None:
        self._tree = tree
        self._findings = findings
        self._name = name or tree.root.element.get("name") or "machine"
        ours = tree.root.element.get("datamodel") == OUR_DATA
        self._data: Data = (CelData if ours else EcmaData)(tree, findings)
        self._contents = read_contents(tree, self._data.first, self._data.parse, findings)
        self._data.infer(self._contents)
        self._states = StateNames(tree, findings, apart=apart)
        self._events = EventNames(tree, self._contents, events, findings)
        self._timers = Timers(tree, self._contents, self._events, findings)
        findings.check()
        self._step = {"raise": self._events.fresh("step")} if steps else None
        self._raised: dict[State, list[str]] = {}
        self._done: dict[State, list[Transition]] = {}
        self._made: dict[State, Definition] = {}
        self._skeleton = self._bare()

    def convert(self) -> Converted:
        findings = self._findings
        moves = Moves(self._skeleton, self._states.paths, self._contents)
        self._branches = Branches(
            self._tree, self._data, self._states, self._events, moves, findings, self._step
        )
        start = self._at_start(moves)
        self._settle_done()
        for state in self._tree.every()[1:]:
            if state.kind != "history":
                self._fill(state)
        data = self._data.declared(start)
        definition = {**self._skeleton, **({"data": data} if data else {})}
        counts = self._counts(definition)
        findings.check()
        definition = settle(definition, findings, self._places())
        return Converted(
            definition=definition,
            notes=findings.notes,
            states={state.id: self._states.paths[state] for state in self._tree.every()[1:]},
            events=dict(self._events.names),
            counts=counts,
        )

    def may_step(self) -> bool:
        """Say whether automatic transitions may wait for an event: if nothing else is raised."""
        return not (self._raises() or self._raised or self._done)

    def _raises(self) -> bool:
        return any(hook.raises for block in self._contents.blocks() for hook in block.does)

    def _places(self) -> Places:
        return {path: state.mark for state, path in self._states.paths.items()}

    # Structure

    def _bare(self) -> Definition:
        """Make the document without its transitions."""
        root = self._tree.root
        definition: Definition = {"machine": self._name, "version": 1}
        for key in ("version", "events", "gates", "never"):
            self._add_own(key, root, definition)
        if any(state.kind == "parallel" for state in self._tree.every()):
            definition["conflicts"] = "first-region"
        definition["initial"] = self._initial(root)
        definition["states"] = {self._states.locals[s]: self._bare_state(s) for s in root.children}
        return definition

    def _add_own(self, key: str, state: State, made: Definition) -> None:
        """Read what SCXML has no word for, as `to_scxml` writes it."""
        text = state.element.get(f"{OURS} {key}")
        if text is None:
            return
        try:
            made[key] = json_value(text)
        except ValueError as fault:
            message = f"`{key}` is no JSON: {fault}"
            self._findings.refuse("wrong-type", message, state.mark)

    def _bare_state(self, state: State) -> Definition:
        made: Definition = {}
        self._made[state] = made
        self._add_own("data", state, made)
        if state.kind == "history":
            self._history(state, made)
        if state.kind == "final":
            made["final"] = True
        if state.kind == "parallel":
            made["type"] = "parallel"
            # Conflicts are settled by the order of regions, which the order of keys does not tell.
            made["order"] = [self._states.locals[region] for region in state.regions]
        elif state.regions:
            made["initial"] = self._initial(state)
        if state.children:
            names = self._states.locals
            made["states"] = {names[child]: self._bare_state(child) for child in state.children}
        return made

    def _initial(self, state: State) -> Any:
        """Write where a compound state begins: a child of it, or a path that begins with one."""
        return one_or_all([self._states.inner(target, state) for target in state.initial])

    def _history(self, state: State, made: Definition) -> None:
        made["type"] = "history"
        if state.element.get("type") == "deep":
            made["history"] = "deep"
        for transition in state.transitions[:1]:
            block = self._contents.moves[transition]
            if block.does or block.statements:
                message = f"the default of the history `{state.id}` does something"
                self._findings.refuse("initial-with-actions", message, transition.mark)
            if transition.cond is not None or transition.events is not None:
                message = f"the default of the history `{state.id}` has a condition"
                self._findings.refuse("history-condition", message, transition.mark)
            if transition.targets:
                made["to"] = one_or_all([self._states.paths[one] for one in transition.targets])
        if "to" not in made:
            message = f"the history `{state.id}` has no default: its parent's beginning is taken"
            self._findings.note("history-default", message, state.mark)

    # What a state does and hears

    def _settle_done(self) -> None:
        """Decide for each state that can be done how that is told.

        Here it is told at once; in SCXML as an event, after those that were raised before it.
        """
        in_turn = self._raises() and not isinstance(self._data, CelData)
        heard: dict[str, list[Transition]] = {}
        for state in self._tree.every():
            for event, transitions in self._events.by_event(state.transitions).items():
                heard.setdefault(event, []).extend(transitions)
        for state in self._tree.every()[1:]:
            told = [one for one in heard.get(DONE + state.id, ()) if _hears_end(one.source, state)]
            if not told or not can_be_done(state):
                continue
            elsewhere = [one for one in told if one.source is not state]
            if not elsewhere and not in_turn:
                self._done[state] = told
            elif state.kind == "state":
                for final in (child for child in state.children if child.kind == "final"):
                    self._raised.setdefault(final, []).append(DONE + state.id)
            elif all(_leaves(transition, state) for transition in elsewhere):
                if in_turn:
                    message = f"the end of `{state.id}` is told before what was raised earlier"
                    self._findings.note("end-first", message, state.mark)
                depth = {above: n for n, above in enumerate((state, *state.around()))}
                self._done[state] = sorted(told, key=lambda each: depth[each.source])
            else:
                message = f"the end of the parallel `{state.id}` is waited for where it is not told"
                self._findings.refuse("done-elsewhere", message, elsewhere[0].mark)

    def _fill(self, state: State) -> None:
        made = self._made[state]
        inner = {key: made.pop(key) for key in ("states",) if key in made}
        raised = self._raised.get(state, [])
        hooks = self._events.hooks(self._contents.entry[state], state.mark, raised)
        if self._step and not state.regions:
            hooks.append(self._step)
        if hooks:
            made["on_enter"] = hooks
        if hooks := self._events.hooks(self._contents.exit[state], state.mark):
            made["on_exit"] = hooks
        own = list(state.transitions)
        if state.parent is self._tree.root and state.kind != "final":
            # Transitions of the document itself hold in every state, after the state's own.
            own += self._tree.root.transitions
        elif state.kind == "final" and own:
            message = f"the final state `{state.id}` has transitions"
            self._findings.refuse("final-with-transitions", message, own[0].mark)
        on = self._on(state, own)
        automatic = [one for one in own if one.events is None and not self._is_idle(one)]
        if automatic:
            chosen = self._branches.write(automatic, "no event")
            if self._step is None:
                made["always"] = chosen
            else:
                on[self._step["raise"]] = chosen
                message = "automatic transitions go round: each waits for an event that moves raise"
                self._findings.note("automatic-loop", message, automatic[0].mark)
        if on:
            made["on"] = on
        for name, event in self._timers.of(state):
            heard = [one for one in own if event in self._events.heard(one)]
            made.setdefault("after", {})[name] = self._branches.write(heard, f"`{event}`")
        if state in self._done:
            made["on_done"] = self._branches.write(self._done[state], f"`{DONE}{state.id}`")
        made |= inner

    def _on(self, state: State, transitions: list[Transition]) -> Definition:
        on: Definition = {}
        timers = {event for _, event in self._timers.of(state)}
        for event, heard in self._events.by_event(transitions).items():
            ends = event.startswith(DONE)
            ending = self._tree.states.get(event.removeprefix(DONE)) if ends else None
            if ending is not None and not can_be_done(ending):
                message = f"`{event}` never comes: `{ending.id}` has no end. What waits is left out"
                self._findings.note("never-taken", message, heard[0].mark)
            elif ending not in self._done and event not in timers:
                name = self._events.name(event, heard[0].mark)
                on[name] = self._branches.write(heard, f"`{event}`")
        for transition in transitions:
            for descriptor in transition.events or ():
                if plain_descriptor(descriptor) != descriptor:
                    message = f"`{descriptor}` stands for the events that are known and match it"
                    self._findings.note("descriptor-expanded", message, transition.mark)
        return on

    def _is_idle(self, transition: Transition) -> bool:
        """Say whether an automatic transition does nothing: taken for ever, it changes nothing."""
        block = self._contents.moves[transition]
        if transition.targets or block.does or block.statements:
            return False
        message = "an automatic transition that does nothing is left out"
        self._findings.note("idle-transition", message, transition.mark)
        return True

    # The document

    def _at_start(self, moves: Moves) -> dict[str, Term]:
        """Compute the data as it is once the first states are entered."""
        values = {name: term for name, term in self._data.first.items() if term is not None}
        statements = moves.at_start()
        if statements:
            message = "what is assigned on the way into the first states is in the defaults of data"
            self._findings.note("assigned-at-start", message, self._tree.root.mark)
        try:
            after = run(statements, values)
        except Unreadable as fault:
            self._findings.refuse("expression", str(fault), self._tree.root.mark)
            return {}
        for name, term in after.items():
            if not isinstance(term, Lit):
                message = f"what `{name}` holds at the beginning is not constant"
                self._findings.refuse("data-value", message, self._tree.root.mark)
        return after

    def _counts(self, definition: Definition) -> dict[str, int]:
        moves = [
            one
            for state in self._tree.every()
            if state.kind != "history"
            for one in state.transitions
        ]
        return count_states(definition) | {
            "transitions": len(moves),
            "guarded": sum(one.cond is not None for one in moves),
            "eventless": sum(one.events is None for one in moves),
            "events": len({event for one in moves for event in one.events or ()}),
        }


def _hears_end(source: State, state: State) -> bool:
    """Say whether a state may be active when another has come to its end: inside, only a region."""
    if not source.is_in(state):
        return True
    around = source.parent
    while around is not state and around is not None and around.kind == "parallel":
        around = around.parent
    return around is state and state.kind == "parallel"


def _leaves(transition: Transition, state: State) -> bool:
    """Say whether a transition means the same from `state` as from its own source around it."""
    source = transition.source
    if not state.is_in(source):
        return False
    return not transition.targets or not any(
        target is source or target.is_in(source) for target in transition.targets
    )
