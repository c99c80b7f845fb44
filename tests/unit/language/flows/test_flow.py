"""Workflow documents: what they come to, what is wrong with them and where, and their digests."""

import json
from typing import Any

import pytest
import yaml

import interlock
from interlock import DefinitionError
from interlock.language.definition import restore
from interlock.language.flows.lifecycles import COMPENSATED_WORKFLOW, WORKFLOW
from interlock.language.flows.plan import Activity, Plan, Step, Wait
from tests.support.documents import FLOW

SECOND, DAY = 1_000_000, 86_400_000_000


def plan_of(text: str) -> Plan:
    plan = interlock.loads(text).plan
    assert plan is not None
    return plan


def flow(steps: str, **more: Any) -> str:
    """Write a workflow of which only what matters is written: its steps, and what stands beside."""
    beside = {"workflow": "w", "version": 1, "defaults": {"timeout": "1m"}, **more}
    return yaml.safe_dump({**beside, "steps": yaml.safe_load(steps)}, sort_keys=False)


def activity(step: Step) -> Activity:
    assert isinstance(step.work, Activity)
    return step.work


def wait(step: Step) -> Wait:
    assert isinstance(step.work, Wait)
    return step.work


def test_what_a_document_comes_to() -> None:
    plan = plan_of(FLOW)
    reserve = activity(plan.steps["reserve"])
    assert (reserve.name, reserve.queue, reserve.priority) == ("inventory.reserve", "stock", 5)
    assert reserve.retry.attempts == 5
    assert (reserve.retry.delay, reserve.retry.max_delay) == (2 * SECOND, 60 * SECOND)
    assert (reserve.retry.factor, reserve.retry.jitter) == (2.5, 0.1)
    assert reserve.retry.excluded == {"OutOfStock"}
    times = reserve.timeouts
    assert (times.start_to_close, times.heartbeat) == (30 * SECOND, 5 * SECOND)
    assert (times.schedule_to_start, times.schedule_to_close) == (3600 * SECOND, DAY)
    undo = plan.steps["reserve"].undo
    assert undo is not None
    assert (undo.name, undo.queue, undo.retry.attempts) == ("inventory.release", "other", 1)
    assert undo.timeouts.start_to_close == 10 * SECOND
    approve = plan.steps["approve"]
    assert (wait(approve).reason, wait(approve).length) == ("approval", 3 * DAY)
    assert wait(approve).refusal_continues
    assert approve.undo is not None
    assert approve.undo.given is None
    assert approve.undo.timeouts.start_to_close == 60 * SECOND
    charge = activity(plan.steps["charge"])
    assert plan.steps["charge"].passes_skip
    assert (charge.queue, charge.retry.attempts, charge.retry.delay) == ("shop", 5, SECOND)
    assert charge.retry.excluded == {"Fatal"}
    assert (charge.timeouts.start_to_close, charge.timeouts.heartbeat) == (60 * SECOND,) * 2
    fan_out = plan.steps["ship"].fan_out
    assert fan_out is not None
    assert (fan_out.most, fan_out.at_once) == (50, 3)
    repeat = plan.steps["settled"].repeat
    assert repeat is not None
    assert (repeat.every, repeat.most) == (30 * SECOND, 9)
    assert plan.steps["first"].needs == ("later", "paid", "told")
    assert plan.steps["first"].needs_any
    assert activity(plan.steps["first"]).retry.attempts == 1
    assert [wait(plan.steps[name]).length for name in ("paid", "later", "file")] == [
        None,
        None,
        DAY,
    ]
    assert wait(plan.steps["later"]).details.render({}) == {"for": 1800 * SECOND}
    assert wait(plan.steps["morning"]).details.render({}) == {
        "cron": "30 6 * * 1-5",
        "zone": "Europe/Paris",
    }
    assert plan.timeout == 7 * DAY
    assert plan.compensate_on == {"failed", "cancelled", "reserve", "OutOfStock"}
    assert plan.compensates


