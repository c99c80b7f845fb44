"""XState charts in JSON, as Stately exports them, as machine documents.

    converted = from_xstate(text)

- Named actions become hooks, named guards `{check: name}`; the code behind them is not in the file
  and must be registered.
- What a state invokes is not run by us: its outcome is an event, `done.invoke.X` or
  `error.platform.X`, that whoever runs it sends. A note says so.
- A transition does not leave its own state unless it says `reenter` (version 5), or leaves it
  unless it says `internal` (version 4). The version is told by the words a file uses.
- The transitions of the machine itself are written in each of its states, after their own.
- A wildcard is written out over the events that are named in the file or given in `events`.
"""

from collections.abc import Iterable
from typing import Any

from interlock.core.declaration import Path
from interlock.language.convert.branches import Choices, count_states
from interlock.language.convert.naming import Names, local_names
from interlock.language.convert.opaque import Opaque
from interlock.language.convert.paths import Hidden
from interlock.language.convert.result import Converted, Definition, Findings
from interlock.language.convert.settle import Places, settle
from interlock.language.convert.xstate_begin import Beginnings
from interlock.language.convert.xstate_code import Code, context
from interlock.language.convert.xstate_tree import (
    INVOKE_KEYS,
    Node,
    Raw,
    Tree,
    Trigger,
    invoke_id,
)
from interlock.language.document import Document, read_document
from interlock.language.duration import DurationError, parse_duration
from interlock.language.names import RESERVED
from interlock.language.node import BUDGETS, Budgets

UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"))


def from_xstate(
    data: str | bytes,
    *,
    name: str | None = None,
    events: Iterable[str] = (),
    version: int | None = None,
    file: str | None = None,
    budgets: Budgets = BUDGETS,
) -> Converted:
    """Turn the JSON of an XState machine into a machine document.

    Args:
        name: of the machine; without it the machine's own id, or `machine`.
        events: what may be sent besides the events that the file names; for wildcards.
        version: of XState, 4 or 5; without it the file tells by its words, and 5 is the default.
        file: its name in diagnostics.

    Raises:
        ConvertError: it holds what cannot be carried over; every such construct is named.
        DefinitionError: it is no legal JSON, or too large.
    """
    document = read_document(data, file=file, budgets=budgets)
    given = tuple(events)

    def importing(*, apart: bool) -> Converted:
        findings = Findings(document.source)
        tree = Tree(document, name, findings)
        told = version or tree.version()
        return _Importer(document, tree, findings, told, apart=apart).convert(name, given)

    try:
        return importing(apart=False)
    except Hidden:
        return importing(apart=True)


