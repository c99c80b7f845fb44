"""What somebody with the database in hand can do to what engines wrote, and what `verify` says.

Each tampering is SQL that is executed on a sound store of either database, with the triggers out
of its way. Then the whole store is verified, in large pages and in pages so small that they end
everywhere, and what is found is named exactly: instance, entry, invariant, and why.
"""

import re
import sqlite3
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
import pytest

import interlock
from interlock.core.declaration import declaration_digest, declaration_text
from interlock.core.record import ChangeRow, change_digest, payload_digest, text_digest
from interlock.store import verify
from interlock.store.store import Store
from tests.support import orders
from tests.support.machines import TOGGLE
from tests.support.postgres import at, database, server
from tests.support.tampering import triggers_dropped

PAGES = [(2000, 500), (3, 2), (2, 3), (5, 1)]


class Hand:
    """Somebody with the database in hand; parameters are written `?`."""

    def __init__(self, connection: Any, mark: str) -> None:
        self.connection, self.mark = connection, mark

    def execute(self, sql: str, *parameters: object) -> list[Any]:
        cursor = self.connection.execute(sql.replace("?", self.mark), parameters)
        return cursor.fetchall() if cursor.description else []


class Place(NamedTuple):
    """A sound store: how to open it, how to tamper with it, its instances by name."""

    open: Callable[[], Store]
    tampering: Callable[[], Any]
    names: dict[str, str]


def fill(store: Store) -> dict[str, str]:
    names = orders.populate(store, rounds=70)
    names["plain"] = plain = store.instantiate(TOGGLE, "ann")
    store.fire(plain, "go", reason="why")
    return names


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, str]]:
    path = tmp_path_factory.mktemp("sound") / "store.db"
    with interlock.open(f"sqlite:///{path}") as store:
        names = fill(store)
    return path.read_bytes(), names


@pytest.fixture(scope="module")
def sound_database() -> Iterator[tuple[str, dict[str, str]]]:
    with database() as url:
        with interlock.open(url) as store:
            names = fill(store)
        yield url, names


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "sqlite":
        content, names = request.getfixturevalue("sound")
        path = tmp_path / "store.db"
        path.write_bytes(content)

        @contextmanager
        def tamper() -> Iterator[Hand]:
            with (
                closing(sqlite3.connect(path, isolation_level=None)) as connection,
                triggers_dropped(connection),
            ):
                yield Hand(connection, "?")

        yield Place(lambda: interlock.open(f"sqlite:///{path}"), tamper, names)
        return
    template, names = request.getfixturevalue("sound_database")
    with database(template=template) as url:
        name = urlsplit(url).path.removeprefix("/")

        @contextmanager
        def meddle() -> Iterator[Hand]:
            with psycopg.connect(at(server(), database=name), autocommit=True) as connection:
                connection.execute("SET session_replication_role = replica")
                connection.execute("SET search_path = interlock")
                yield Hand(connection, "%s")

        yield Place(lambda: interlock.open(url), meddle, names)


Tamper = Callable[[Hand, dict[str, str]], object]
Found = tuple[str | None, int | None, int, str]
CASES: dict[str, tuple[Tamper, list[Found]]] = {}


def finds(*found: Found) -> Callable[[Tamper], Tamper]:
    def register(tamper: Tamper) -> Tamper:
        CASES[tamper.__name__.replace("_", " ")] = (tamper, list(found))
        return tamper

    return register


# Definitions


@finds((None, None, 1, "its text was altered"))
def the_text_of_a_definition_is_altered(hand: Hand, names: dict[str, str]) -> None:
    ((text,),) = hand.execute("SELECT text FROM definitions")
    altered = text.replace("draft", "raft!")
    digest = text_digest(text) if hand.mark == "?" else text_digest(altered)  # a constraint there
    hand.execute("UPDATE definitions SET text = ?, text_digest = ?", altered, digest)
    if hand.mark != "?":
        hand.execute("ALTER TABLE definitions DROP CONSTRAINT definitions_text_digest")
        hand.execute("UPDATE definitions SET text_digest = ?", text_digest(text))


