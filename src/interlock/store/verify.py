"""Verification: whether a store's records tell a story that its declarations allow.

The records alone are read, in pages. A page is a short transaction of its own, so writers go on
beside it, and what is known between two pages is the place reached and the walk along one instance:
memory does not grow with the store. A walk that a page interrupts goes on with the next, and an
instance is compared with its history only on rows that one statement read together; so an entry
that is written meanwhile is no finding.

A report can be kept: it names the head of every instance, and a later verification that is given
it finds instances that are gone and histories that lost their tail or tell another story.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from json import loads
from typing import Any, NamedTuple, Protocol, TypeVar

from interlock.core.audit import Fault
from interlock.core.declaration import check_declaration, declaration_digest
from interlock.core.identity import root_of
from interlock.core.machine import Machine
from interlock.core.record import text_digest
from interlock.core.rejection import StorageFailure
from interlock.core.text import Limits, clipped, quoted
from interlock.store.pages import Change, Page, Place, beginning, next_key, read_page
from interlock.store.plan import Plan, Row, Statement
from interlock.store.read import not_known
from interlock.store.walk import DECLARATION, ID, ROOT, STANDING, Earlier, Head, Walk

T = TypeVar("T")

PAGE_ROWS = 2000  # entries read in one transaction
PAGE_CHANGES = 500  # of data, with what they say, which may be much
FINDINGS_KEPT = 10_000  # in a report's memory; the count goes on
MACHINES_KEPT = 256
_NO_LIMITS = Limits(name_bytes=2**31, declaration_bytes=2**31)  # a store may have its own
_ANY_WIDTH = 10_000  # characters of an id in a finding, which somebody may want to look up
PAGE_DECLARATIONS = 20

_Contents = dict[tuple[str, str], bytes | None]  # of payloads, by root and id


class Finding(NamedTuple):
    """A broken promise.

    Attributes:
        instance: the id of the instance, or None where it is about a declaration or the file.
        entry: the sequence number of the entry it shows in, or None.
        invariant: which of the specification's invariants is broken, 1 to 10.
        what: one sentence.
    """

    instance: str | None
    entry: int | None
    invariant: int
    what: str

    def __str__(self) -> str:
        place = "store" if self.instance is None else f"instance {clipped(self.instance)}"
        entry = "" if self.entry is None else f" entry {self.entry}"
        return f"{place}{entry}: invariant {self.invariant}: {self.what}"


@dataclass(frozen=True, slots=True)
class Report:
    """What a verification found.

    Attributes:
        instances, entries: how many were read.
        count: of all findings; `findings` holds the first `FINDINGS_KEPT`.
    """

    instances: int
    entries: int
    count: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken."""
        return self.count == 0

    def as_dict(self) -> dict[str, Any]:
        """Give the report as JSON-like values."""
        findings = [finding._asdict() for finding in self.findings]
        return {
            "ok": self.ok,
            "instances": self.instances,
            "entries": self.entries,
            "count": self.count,
            "findings": findings,
        }


class Reader(Protocol):
    """What a verification needs of a database.

    Attributes:
        least: the first character that a text may hold.
        beyond: comes after every id.
    """

    @property
    def least(self) -> str: ...

    @property
    def beyond(self) -> str | bytes: ...

    def read(self, plan: Plan[T], *, lenient: bool = False) -> T: ...

    def schema_faults(self) -> list[str]: ...

    def damage(self) -> list[str]: ...