def test_templates_are_rendered_with_what_there_is() -> None:
    plan = plan_of(FLOW)
    given = activity(plan.steps["reserve"]).given
    assert given is not None
    values = {"input": {"sku": "A", "qty": 3}, "now": "2026-03-01T12:00:00Z"}
    assert given.render(values) == {
        "sku": "A",
        "note": "for ${ 3 of it",
        "more": [1, {"x": "2026-03-01T12:00:00Z"}],
    }
    assert given.names == {"input.sku", "input.qty", "now"}


def test_each_step_comes_after_what_it_needs() -> None:
    plan = plan_of(FLOW)
    places = {name: place for place, name in enumerate(plan.steps)}
    for step in plan.steps.values():
        assert all(places[name] < places[step.name] for name in step.needs)
        for name in step.needs:
            assert step.name in plan.dependents[name]


def test_a_workflow_is_a_machine_whose_declaration_is_its_lifecycle() -> None:
    whole = interlock.loads(FLOW)
    assert (whole.kind, whole.name, whole.version) == ("workflow", "order_fulfilment", "2")
    assert whole.declaration == COMPENSATED_WORKFLOW.declaration()
    assert whole.states == tuple(COMPENSATED_WORKFLOW.states)
    plain = interlock.loads(flow("a: {activity: x}"))
    assert plain.declaration == WORKFLOW.declaration()
    assert plain.leaves("Running") == ("Running",)
    assert interlock.loads("machine: m\ninitial: a\nstates: {a: {}}").kind == "machine"


def test_it_is_restored_from_its_document() -> None:
    definition = interlock.loads(FLOW)
    again = restore(definition.document)
    assert again == definition
    assert again.plan is not None
    assert definition.plan is not None
    assert again.plan.steps == definition.plan.steps


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in sorted(value, reverse=True)}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_keys_means_nothing() -> None:
    document = json.loads(interlock.loads(FLOW).document)
    assert interlock.define(shuffled(document)) == interlock.loads(FLOW)


ALIKE = [
    ("a: {activity: x}", "a: {activity: x, retry: {attempts: 3, delay: 1s, factor: 2.0}}"),
    ("a: {activity: x}", "a: {activity: x, timeout: 60s, queue: default, priority: 0}"),
    ("a: {activity: x, timeout: 60s}", "a: {activity: x, timeout: {start_to_close: PT1M}}"),
    ("a: {activity: x, retry: never}", "a: {activity: x, retry: {attempts: 1}}"),
    ("{a: {activity: x}, b: {activity: x, needs: a}}",
     "{b: {activity: x, needs: [a]}, a: {activity: x}}"),
    ("a: {wait: {timer: 90s}}", "a: {wait: {timer: 1m30s}}"),
    ("a: {wait: {cron: 0 0 * * *}, timeout: none}",
     "a: {wait: {cron: {cron: 0 0 * * *, zone: UTC}}, timeout: none}"),
    ("a: {activity: x, compensate: y}", "a: {activity: x, compensate: {activity: y, timeout: 1m}}"),
    ('a: {activity: x, for_each: "${ [1] }"}',
     'a: {activity: x, for_each: {in: "${ [1] }", max: 1000}}'),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), ALIKE)
def test_what_means_the_same_has_the_same_digest(one: str, other: str) -> None:
    assert interlock.loads(flow(one)).digest == interlock.loads(flow(other)).digest
    assert interlock.loads(flow(one, version=2)).digest != interlock.loads(flow(one)).digest


@pytest.mark.parametrize(
    "steps",
    [
        "a: {activity: y}",
        "a: {activity: x, when: now > now}",
        "a: {activity: x, retry: never}",
        "a: {activity: x, with: {a: 1}}",
        "a: {activity: x, compensate: y}",
        "a: {activity: x, returns: {a: {type: string}}}",
        "a: {activity: x, timeout: 2m}",
        "a: {activity: x, if_skipped: skip}",
        "a: {activity: x, priority: 1}",
        "a: {activity: x, queue: q}",
    ],
)
def test_what_means_something_else_has_another(steps: str) -> None:
    assert interlock.loads(flow(steps)).digest != interlock.loads(flow("a: {activity: x}")).digest