@finds(
    *(
        (name, None, 1, "its definition .* is missing")
        for name in ("draft", "open", "round", "closed", "adopted")
    )
)
def a_definition_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute("DELETE FROM definitions")


@finds(("draft", None, 1, "the genesis was altered"))
def an_instance_is_put_under_another_definition(hand: Hand, names: dict[str, str]) -> None:
    other = "a" * 64
    hand.execute(
        "INSERT INTO definitions SELECT tenant, ?, 'other', version, text, text_digest"
        " FROM definitions",
        other,
    )
    hand.execute("UPDATE instances SET definition_digest = ? WHERE id = ?", other, names["draft"])


@finds(
    ("draft", None, 1, "the genesis was altered"),
    ("draft", None, 5, "no engine began it"),
    ("draft", None, 5, "the head digest"),
)
def the_mark_of_an_engine_is_taken_away(hand: Hand, names: dict[str, str]) -> None:
    hand.execute("UPDATE instances SET definition_digest = NULL WHERE id = ?", names["draft"])


# Changes of data


AT = "instance_id = ? AND sequence_number = ? AND ordinal = ?"


@finds(("open", 1, 5, "change 1 of its data was altered"))
def a_change_is_given_another_payload(hand: Hand, names: dict[str, str]) -> None:
    row = hand.execute(
        f"SELECT payload_id, payload_digest FROM data_changes WHERE {AT}", names["open"], 1, 2
    )[0]
    hand.execute(
        f"UPDATE data_changes SET payload_id = ?, payload_digest = ? WHERE {AT}",
        *(*row, names["open"], 1, 1),
    )