def verify(
    database: Reader,
    tenant: str,
    *,
    id: str | None,
    since: Iterable[Head],
    on_head: Callable[[Head], None],
    on_finding: Callable[[Finding], None],
    on_page: Callable[[int], None],
) -> Report:
    """Verify a whole store, or the one instance `id`.

    Args:
        since: the heads of an earlier report, in its order.
        on_head, on_finding: told each head and each finding as the walk comes to it.
        on_page: told how many entries have been read so far.

    Raises:
        NotKnown: the records hold nothing of the instance `id`.
        StorageFailure: the file cannot be read. That it is damaged is a finding, not a failure.
    """
    audit = _Audit(database, tenant, id, since, _through(on_head), _through(on_finding))
    try:
        if id is None:
            audit.schema()
            audit.damage()
            audit.misfits()
            audit.strangers()
            audit.declarations()
            audit.definitions()
        audit.records(_through(on_page))
        if id is None:
            audit.start_keys()
    except StorageFailure as failure:
        if failure.kind not in ("damaged", "unreadable") and not audit.altered:
            raise
        if not audit.damaged:
            audit.found(id, [Fault(10, None, str(failure))])
    except _ListenerFailed as failed:
        raise failed.error from None
    except (TypeError, AttributeError, ValueError) as error:
        what = f"a stored value is of a type that no store writes ({error}); nothing more was read"
        audit.found(id, [Fault(10, None, what)])
    if id is not None and not audit.instances and not audit.count:
        raise not_known(id)
    return Report(audit.instances, audit.entries, audit.count, tuple(audit.findings))