class _Importer:
    """Carries one machine over.

    Args:
        apart: no inner state is called like one at the top.
    """

    def __init__(
        self, document: Document, tree: Tree, findings: Findings, version: int, *, apart: bool
    ) -> None:
        self._document = document
        self._tree = tree
        self._findings = findings
        self._version = version
        root = tree.root
        self._wraps = root.kind == "parallel"  # then the machine itself is a state of ours
        top = [root] if self._wraps else [*root.children.values()]
        self._locals = local_names(
            top, lambda node: node.children.values(), lambda node: node.key, apart=apart
        )
        self._paths: dict[Node, str] = {}
        for node in tree.nodes if self._wraps else tree.nodes[1:]:
            local = self._locals[node]
            around = self._paths.get(node.parent, "") if node.parent is not None else ""
            self._paths[node] = f"{around}.{local}" if around else local
            if local != node.key:
                message = f"the state `{node.key}` is called `{local}` here"
                tree.note("renamed", message, node.where)
        self._names = Names(RESERVED)
        self._events: dict[str, str] = {}
        self._opaque = Opaque(findings)
        self._fields = Names()
        self._data = context(tree, self._fields)
        self._code = Code(tree, self._opaque, self._fields)
        self._choices = Choices(findings)
        self._begins = Beginnings(tree)

    def convert(self, name: str | None, events: Iterable[str]) -> Converted:
        root = self._tree.root
        named = dict.fromkeys(
            trigger.name
            for node in self._tree.nodes
            for trigger in node.triggers
            if trigger.kind == "on" and not trigger.name.endswith("*")
        )
        known = [*(named | dict.fromkeys(events))]
        if not self._wraps:
            for key in ("after", "onDone", "entry", "exit", "invoke"):
                if root.config.get(key):
                    message = f"`{key}` of the machine itself cannot be carried over"
                    self._tree.refuse("machine-level", message, (key,))
        definition: Definition = {
            "machine": name or root.key or "machine",
            "version": 1,
        }
        if not self._wraps:
            self._describe(root, definition)
        if any(node.kind == "parallel" for node in self._tree.nodes):
            definition["conflicts"] = "first-region"
        begins = [root] if self._wraps else self._begins.of(root)
        definition["initial"] = self._paths[begins[0]] if begins else ""
        top = [root] if self._wraps else [*root.children.values()]
        states = {self._locals[node]: self._state(node, known) for node in top}
        if data := self._data | self._opaque.declared():
            definition["data"] = data
        definition["states"] = states
        self._findings.check()
        counts = count_states(definition) | self._tree.counts()
        places: Places = {
            path: self._document.mark(node.where, key=True) for node, path in self._paths.items()
        }
        definition = settle(definition, self._findings, {"": self._document.mark(()), **places})
        return Converted(
            definition=definition,
            notes=self._findings.notes,
            states={".".join(node.keys): path for node, path in self._paths.items()},
            events=dict(self._events),
            counts=counts,
        )

    def _event(self, event: str, where: Path) -> str:
        if event not in self._events:
            name = self._events[event] = self._names.give(event, "event")
            if name != event:
                message = f"the event `{event}` is called `{name}` here"
                self._tree.note("renamed", message, where)
        return self._events[event]

    # Transitions

    def _branch(self, raw: Raw, holder: Node) -> Definition:
        """Write a transition as a branch of `holder`: its source, or a state the machine holds."""
        branch: Definition = {}
        source, config = raw.source, raw.config
        # The machine itself is no state of ours: to go to it is to begin again.
        targets = [
            node
            for one in self._tree.targets(raw)
            for node in (self._begins.of(one) if one not in self._paths else [one])
        ]
        stays = bool(targets) and source is holder and self._is_internal(raw, targets)
        if stays and targets == [source]:
            targets = self._begins.of(source)
        if targets:
            texts = [self._paths[node] for node in targets]
            branch["to"] = texts[0] if len(texts) == 1 else texts
            if stays:
                branch["internal"] = True
                if source.kind == "parallel":
                    message = f"a transition that does not leave the parallel `{source.key}`"
                    self._tree.refuse("internal-parallel", message, raw.where)
        place = (*raw.where, "actions")
        if hooks := self._code.actions(config.get("actions"), place, self._event):
            branch["do"] = hooks
        word = "guard" if "guard" in config else "cond"
        if (guard := config.get(word)) is not None:
            where = (*raw.where, word)
            branch["when"] = self._code.guard(guard, where, self._document.mark(where))
        self._describe(raw, branch)
        return branch

    def _describe(self, of: Node | Raw, made: Definition) -> None:
        description = of.config.get("description")
        if isinstance(description, str) and description:
            made["description"] = description

    def _is_internal(self, raw: Raw, targets: list[Node]) -> bool:
        source, config = raw.source, raw.config
        if not all(node is source or node.is_in(source) for node in targets):
            return False
        if self._version == 5:
            return not config.get("reenter")
        given = config.get("target")
        relative = isinstance(given, str) and given.startswith(".")
        return bool(config.get("internal", relative))

    def _choose(self, raws: list[Raw], holder: Node, trigger: str) -> Any:
        branches = [self._branch(raw, holder) for raw in raws]
        return self._choices.write(branches, trigger, self._document.mark(raws[0].where))

    def _answers(self, node: Node, events: list[str]) -> dict[str, list[Raw]]:
        """List what a state answers to which event: by its name first, then by wildcards."""
        found: dict[str, list[Raw]] = {}
        wild: list[tuple[str, list[Raw]]] = []
        for (kind, name), raws in node.triggers.items():
            if kind == "on" and name.endswith("*"):
                wild.append((name[:-1], raws))
            elif kind in ("on", "invoke") and raws:
                found.setdefault(name, []).extend(raws)
        for prefix, raws in sorted(wild, key=lambda pair: -len(pair[0])):
            for event in events:
                if f"{event}.".startswith(prefix):
                    found.setdefault(event, []).extend(raws)
            message = f"`{prefix}*` stands for the events that are known and match it"
            self._tree.note("descriptor-expanded", message, node.where)
        return found

    # States

    def _state(self, node: Node, events: list[str]) -> Definition:
        if node.kind == "history":
            return self._history(node)
        made: Definition = {}
        self._describe(node, made)
        if node.kind == "final":
            made["final"] = True
        if node.kind == "parallel":
            made["type"] = "parallel"
            made["order"] = [self._locals[region] for region in node.regions]
        elif begins := self._begins.of(node):
            made["initial"] = self._paths[begins[0]].removeprefix(f"{self._paths[node]}.")
        for key, words in (("on_enter", ("entry", "onEntry")), ("on_exit", ("exit", "onExit"))):
            hooks = [
                hook
                for word in words
                for hook in self._code.actions(
                    node.config.get(word), (*node.where, word), self._event
                )
            ]
            if hooks:
                made[key] = hooks
        self._note_invokes(node)
        self._add_transitions(node, made, events)
        if node.children:
            inner = node.children.values()
            made["states"] = {self._locals[child]: self._state(child, events) for child in inner}
        return made

    def _add_transitions(self, node: Node, made: Definition, events: list[str]) -> None:
        answers = self._answers(node, events)
        automatic = [*node.triggers.get(Trigger("always"), ())]
        if node.parent is self._tree.root and not self._wraps and node.kind != "final":
            for event, raws in self._answers(self._tree.root, events).items():
                answers.setdefault(event, []).extend(raws)
            automatic += self._tree.root.triggers.get(Trigger("always"), ())
        if node.kind == "final" and (answers or automatic):
            message = f"the final state `{node.key}` has transitions"
            self._tree.refuse("final-with-transitions", message, node.where)
        if answers:
            made["on"] = {
                self._event(event, raws[0].where): self._choose(raws, node, f"`{event}`")
                for event, raws in answers.items()
            }
        if automatic:
            made["always"] = self._choose(automatic, node, "no event")
        for (kind, name), raws in node.triggers.items():
            if kind == "after" and raws:
                self._add_timer(node, made, name, raws)
            elif kind == "done" and raws:
                made["on_done"] = self._choose(raws, node, "`onDone`")

    def _add_timer(self, node: Node, made: Definition, delay: str, raws: list[Raw]) -> None:
        where = (*node.where, "after", delay)
        text = duration(delay)
        timers = made.setdefault("after", {})
        if text is None:
            message = f"the delay `{delay}` is computed by code, or is no time"
            self._tree.refuse("named-delay", message, where)
        elif text in timers:
            self._tree.refuse("named-delay", f"the delay `{delay}` stands twice", where)
        else:
            timers[text] = self._choose(raws, node, f"`after {delay}`")

    def _note_invokes(self, node: Node) -> None:
        place = (*node.where, "invoke")
        for index, invoke in enumerate(node.invokes):
            self._tree.known(invoke, INVOKE_KEYS, "`invoke`", place)
            for key in ("input", "data"):
                if invoke.get(key):
                    message = f"`{key}` of what `{node.key}` invokes is left out"
                    self._tree.note("annotation-dropped", message, place)
            id = invoke_id(node, index)
            message = f"`{node.key}` invokes `{invoke.get('src')}`: who runs it sends the event"
            message += f" `done.invoke.{id}` or `error.platform.{id}`"
            self._tree.note("invoke-as-events", message, place)

    def _history(self, node: Node) -> Definition:
        made: Definition = {"type": "history"}
        if node.config.get("history") == "deep":
            made["history"] = "deep"
        around, given = node.parent, node.config.get("target")
        assert around is not None
        if given is not None:
            found = self._tree.target(given, node, node.where)
            targets = [] if found is None or found not in self._paths else [found]
        else:
            targets = self._begins.of(around)
        texts = [self._paths[one] for one in targets]
        if texts:
            made["to"] = texts[0] if len(texts) == 1 else texts
        return made


def duration(delay: str) -> str | None:
    """Write a delay in milliseconds as a duration, in the largest unit that holds it whole."""
    if not delay.isascii() or not delay.isdigit() or len(delay) > 18:
        return None
    count = int(delay)
    whole = (f"{count // size}{unit}" for size, unit in UNITS if count % size == 0)
    text = next(whole, f"{count}ms")
    try:
        parse_duration(text)
    except DurationError:
        return None
    return text