@finds(("open", 1, 5, "change 0 of its data was altered"))
def a_change_is_made_one_of_another_kind(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(f"UPDATE data_changes SET kind = 'patch' WHERE {AT}", names["open"], 1, 0)


@finds(("open", 1, 5, "change 1 of its data is missing"))
def a_change_between_others_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(f"DELETE FROM data_changes WHERE {AT}", names["open"], 1, 1)


@finds(("open", 1, 5, "the head digest"))
def the_last_change_of_all_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(f"DELETE FROM data_changes WHERE {AT}", names["open"], 1, 2)


@finds(("closed", 2, 5, "does not follow the entry before"))
def the_last_change_of_an_entry_in_the_middle_is_removed(hand: Hand, names: dict[str, str]) -> None:
    """The entry after it follows it: no change can be cut without a trace."""
    hand.execute(f"DELETE FROM data_changes WHERE {AT}", names["closed"], 1, 2)


@finds(("draft", None, 5, "the head digest"))
def what_an_instance_began_with_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute("DELETE FROM data_changes WHERE instance_id = ?", names["draft"])


@finds(("draft", 3, 5, "entry 3, which is not there"))
def a_change_is_added_to_an_entry_that_is_not_there(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(
        "INSERT INTO data_changes SELECT tenant, root, instance_id, 3, 0, kind, payload_id,"
        " payload_digest, change_digest FROM data_changes WHERE instance_id = ?",
        names["draft"],
    )


@finds(("closed", 1, 5, "the payload of change 2 was altered"))
def a_payload_is_altered(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(
        "UPDATE payloads SET content = ? WHERE id ="
        f" (SELECT payload_id FROM data_changes WHERE {AT})",
        b'{"data":{"note":"stolen"}}',
        *(names["closed"], 1, 2),
    )


@finds(("closed", 1, 5, "the payload of change 1 is gone"))
def a_payload_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(
        f"DELETE FROM payloads WHERE id = (SELECT payload_id FROM data_changes WHERE {AT})",
        *(names["closed"], 1, 1),
    )


@finds(("draft", None, 7, "are not what the changes before make of them"))
def a_forger_writes_the_whole_anew_with_digests_to_fit(hand: Hand, names: dict[str, str]) -> None:
    """Digests that fit are no seal; but the story has to hold as well."""
    id, salt, content = names["draft"], b"salt", b'{"data":{"qty":1000}}'
    ((head,),) = hand.execute("SELECT head_digest FROM instances WHERE id = ?", id)
    row = ChangeRow(0, 1, "whole", "forged", payload_digest(salt, content), b"")
    digest = change_digest(bytes(head), id, row)
    hand.execute("INSERT INTO payloads VALUES ('', ?, 'forged', ?, ?)", id, salt, content)
    values = ("", id, id, *row[:-1], digest)
    hand.execute("INSERT INTO data_changes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", *values)
    hand.execute("UPDATE instances SET head_digest = ? WHERE id = ?", digest, id)


@finds(("plain", 1, 5, "no engine began it"))
def an_instance_of_no_engine_is_given_data(hand: Hand, names: dict[str, str]) -> None:
    hand.execute(
        "INSERT INTO data_changes SELECT tenant, ?, ?, 1, 0, kind, payload_id, payload_digest,"
        " change_digest FROM data_changes WHERE instance_id = ? AND ordinal = 0",
        *(names["plain"], names["plain"], names["draft"]),
    )
    hand.execute(
        "INSERT INTO payloads SELECT p.tenant, ?, p.id, p.salt, p.content FROM payloads AS p"
        " JOIN data_changes AS c ON c.payload_id = p.id AND c.instance_id = ?",
        *(names["plain"], names["draft"]),
    )


@finds(
    ("adopted", None, 10, "but 1 changes of its data are here"),
    ("adopted", None, 10, "the timer `P3D` of `open` is here, but the instance is gone"),
)
def an_instance_is_removed(hand: Hand, names: dict[str, str]) -> None:
    hand.execute("DELETE FROM instances WHERE id = ?", names["adopted"])


# Timers


@finds(("open", None, 10, "the timer `P3D` of `open` is here, but no entry of an engine set it"))
def a_timer_is_set_with_an_entry_to_come(hand: Hand, names: dict[str, str]) -> None:
    hand.execute("UPDATE timers SET sequence_number = 7 WHERE instance_id = ?", names["open"])


@finds(("plain", None, 10, "the timer `x` of `on` is here, but no entry of an engine set it"))
def an_instance_of_no_engine_is_given_a_timer(hand: Hand, names: dict[str, str]) -> None:
    plain = names["plain"]
    hand.execute("INSERT INTO timers VALUES ('', ?, ?, 'on', 'x', 1, 1, 1, 0, NULL)", plain, plain)


@pytest.mark.parametrize("name", CASES)
def test_a_tampering_is_found_and_named(
    place: Place, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tamper, expected = CASES[name]
    with place.tampering() as hand:
        tamper(hand, place.names)
    known = {id: name for name, id in place.names.items()}
    for rows, changes in PAGES:
        monkeypatch.setattr(verify, "PAGE_ROWS", rows)
        monkeypatch.setattr(verify, "PAGE_CHANGES", changes)
        with place.open() as store:
            found = [
                (known.get(one.instance or ""), one.entry, one.invariant, one.what)
                for one in store.verify().findings
                if "the schema was altered" not in one.what
            ]
        listed = "\n".join(map(str, found))
        assert len(found) == len(expected), listed
        for instance, entry, invariant, said in expected:
            assert any(
                one[:3] == (instance, entry, invariant) and re.search(said, one[3]) for one in found
            ), listed


def test_what_is_sound_is_found_sound_in_pages_of_every_size(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reports = set()
    with place.open() as store:
        for rows in (1, 2, 3, 7, 2000):
            for changes in (1, 2, 5, 500):
                monkeypatch.setattr(verify, "PAGE_ROWS", rows)
                monkeypatch.setattr(verify, "PAGE_CHANGES", changes)
                report = store.verify(report=tmp_path / "report.json")
                assert report.ok, report.findings[:3]
                reports.add((tmp_path / "report.json").read_text())
                assert store.verify(place.names["round"]).ok
    assert len(reports) == 1


def test_only_an_earlier_report_shows_a_tail_that_was_cut_to_fit(
    place: Place, tmp_path: Path
) -> None:
    """The last change goes, and the head is set back: the digest that the report kept is gone."""
    id = place.names["open"]
    with place.open() as store:
        store.verify(report=tmp_path / "before.json")
    with place.tampering() as hand:
        ((before,),) = hand.execute(f"SELECT change_digest FROM data_changes WHERE {AT}", id, 1, 1)
        hand.execute(f"DELETE FROM data_changes WHERE {AT}", id, 1, 2)
        hand.execute("UPDATE instances SET head_digest = ? WHERE id = ?", before, id)
    with place.open() as store:
        assert store.verify().ok
        (finding,) = store.verify(since=tmp_path / "before.json").findings
        assert finding[:3] == (id, 1, 5)
        assert "it is not the entry of the earlier report" in finding.what


def test_a_destroyed_payload_is_lawful_and_leaves_the_rest_verifiable(place: Place) -> None:
    with place.open() as store:
        id = place.names["round"]
        with place.tampering() as hand:
            hand.execute(
                "UPDATE payloads SET salt = NULL, content = NULL WHERE id ="
                f" (SELECT payload_id FROM data_changes WHERE {AT})",
                *(id, 30, 0),
            )
        assert store.verify().ok
        order = orders.engine_of(store).get(id)
        with pytest.raises(interlock.StorageFailure, match="destroyed"):
            order.data_at(30)
        assert order.data["rounds"] == 70  # written as a whole since


def test_memory_is_flat(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "PAGE_ROWS", 20)
    monkeypatch.setattr(verify, "PAGE_CHANGES", 20)
    peaks = []
    for rounds in (150, 600):
        url = f"sqlite:///{tmp_path}/{rounds}.db?synchronous=normal"
        with interlock.open(url) as store:
            orders.populate(store, rounds=rounds)
            store.verify()
            tracemalloc.start()
            assert store.verify().ok
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < peaks[0] * 1.3


# Beside writers


def test_what_is_written_meanwhile_is_no_finding(
    place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pages end between an entry and its changes, and instances go on while they are read."""
    ended = threading.Event()
    with place.open() as store, place.open() as other, ThreadPoolExecutor(2) as pool:
        engine = orders.engine_of(other)
        engine.tick()

        def keep_sending(id: str) -> int:
            sent = 0
            while not ended.is_set():
                engine.get(id).send("again")
                if sent < 20:
                    orders.begin(engine).send("submit", {"qty": sent})
                sent += 1
                time.sleep(0.02)
            return sent

        writers = [pool.submit(keep_sending, place.names[name]) for name in ("open", "round")]
        since = None
        try:
            for number, (rows, changes) in enumerate([(50, 20), *PAGES, (7, 9)]):
                monkeypatch.setattr(verify, "PAGE_ROWS", rows)
                monkeypatch.setattr(verify, "PAGE_CHANGES", changes)
                target = tmp_path / f"{number}.json"
                report = store.verify(since=since, report=target)
                assert report.ok, [str(finding) for finding in report.findings[:5]]
                assert store.verify(place.names["open"]).ok
                since = target
        finally:
            ended.set()
        assert all(writer.result(60) > 0 for writer in writers)


def test_many_begin_a_definition_that_nobody_had(place: Place) -> None:
    """Each finds it kept, or keeps it, whoever is first."""
    with ExitStack() as stack:
        stores = [stack.enter_context(place.open()) for _ in range(4)]
        definition = interlock.loads(orders.OTHER.replace("dev", "7"), prove=False)
        gate = threading.Barrier(len(stores))

        def start(store: Store) -> str:
            engine = orders.engine_of(store)
            engine.tick()
            gate.wait(30)
            return engine.start(definition, {"qty": 1}).id

        with ThreadPoolExecutor(len(stores)) as pool:
            ids = list(pool.map(start, stores))
        listed = stores[0].instances(definition=definition.digest)
        assert sorted(one.id for one in listed) == sorted(ids)
        assert {one.definition_digest for one in listed} == {definition.digest}
        assert {one.definition for one in listed} == {
            declaration_digest(declaration_text(dict(definition.declaration)))
        }
        assert stores[0].verify().ok