FAULTS = [
    ("a: {activity: x, needs: [b]}", "unknown-activity-step", "needs `b`"),
    ("{pay: {activity: x}, a: {activity: x, needs: pya}}", "unknown-activity-step", "needs `pya`"),
    ("{a: {activity: x, needs: [b]}, b: {activity: x, needs: [a]}}", "dependency-cycle", "needs"),
    ("a: {activity: x, needs: [a]}", "dependency-cycle", "`a` needs `a`"),
    ("a: {activity: x, needs: {any: []}}", "wrong-type", "empty list"),
    ("a: {activity: x, needs: [b, b]}", "wrong-type", "twice"),
    ("{a: {activity: x}, b: {activity: x, with: {v: '${ steps.a.output }'}}}",
     "unknown-activity-step", "does not need it"),
    ("a: {activity: x, with: {v: '${ steps.a.output }'}}", "unknown-activity-step", "not need it"),
    ("a: {activity: x, with: {v: '${ inptu.x }'}}", "expression-type", "unknown name `inptu`"),
    ("a: {activity: x, with: {v: '${ input.x }'}}", "expression-type", "no field `x`"),
    ("a: {activity: x, with: {v: '${ 1 + }'}}", "expression-syntax", "value"),
    ("a: {activity: x, with: {v: '${ 1'}}", "expression-syntax", "no `}`"),
    ("a: {activity: x, when: '1'}", "expression-type", "true or false"),
    ("a: {activity: x, when: item}", "expression-type", "unknown name `item`"),
    ("a: {activity: x, for_each: '${ 1 }'}", "expression-type", "goes over a list"),
    ("a: {activity: x, for_each: parcels}", "expression-type", "goes over a list"),
    ("a: {activity: x, repeat: {until: '1'}}", "expression-type", "true or false"),
    ("a: {activity: x, repeat: {until: output}, for_each: '${ [1] }'}", "wrong-type", "not both"),
    ("a: {activity: x, retry: {attempts: 0}}", "wrong-type", "from 1 to"),
    ("a: {activity: x, retry: {jitter: 2}}", "wrong-type", "from 0 to 1"),
    ("a: {activity: x, retry: {atempts: 2}}", "unknown-key", "atempts"),
    ("a: {activity: x, timeout: 1y}", "bad-duration", "`1y`"),
    ("a: {activity: x, timeout: {start_to_close: P1M}}", "bad-duration", "months"),
    ("a: {wait: {timer: soon}}", "bad-duration", "`soon`"),
    ("a: {wait: {cron: '0 0 30 2 *'}, timeout: none}", "bad-schedule", "never comes"),
    ("a: {wait: {cron: '* * * * * *'}, timeout: none}", "bad-schedule", "five fields"),
    ("a: {wait: {cron: 61 * * * *}, timeout: none}", "bad-schedule", "no schedule"),
    ("a: {wait: {cron: {cron: 0 0 * * *, zone: Mars/X}}, timeout: none}", "bad-schedule", "zone"),
    ("a: {wait: {message: {name: m}}}", "missing-timeout", "wait for ever"),
    ("a: {wait: {mesage: {name: m}}, timeout: 1m}", "unknown-key", "mesage"),
    ("a: {wait: {message: {name: m}, timer: 1m}, timeout: 1m}", "wrong-type", "side by side"),
    ("a: {wait: {file: {folder: m}}, timeout: 1m, on_refused: continue}", "unknown-key", "refused"),
    ("a: {wait: {timer: 1m}, retry: never}", "unknown-key", "retry"),
    ("a: {activity: x, wait: {timer: 1m}}", "unknown-key", "wait"),
    ("a: {activty: x}", "unknown-key", "activty"),
    ("a: {uses: x}", "unknown-key", "uses"),
    ("a: {}", "missing-key", "no `activity`"),
    ("a-b: {activity: x}", "bad-name", "a-b"),
    ("a: {activity: x, with: {a-b: 1}}", "bad-name", "a-b"),
    ("a: {activity: x, returns: {v: {type: strin}}}", "wrong-type", "strin"),
    ("{a: {activity: x, returns: {n: {type: integer}}, when: now > now},"
     " b: {activity: x, needs: [a], with: {v: '${ steps.a.output.n }'}}}",
     "expression-type", "may be absent"),
    ("{a: {activity: x}, c: {activity: x}, b: {activity: x, needs: {any: [a, c]},"
     " with: {v: '${ steps.a.output }'}}}", "expression-type", "may be absent"),
]  # fmt: skip


