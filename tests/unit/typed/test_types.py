"""What a type checker says of programs that use typed states.

Each program is one that mypy reads with `--strict`. A line with `# refused: CODE` has to have that
error, and no other line any.
"""

import os
import re
from pathlib import Path

import pytest

from interlock.language import define
from interlock.typed.module import write_module
from tests.docs.pages import ROOT
from tests.support.typed import ORDER
from tests.unit.typed.test_module import nasty

GOOD = """
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, assert_never, assert_type

from interlock import Definition, Engine
from order import (
    Cancelled, Done, Draft, OpenNew, OpenPaid, Order, OrderData, OrderEvent, OrderState,
)

DUE = datetime(2026, 5, 1, tzinfo=UTC)


def use(engine: Engine, definition: Definition, id: str) -> str:
    order = Order.get(engine, id)
    assert_type(order, OrderState)
    assert_type(order.data.qty, int)
    assert_type(order.data.region, Literal["EU", "US"])
    match order:
        case Draft():
            assert_type(order.data.due_at, datetime | None)
            after = order.submit(qty=3, due_at=DUE, reason="why", actor_ref="ann")
            assert_type(after, OrderState)
        case OpenNew(data=data):
            assert_type(data.due_at, datetime)
            assert_type(data.total, Decimal)
            order.pay(amount=1)
            order.pay(amount=Decimal("1.5"), idempotency_key="k")
        case OpenPaid():
            order.release(asserting=["QP"])
            order.settle()
            order.settle(asserting=["big"])
        case Done() | Cancelled():
            return order.state
        case _:
            assert_never(order)
    order = Order.start(engine, definition, qty=1, total=3, days=[DUE], address={"city": "x"})
    if order.state == "draft":
        assert_type(order, Draft)
    if order.data.address is not None:
        assert_type(order.data.address["paid"], Decimal)
    for found in Order.find(engine, state="open.paid"):
        assert_type(Order.of(found), OrderState)
    event: OrderEvent = "submit"
    held: OrderData = order.data
    return f"{event} {held}"
"""

WRONG = """
from datetime import UTC, datetime
from typing import assert_never

from interlock import Definition, Engine
from order import Cancelled, Done, Draft, OpenNew, OpenPaid, Order, OrderEvent, OrderState

DUE = datetime(2026, 5, 1, tzinfo=UTC)


def draft(order: Draft) -> None:
    order.pay(amount=1)  # refused: attr-defined
    order.submit(due_at=DUE)  # refused: call-arg
    order.submit(qty="3", due_at=DUE)  # refused: arg-type
    order.submit(qty=3, due_at="2026-05-01T00:00:00Z")  # refused: arg-type
    order.submit(qty=3, due_at=DUE, amount=3)  # refused: call-arg
    order.submit(qty=3, due_at=DUE, actor_ref=3)  # refused: arg-type
    order.submit(3, due_at=DUE)  # refused: call-arg,misc,arg-type
    order.data.quantity  # refused: attr-defined
    order.data.due_at.year  # refused: union-attr
    order.data.qty = 3  # refused: misc
    order.data = order.data  # refused: misc


def waiting(order: OpenPaid) -> None:
    order.release()  # refused: call-arg
    order.release(asserting=["big"])  # refused: list-item
    order.submit(qty=1, due_at=DUE)  # refused: attr-defined


def any_of_them(order: OrderState) -> int:
    order.cancel()  # refused: union-attr
    if order.state == "open":  # refused: comparison-overlap
        return 1
    match order:
        case Draft() | OpenNew() | Cancelled():
            return order.version
        case Done():
            order.cancel()  # refused: attr-defined
            return 1
        case _:
            assert_never(order)  # refused: arg-type


def begin(engine: Engine, definition: Definition) -> OrderEvent:
    Order.start(engine, definition)  # refused: call-arg
    Order.start(engine, definition, qty=1, colour="red")  # refused: call-arg
    Order.start(engine, definition, qty=1, region="UK")  # refused: arg-type
    Order.start(engine, definition, qty=1, address={"zip": "1"})  # refused: arg-type
    Order.adopt(engine, definition, "open", qty=1)  # refused: arg-type
    Order.find(engine, state="opened")  # refused: arg-type
    return "sumbit"  # refused: return-value
"""


def refusals(text: str) -> dict[int, set[str]]:
    """Give the codes that the lines of a program are to be refused with."""
    return {
        number: {*found[1].split(",")}
        for number, line in enumerate(text.splitlines(), 1)
        if (found := re.search("# refused: (.*)$", line))
    }


def judged(folder: Path, name: str) -> dict[int, set[str]]:
    """Give the errors of a program, by line; an error in another file is at line 0."""
    from mypy import api

    options = ["--strict", "--follow-imports=silent", "--no-error-summary", "--no-pretty"]
    cache = folder.parent / "mypy-cache"
    told, failed, _ = api.run([*options, f"--cache-dir={cache}", str(folder / name)])
    assert not failed
    errors: dict[int, set[str]] = {}
    for line in told.splitlines():
        found = re.search(r"(\w+\.py):(\d+): error: .* \[([\w-]+)\]$", line)
        if found:
            at = int(found[2]) if found[1] == name else 0
            errors.setdefault(at, set()).add(found[3])
        assert found or " note: " in line, line
    return errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("typed") / "program"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def found_by_the_checker(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MYPYPATH", os.pathsep.join([str(ROOT / "src"), str(folder)]))
    monkeypatch.chdir(folder)
    (folder / "order.py").write_text(write_module(ORDER), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "program"), [("good.py", GOOD), ("wrong.py", WRONG)])
def test_a_checker_refuses_what_the_machine_does_not_have_and_nothing_else(
    folder: Path, name: str, program: str
) -> None:
    (folder / name).write_text(program, encoding="utf-8")
    assert judged(folder, name) == refusals(program)


@pytest.mark.slow
def test_the_modules_themselves_are_strictly_typed(folder: Path) -> None:
    assert judged(folder, "order.py") == {}
    (folder / "nasty.py").write_text(write_module(define(nasty())), encoding="utf-8")
    assert judged(folder, "nasty.py") == {}