class _ListenerFailed(Exception):
    """Carries what a listener raised past those who would take it for a fault of the records."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


def _through(listener: Callable[[T], None]) -> Callable[[T], None]:
    def tell(told: T) -> None:
        try:
            listener(told)
        except Exception as error:
            raise _ListenerFailed(error) from error

    return tell


class _Audit:
    """One verification: the place reached, and what was found on the way."""

    def __init__(
        self,
        database: Reader,
        tenant: str,
        only: str | None,
        since: Iterable[Head],
        on_head: Callable[[Head], None],
        on_finding: Callable[[Finding], None],
    ) -> None:
        self.database = database
        self.tenant = tenant
        self.only = only
        self.on_head = on_head
        self.on_finding = on_finding
        self.earlier = Earlier(head for head in since if only in (None, head.instance))
        self.machines: dict[str, Machine | None] = {}
        self.altered = False  # the schema: then no table need be there
        self.damaged = False  # the file, as was said
        self.walk: Walk | None = None
        self.instances = 0
        self.entries = 0
        self.count = 0
        self.findings: list[Finding] = []

    def found(self, instance: str | None, faults: Iterable[Fault]) -> None:
        for fault in faults:
            if self.only not in (None, instance):
                continue
            name = None if instance is None else clipped(instance, _ANY_WIDTH)
            finding = Finding(name, fault.entry, fault.invariant, fault.what)
            self.count += 1
            self.on_finding(finding)
            if len(self.findings) < FINDINGS_KEPT:
                self.findings.append(finding)

    def read(self, plan: Callable[..., Plan[T]], *arguments: object) -> T:
        """Drive a plan; where text in the file is no text, once more with that passed over."""
        try:
            return self.database.read(plan(*arguments))
        except StorageFailure as failure:
            if failure.kind != "unreadable":
                raise
            return self.database.read(plan(*arguments), lenient=True)

    def schema(self) -> None:
        for fault in self.database.schema_faults():
            self.altered = True
            self.found(None, [Fault(10, None, f"the schema was altered: {fault}")])

    def damage(self) -> None:
        messages = self.database.damage()
        if messages:
            self.damaged = True
            first = clipped(" ".join(messages[0].split()), _ANY_WIDTH)
            more = f" ({len(messages) - 1} more)" if messages[1:] else ""
            self.found(None, [Fault(10, None, f"the file is damaged: {first}{more}")])

    def misfits(self) -> None:
        for table, count in self.read(_one_statement, "audit_misfits", ()):
            if count:
                what = f"{count} rows of {table} have a column of another type than the schema's"
                self.found(None, [Fault(10, None, what)])

    def strangers(self) -> None:
        """Look for rows that no tenant has; for a tenant, others' rows are none of its business."""
        if self.tenant:
            return
        for table, count in self.read(_one_statement, "audit_strangers", ("",)):
            if count:
                what = f"{count} rows of {table} are of another tenant, and hang on nothing there"
                self.found(None, [Fault(10, None, what)])

    def declarations(self) -> None:
        digest = ""
        while page := self.read(self._declarations_page, digest):
            digest = _later(next_key(page[-1][0][0], self.database.least), digest)
            for row, transitions in page:
                what = f"declaration {clipped(row[0])}"
                faults = _declaration_faults(row, transitions)
                self.found(None, (Fault(1, None, f"{what}: {fault}") for fault in faults))
        for digest, count in self.read(_one_statement, "audit_orphans", (self.tenant,)):
            what = f"declaration {clipped(digest)} is gone, but {count} of its transitions are here"
            self.found(None, [Fault(1, None, what)])

    def definitions(self) -> None:
        """Look at definitions as far as that can be told here: what they mean, an engine knows."""
        digest = ""
        asked = "audit_definitions"
        while page := self.read(_one_statement, asked, (self.tenant, digest, PAGE_DECLARATIONS)):
            digest = _later(next_key(page[-1][0], self.database.least), digest)
            for row in page:
                what = f"definition {clipped(row[0])}"
                faults = _definition_faults(row)
                self.found(None, (Fault(1, None, f"{what}: {fault}") for fault in faults))

    def _declarations_page(self, digest: str) -> Plan[list[tuple[Row, list[Row]]]]:
        page = []
        first = (self.tenant, digest, PAGE_DECLARATIONS)
        for row in (yield Statement("audit_declarations", [first])):
            page.append((row, (yield from self._transitions(row))))
        return page

    def _transitions(self, row: Row) -> Plan[list[Row]]:
        found: list[Row] = yield Statement("audit_transitions", [(self.tenant, row[0])])
        return found

    def _own_declaration(self, id: str, digest: str) -> None:
        """Check the declaration of the one instance that is verified."""
        for row in self.read(_one_statement, "audit_declaration", (self.tenant, digest)):
            faults = _declaration_faults(row, self.read(self._transitions, row))
            self.found(id, (Fault(1, None, f"its declaration: {fault}") for fault in faults))

    def records(self, on_page: Callable[[int], None]) -> None:
        only = self.only
        place: Place | None
        first = ("", "") if only is None else (root_of(only), only)
        place = beginning(*first)
        beyond = self.database.beyond
        last = (beyond, beyond) if only is None else first
        done: Row = first  # up to here, everything has been looked for that no walk meets
        while place is not None:
            page, contents, until, strays = self.read(self._records_page, place, last, done)
            self._follow(page, contents)
            place = page.following()
            done = (until[0], next_key(until[1], self.database.least)) if until else done
            for instance, fault in strays:
                self.found(instance, [fault])
            on_page(self.entries)
        self._finish()
        self.found_gone(self.earlier.before(None))

    def _records_page(
        self, place: Place, last: Row, done: Row
    ) -> Plan[tuple[Page, _Contents, Row | None, list[tuple[str, Fault]]]]:
        """Read a page, the declarations it needs, and what its statements cannot meet in a walk.

        That is looked for from `done` to the last instance that the page holds to its end.
        """
        least = self.database.least
        page = yield from read_page(self.tenant, place, last, PAGE_ROWS, PAGE_CHANGES, least)
        digests = {row[DECLARATION] for row in page.rows}
        if len(self.machines) > MACHINES_KEPT:
            self.machines.clear()
        missing = digests - self.machines.keys()
        if missing:
            keys = [(self.tenant, digest) for digest in missing]
            texts: dict[str, str] = dict((yield Statement("read_declaration", keys)))
            for digest in missing:
                self.machines[digest] = _machine(digest, texts.get(digest))
        until = last if page.next is None else _finished(page.rows)
        strays = (yield from _strays((self.tenant, *done, *until))) if until else []
        contents = (yield from self._contents(page)) if page.changes else {}
        return page, contents, until, strays

    def _contents(self, page: Page) -> Plan[_Contents]:
        """Read what changed of the data; what events brought makes none of it."""
        keys = [
            (self.tenant, root, row.payload_id)
            for root, _, row in page.changes
            if row.kind != "event"
        ]
        rows = yield Statement("dump_payloads", keys)
        return {(root, id): content for root, id, _, content in rows}

    def _follow(self, page: Page, contents: _Contents) -> None:
        """Walk over the rows of a page."""
        walk, root, id, number = self.walk, None, None, None
        if walk is not None:
            root, id = walk.root, walk.id
        for row in page.records():
            if isinstance(row, Change):
                if walk is not None and row.id == id and row.root == root:
                    self._follow_change(walk, row, contents)
                continue
            if walk is None or row[ID] != id or row[ROOT] != root:
                self._finish()
                walk, number = self._begin(row), None
                root, id = walk.root, walk.id
            if row[0] is not None and row[0] != number:  # what stands twice is found by counting
                number = row[0]
                self.entries += 1
                faults = walk.entry(row)
                if faults:
                    self.found(walk.id, faults)
            walk.standing = row[STANDING]

    def _follow_change(self, walk: Walk, change: Change, contents: _Contents) -> None:
        row = change.row
        place = (row.sequence_number, row.ordinal)
        if place != walk.changed:  # what stands twice is found by counting
            walk.changed = place
            content = contents.get((change.root, row.payload_id))
            self.found(walk.id, walk.change(row, content))

    def _begin(self, row: Row) -> Walk:
        id, expected = row[ID], None
        if row[ROOT] == root_of(id):  # else it does not stand where a report would have it
            self.found_gone(self.earlier.before(id))
            expected = self.earlier.take(id)
        machine = self.machines[row[DECLARATION]]
        self.walk = walk = Walk(row, machine, expected)
        self.instances += 1
        if self.only is not None:
            self._own_declaration(id, row[DECLARATION])
        self.found(id, walk.begin())
        return walk

    def _finish(self) -> None:
        walk, self.walk = self.walk, None
        if walk is None:
            return
        self.found(walk.id, walk.finish())
        if walk.root == root_of(walk.id) and _reportable(walk.head):
            self.on_head(walk.head)

    def found_gone(self, heads: Iterable[Head]) -> None:
        for head in heads:
            what = f"the instance is gone; the earlier report saw it with {head.number} entries"
            self.found(head.instance, [Fault(10, None, what)])

    def start_keys(self) -> None:
        key = ""
        while page := self.read(_one_statement, "audit_start_keys", (self.tenant, key, PAGE_ROWS)):
            key = _later(next_key(page[-1][0], self.database.least), key)
            for named, instance_id, found, begun_under in page:
                if found is None:
                    what = f"the instance is gone, but the idempotency key {quoted(named)} names it"
                    self.found(instance_id, [Fault(10, None, what)])
                elif begun_under != named:
                    what = f"the idempotency key {quoted(named)} names it, which began otherwise"
                    self.found(instance_id, [Fault(10, None, what)])