@pytest.mark.parametrize(("steps", "code", "said"), FAULTS)
def test_what_is_wrong_is_told_at_its_place(steps: str, code: str, said: str) -> None:
    with pytest.raises(DefinitionError) as caught:
        interlock.loads(flow(steps), file="w.yaml")
    errors = [found for found in caught.value.diagnostics if found.severity == "error"]
    assert [found.code for found in errors] == [code]
    (found,) = errors
    assert said in found.message
    assert found.file == "w.yaml"
    assert found.line is not None
    assert found.line > 4


def test_without_a_timeout_nothing_has_an_end() -> None:
    text = "workflow: w\nsteps:\n  a: {activity: x, compensate: y}\n"
    with pytest.raises(DefinitionError) as caught:
        interlock.loads(text)
    assert [found.code for found in caught.value.diagnostics] == ["missing-timeout"] * 2
    assert interlock.loads(text.replace("x,", "x, timeout: 1m,")).plan is not None


def test_all_faults_are_told_at_once() -> None:
    text = """
workflow: w
input: {n: {type: intger}}
steps:
  a: {activity: x, needs: [nope], with: {v: "${ input.m }"}}
  b: {wait: {cron: "0 0 31 2 *"}, when: "steps.a.output"}
  c: {uses: y, timeout: 1x}
  d: {activity: x, timeout: 1m, needs: [c]}
output: "${ steps.e.output }"
"""
    with pytest.raises(DefinitionError) as caught:
        interlock.loads(text)
    found = [(one.line, one.code) for one in caught.value.diagnostics]
    assert found == [
        (3, "wrong-type"),
        (5, "missing-timeout"),
        (5, "unknown-activity-step"),
        (5, "expression-type"),
        (6, "missing-timeout"),
        (6, "bad-schedule"),
        (7, "unknown-key"),
        (7, "bad-duration"),
        (9, "expression-type"),
    ]


def test_outputs_that_may_be_absent_are_asked_for() -> None:
    text = flow(
        """
a: {activity: x, returns: {n: {type: integer}}, when: now > now}
b: {activity: x, needs: [a], when: has(steps.a.output) && steps.a.output.n > 3}
c: {activity: x, needs: {any: [a, b]}, when: has(steps.b.output)}
d: {activity: x, needs: [c], with: {v: "${ steps.c.output.deep.down }"}}
"""
    )
    assert list(plan_of(text).steps) == ["a", "b", "c", "d"]


def test_a_chain_of_thousands_of_steps_compiles() -> None:
    steps: dict[str, Any] = {
        f"s{n}": {"activity": "x", **({"needs": [f"s{n - 1}"]} if n else {})} for n in range(3000)
    }
    steps["s2999"]["with"] = {"v": "${ steps.s0.output }"}
    document = {"workflow": "w", "defaults": {"timeout": "1m"}, "steps": steps}
    plan = interlock.define(document).plan
    assert plan is not None
    assert len(plan.steps) == 3000


def test_an_engine_says_that_it_does_not_run_workflows_yet() -> None:
    with interlock.open("sqlite://") as store:
        engine = interlock.Engine(store)
        with pytest.raises(interlock.InvalidRequest, match="is a workflow"):
            engine.start(interlock.loads(FLOW))
