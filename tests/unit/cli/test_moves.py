"""`instantiate` and `fire`."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.machines import BATCH, MACHINES
from tests.unit.cli.line import MACHINE, CommandLine


def test_instantiate_prints_the_id(run: CommandLine) -> None:
    id = run.ok("instantiate", MACHINE)
    assert id.endswith("\n")
    assert id.count("\n") == 1
    assert run.ok("current", id.strip()) == "sampled\n"


def test_instantiate_with_everything(run: CommandLine) -> None:
    at = "2026-05-01T12:00:00+02:00"
    told = run.json(
        *("instantiate", MACHINE, "--actor", "planner", "--subject", "B-1", "--at", at),
        *("--metadata", '{"site": "Basel", "n": [1, null]}', "--key", "k1"),
    )
    assert told == {"id": told["id"], "state": "sampled"}
    (instance,) = run.json("list")["instances"]
    assert instance["id"] == told["id"]
    assert instance["actor_ref"] == "planner"
    assert instance["subject_ref"] == "B-1"
    assert instance["metadata"] == {"site": "Basel", "n": [1, None]}
    assert instance["instantiated_at"] == "2026-05-01T10:00:00+00:00"


def test_instantiate_with_a_key_again(run: CommandLine) -> None:
    first = run.ok("instantiate", MACHINE, "--key", "k")
    assert run.ok("instantiate", MACHINE, "--key", "k") == first
    run.refused("idempotency-conflict", "instantiate", MACHINE, "--key", "k", "--actor", "other")
    assert len(run.json("list")["instances"]) == 1


def test_instantiate_reads_yaml(run: CommandLine) -> None:
    (run.folder / "m.yaml").write_text(
        "states: [on, yes]\ninitial_state: on\nterminal_states: [yes]\n"
        "transitions: [{from_state: on, action: no, to_state: yes}]\n"
    )
    id = run.ok("instantiate", "m.yaml").strip()
    assert run.ok("fire", id, "no") == "yes\n"


def test_instantiate_refusals(run: CommandLine) -> None:
    bad = run.declare({**BATCH, "states": ["sampled", "testing", "released"]})
    told = run.refused("invalid-declaration", "instantiate", bad)
    assert told.count("unknown state `rejected`") == 2
    assert not run.is_made()
    run.refused("invalid-request", "instantiate", MACHINE, "--actor", " ")
    run.refused("invalid-request", "instantiate", MACHINE, "--metadata", "{}")
    later = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    assert "lies in the future" in run.refused(
        "invalid-request", "instantiate", MACHINE, "--at", later
    )
    assert run.json("list")["instances"] == []


def test_instantiate_usage(run: CommandLine) -> None:
    assert "does not exist" in run.misused("instantiate", "nosuch.json")
    assert "not JSON" in run.misused("instantiate", MACHINE, "--metadata", "{x")
    assert "not an ISO 8601 time" in run.misused("instantiate", MACHINE, "--at", "noon")
    assert "no offset" in run.misused("instantiate", MACHINE, "--at", "2026-05-01T12:00:00")
    assert not run.is_made()


def test_fire_prints_the_new_state(run: CommandLine, batch: str) -> None:
    assert run.ok("fire", batch, "begin-testing") == "testing\n"
    told = run.json("fire", batch, "release", "--assert-guard")
    assert told == {"id": batch, "action": "release", "state": "released"}


def test_fire_with_everything(run: CommandLine, batch: str) -> None:
    at = run.json("list")["instances"][0]["instantiated_at"]
    run.ok(
        *("fire", batch, "begin-testing", "--actor", "rivera", "--at", at, "--key", "k"),
        *("--expected-version", 1, "--reason", "why not", "--correlation-id", "c-1"),
        *("--causation-id", "c-0", "--worker-id", "w-7"),
    )
    (entry,) = run.json("history", batch)["entries"]
    del entry["transition_id"]
    assert entry == {
        "sequence_number": 1,
        "from_state": "sampled",
        "to_state": "testing",
        "action": "begin-testing",
        "actor_ref": "rivera",
        "fired_at": at,
        "reason": "why not",
        "correlation_id": "c-1",
        "causation_id": "c-0",
        "worker_id": "w-7",
    }


def test_fire_refusals(run: CommandLine, batch: str) -> None:
    run.refused("not-known", "fire", "nosuch", "release")
    run.refused("invalid-request", "fire", batch, " ")
    told = run.refused("invalid-transition", "fire", batch, "release")
    assert "(declared: `begin-testing`)" in told
    run.refused("version-conflict", "fire", batch, "begin-testing", "--expected-version", 7)
    run.refused("invalid-request", "fire", batch, "begin-testing", "--actor", "")
    early = "2001-01-01T00:00:00Z"
    run.refused("invalid-request", "fire", batch, "begin-testing", "--at", early)
    run.ok("fire", batch, "begin-testing", "--key", "k")
    assert run.ok("fire", batch, "begin-testing", "--key", "k") == "testing\n"
    run.refused("idempotency-conflict", "fire", batch, "release", "--key", "k")
    told = run.refused("guard-not-satisfied", "fire", batch, "release")
    assert "`QP-sign-off`" in told
    run.ok("fire", batch, "release", "--guard")
    run.refused("terminal", "fire", batch, "release", "--guard")
    assert len(run.json("history", batch)["entries"]) == 2


def test_a_refusal_in_json_has_its_fields(run: CommandLine, tested: str) -> None:
    result = run("fire", tested, "release", "--json")
    assert result.stdout == ""
    assert json.loads(result.stderr) == {
        "reason": "guard-not-satisfied",
        "message": "`release` from `testing` needs its guard `QP-sign-off` asserted",
        "instance_id": tested,
        "state": "testing",
        "action": "release",
        "guard": "QP-sign-off",
    }


def test_fire_usage(run: CommandLine, batch: str) -> None:
    run.misused("fire", batch)
    run.misused("fire", batch, "release", "--expected-version", 0)
    run.misused("fire", batch, "release", "--expected-version", "x")
    run.misused("fire", batch, "release", "--at", "2026-13-01T00:00:00Z")


@pytest.mark.parametrize("name", ["odd-names", "numeric-names", "spaced-names", "unicode-names"])
def test_odd_names_go_through(run: CommandLine, name: str) -> None:
    declaration = MACHINES[name]
    id = run.ok("instantiate", run.declare(declaration)).strip()
    for row in declaration["transitions"]:
        told = run.json("fire", id, "--", row["action"])
        assert told == {"id": id, "action": row["action"], "state": row["to_state"]}
        assert run.json("current", id)["state"] == row["to_state"]


def test_a_disk_that_fails_is_storage(
    run: CommandLine, batch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from interlock.core.rejection import OutcomeUnknown, StorageFailure

    for error in (
        StorageFailure("the disk is full", kind="full", retryable=True),
        OutcomeUnknown("it may have happened", transition_id="t-1"),
    ):

        def broken(*_: object, error: Exception = error, **__: object) -> str:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("interlock.store.store.Store.fire", broken)
            run.refused(error.reason, "fire", batch, "begin-testing", code=3)
            told = json.loads(run("fire", batch, "begin-testing", "--json").stderr)
            assert told["message"] == str(error)


def test_metadata_with_a_key_twice_is_refused(run: CommandLine) -> None:
    told = run.misused("instantiate", MACHINE, "--metadata", '{"a": 1, "a": 2}')
    assert "the key `a` stands twice" in told