def _later(after: T, before: T) -> T:
    """Give where a page ends, unless that is where it began: a damaged table goes in circles."""
    if after <= before:  # type: ignore[operator]
        raise ValueError(f"after the key {quoted(before)} comes {quoted(after)}")
    return after


def _one_statement(name: str, parameters: Row) -> Plan[list[Row]]:
    found: list[Row] = yield Statement(name, [parameters])
    return found


def _strays(bounds: Row) -> Plan[list[tuple[str, Fault]]]:
    """Look for what a walk from entry to entry does not meet, in the instances within bounds."""
    strays: list[tuple[str, Fault]] = []
    for id, count, number in (yield Statement("audit_strays", [bounds])):
        what = f"the instance is gone, but {count} of its entries are here, up to {number}"
        strays.append((id, Fault(10, None, what)))
    for (id,) in (yield Statement("audit_twins", [bounds])):
        strays.append((id, Fault(2, None, "the instance stands twice")))
    for id, number in (yield Statement("audit_numbers", [bounds])):
        strays.append((id, Fault(6, number, "its number stands twice in this history")))
    for id, number, transition_id in (yield Statement("audit_repeats", [bounds])):
        what = f"its transition id {quoted(transition_id)} stands twice in this history"
        strays.append((id, Fault(9, number, what)))
    for id, key in (yield Statement("audit_lost_keys", [bounds])):
        what = f"the idempotency key {quoted(key)} that it was begun under does not name it"
        strays.append((id, Fault(10, None, what)))
    for id, number, what, fault in (yield Statement("audit_payloads", [bounds])):
        invariant = 1 if number is None else 5
        strays.append((id, Fault(invariant, number or None, f"{what} {fault}")))
    for id, digest in (yield Statement("audit_undefined", [bounds])):
        strays.append((id, Fault(1, None, f"its definition {quoted(digest)} is missing")))
    for id, count, number in (yield Statement("audit_stray_changes", [bounds])):
        what = f"the instance is gone, but {count} changes of its data are here, up to {number}"
        strays.append((id, Fault(10, None, what)))
    for id, number, ordinal in (yield Statement("audit_ordinals", [bounds])):
        strays.append((id, Fault(6, number or None, f"change {ordinal} of its data stands twice")))
    for id, state, name, is_gone in (yield Statement("audit_stray_timers", [bounds])):
        what = "the instance is gone" if is_gone else "no entry of an engine set it"
        timer = f"{quoted(name)} of {quoted(state)}"
        strays.append((id, Fault(10, None, f"the timer {timer} is here, but {what}")))
    return strays


def _finished(rows: list[Row]) -> Row | None:
    """Find the last instance of a page that the page holds to its end, for certain."""
    if not rows:
        return None
    last = rows[-1][ID]
    return next(((row[ROOT], row[ID]) for row in reversed(rows) if row[ID] != last), None)


def _reportable(head: Row) -> bool:
    """Say whether a report can hold a head, which was read from who knows what."""
    match head:
        case (_, int(number), bytes()):
            return number >= 0
        case _:
            return False


def _machine(digest: str, text: str | None) -> Machine | None:
    declaration = _declaration(text)
    return None if check_declaration(declaration, _NO_LIMITS) else Machine(declaration, digest)


def _declaration(text: Any) -> Any:
    try:
        return loads(text)
    except (ValueError, TypeError, RecursionError):
        return None


def _declaration_faults(row: Row, transitions: list[Row]) -> Iterator[str]:
    """Compare a declaration with its digest, and with what the triggers read of it."""
    digest, text, initial_state, count = row
    if not isinstance(text, str) or _digest(text) != digest:
        yield "its text was altered: its digest differs"
    declaration = _declaration(text)
    defects = check_declaration(declaration, _NO_LIMITS)
    if defects:
        yield f"it is not well formed: {defects[0]}"
        return
    declared = [
        (row["from_state"], row["action"], row["to_state"], row.get("guard"), ordinal)
        for ordinal, row in enumerate(declaration["transitions"])
    ]
    if declared != transitions:
        yield "its rows in declared_transitions are not those of its text"
    if (initial_state, count) != (declaration["initial_state"], len(declared)):
        yield "what the schema reads of its text (initial state, number of transitions) was altered"


def _definition_faults(row: Row) -> Iterator[str]:
    _, name, version, text, digest = row
    try:
        altered = not isinstance(text, str) or text_digest(text) != digest
    except UnicodeEncodeError:
        altered = True
    if altered:
        yield "its text was altered: its digest differs"
    if not isinstance(_declaration(text), dict):
        yield "it is no JSON object"
    for what, value in (("name", name), ("version", version)):
        if not isinstance(value, str) or not value or value.isspace():
            yield f"it has no {what}"


def _digest(text: str) -> str | None:
    try:
        return declaration_digest(text)
    except UnicodeEncodeError:
        return None
