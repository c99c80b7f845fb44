"""Documents that are valid and use much of the language, and ways to spoil them."""

import copy
import json
from functools import cache
from typing import Any, TypeAlias

import yaml
from hypothesis import strategies as st

from interlock.language.document import read_document
from interlock.language.schema import machine_schema, workflow_schema
from tests.docs.pages import DOCS, code_blocks
from tests.support.charts import charts

WHOLE = """
machine: m
version: 1
description: all that there is
data: {amount: {type: number}, due_at: {type: date-time}}
events: {measured: {yield_pct: {type: number}}}
initial: a
conflicts: first-region
gates: {QP: {approver: "role:qp", scope: release}}
states:
  a:
    label: first
    on_enter: notify
    on_exit: [close, {raise: closed}]
    on:
      go: b
      stay: {do: [ring], name: here}
      measured: {to: b, set: {amount: event.yield_pct}, guard: QP, description: more}
      pick: [{to: b, when: data.amount < 1.0}, {to: p, when: data.amount >= 1.0}]
      first:
        order: first-match
        branches:
          - {to: b, when: {all: [{in: p.x}]}}
          - {to: p, when: {not: {check: ok}}}
          - {to: c, otherwise: true}
      into: {to: [p.x.x1, p.y]}
    always: {to: b, when: {any: [data.amount > 100.0, {check: late}]}}
    after: {P3D: c, soon: {at: data.due_at, to: c}}
  b:
    initial: b1
    on_done: c
    on: {again: b.h, deep: {to: b.b1, internal: true}, end: b.b2}
    data: [amount]
    states: {b1: , b2: {final: true, on_exit: bye}, h: {type: history, history: deep, to: b1}}
  p:
    type: parallel
    order: [y, x]
    on: {back: a}
    states: {x: {initial: x1, states: {x1: {}}}, y: {}}
  c: {final: true, on_enter: over, data: {amount: {type: number}}}
never: [{reach: c, without: a}]
"""

REGIONS = """
machine: order
version: "1.10"
initial: work
data: {paid: {type: boolean, default: false}}
states:
  work:
    type: parallel
    on: {cancel: stopped, pause: paused}
    on_done: {to: over, do: [{raise: closed}, tell]}
    states:
      pay:
        initial: due
        states:
          due: {on: {pay: {to: paid, guard: signed by the bank}}, after: {P30D: late}}
          late: {on: {pay: paid}}
          paid: {final: true}
      ship:
        initial: open
        states:
          open: {on: {send: {to: sent, when: {in: work.pay.paid}}}}
          sent: {final: true}
      back: {type: history, history: deep}
  paused: {on: {resume: work.back}, always: {to: stopped, when: {check: given_up}}}
  stopped: {final: true}
  over: {final: true}
"""

#: All that a workflow has; the parts that exclude each other stand in different steps.
FLOW = """
workflow: order_fulfilment
version: 2
description: all that there is
input:
  sku: {type: string}
  qty: {type: integer, default: 1}
  manager: {type: string}
  due_at: {type: date-time, optional: true}
  parcels: {type: array, items: {type: string}}
timeout: P7D
defaults: {timeout: 1m, retry: {attempts: 5, except: [Fatal]}, queue: shop}
compensate_on: [failed, cancelled, reserve, OutOfStock]
steps:
  reserve:
    activity: inventory.reserve
    description: keep it
    with: {sku: "${ input.sku }", note: "for $${ ${ input.qty } of it", more: [1, {x: "${ now }"}]}
    retry: {attempts: 5, delay: 2s, factor: 2.5, max_delay: 1m, jitter: 0.1, except: [OutOfStock]}
    timeout: {start_to_close: 30s, heartbeat: 5s, schedule_to_start: 1h, schedule_to_close: 1d}
    returns: {id: {type: string}, price: {type: decimal, scale: 2}}
    compensate:
      activity: inventory.release
      with: {id: "${ steps.reserve.output.id }"}
      retry: never
      timeout: 10s
      queue: other
    queue: stock
    priority: 5
  approve:
    needs: [reserve]
    when: input.qty > 10 && steps.reserve.output.price > 100
    wait: {approval: {approver: "${ input.manager }", about: {sku: "${ input.sku }"}}}
    timeout: P3D
    on_refused: continue
    compensate: tell
  charge: {needs: approve, if_skipped: skip, activity: payments.charge, compensate: payments.refund}
  ship:
    needs: [charge]
    for_each: {in: "${ input.parcels }", max: 50, at_once: 3}
    activity: parcel.ship
    with: {parcel: "${ item }", place: "${ index }"}
  settled: {needs: [ship], activity: ledger.poll, repeat: {until: output.ready, every: 30s, max: 9}}
  paid: {needs: [settled], wait: {message: {name: paid, key: "${ input.sku }"}}, timeout: none}
  told: {needs: [settled], wait: {webhook: {name: told}}, timeout: 1h}
  later: {needs: [settled], wait: {timer: 30m}}
  moment: {needs: [settled], wait: {timer: {at: "${ now }"}}}
  morning: {needs: [settled], wait: {cron: {cron: 30 6 * * 1-5, zone: Europe/Paris}}, timeout: P9D}
  file: {needs: [settled], wait: {file: {folder: in, pattern: "*.csv"}}, timeout: P1D}
  child: {needs: [settled], wait: {workflow: {name: o, version: 1, with: {a: 1}}}, timeout: P1D}
  first: {needs: {any: [paid, told, later]}, activity: tell, retry: never}
output: {ship: "${ steps.ship.output }", first: "${ steps.first.output.x }"}
"""

#: Valid documents, by name.
DOCUMENTS = {
    "flow": FLOW,
    "whole": WHOLE,
    "regions": REGIONS,
    "page": code_blocks(DOCS / "definitions.md", "yaml")[0],
}

Value: TypeAlias = Any
Place: TypeAlias = tuple[str | int, ...]

#: Values that are wrong almost everywhere, and names that are wrong, or look like others.
ODD: list[Value] = [
    None, True, False, 0, 5, -1.5, 1e300, "", " ", "x", "a.b", "a ", "caf\u00e9", "cafe\u0301",
    "a\u200b", "P3D", "P1Y", "b", "c", "p.x", "after", "superseded", "first-match", "parallel",
    "history", "data.amount < 1", [], {}, [1], {"a": 1}, [[]], {"": None}, {"to": "a"},
    {"check": "x", "in": "a"}, {"raise": "after"}, {"branches": []}, {"at": "x"},
    {"order": "first-match"}, "y" * 600,
]  # fmt: skip


def keys_of_the_schema() -> list[str]:
    """List every key that means something somewhere."""
    found: set[str] = set()

    def walk(part: Value) -> None:
        if isinstance(part, dict):
            found.update(part.get("properties", {}))
            for inner in part.values():
                walk(inner)
        for inner in part if isinstance(part, list) else ():
            walk(inner)

    walk([machine_schema(), workflow_schema()])
    return sorted(found)


_WRONG = ["", "x", "a.b", "caf\u00e9", "cafe\u0301", "target", "cond", "gaurd", "finl"]
_KEYS = st.sampled_from([*keys_of_the_schema(), *_WRONG])
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
)  # fmt: skip
_JSON = st.recursive(
    _SCALARS,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(_KEYS, parts, max_size=3),
    max_leaves=6,
)


@cache
def _values() -> list[Value]:
    return [read_document(text).value for text in DOCUMENTS.values()]


@st.composite
def spoilt_values(draw: st.DrawFn) -> Value:
    """A valid document with some of its parts taken out, doubled, renamed, moved or replaced."""
    value = copy.deepcopy(draw(st.sampled_from(_values()) | charts(depth=2)))
    change = _mislead if draw(st.integers(0, 2)) == 0 else _spoil
    for _ in range(draw(st.integers(1, 4))):
        value = change(draw, value)
    return value


def _mislead(draw: st.DrawFn, value: Value) -> Value:
    """Let some text of a document name another state: the shape stays as it was."""
    places = [*_places(value, ())]
    states = [place for place in places if len(place) % 2 == 0 and {*place[::2]} == {"states"}]
    paths = [".".join(map(str, place[1::2])) for place in states]
    named = ("initial", "to", "always", "on_done", "in", "reach", "without")
    texts = [
        place
        for place in places
        if isinstance(_at(value, place), str)
        and ({*named} & {*place[-2:]} or place[-2:-1] in (("on",), ("after",)))
    ]
    if texts and paths:
        *around, last = draw(st.sampled_from(texts))
        target = draw(st.sampled_from(paths) | st.lists(st.sampled_from(paths), max_size=2))
        _at(value, tuple(around))[last] = target
    return value


def _spoil(draw: st.DrawFn, value: Value) -> Value:
    places = [*_places(value, ())]
    place = draw(st.sampled_from(places))
    if not place:
        return copy.deepcopy(draw(st.sampled_from(ODD))) if draw(st.integers(0, 9)) == 0 else value
    holder = value
    for step in place[:-1]:
        holder = holder[step]
    last = place[-1]
    match draw(st.integers(0, 6)):
        case 0:
            del holder[last]
        case 1:
            holder[last] = copy.deepcopy(draw(st.sampled_from(ODD) | _JSON))
        case 2:
            holder[last] = [holder[last]]
        case 3:
            holder[last] = {draw(_KEYS): holder[last]}
        case 4:  # what stands elsewhere
            holder[last] = copy.deepcopy(_at(value, draw(st.sampled_from(places))))
        case 5 if isinstance(holder, dict):
            name = draw(_KEYS | st.just(f"{last}x") | st.just(f"{last}\u200b"))
            holder[name] = holder.pop(last)
        case 6 if isinstance(holder, dict):
            holder[draw(_KEYS)] = copy.deepcopy(holder[last])
        case _:
            doubled = copy.deepcopy(holder[last])
            if isinstance(holder, list):
                holder.append(doubled)
            else:
                holder[f"{last} "] = doubled
    return value


def _places(value: Value, where: Place) -> list[Place]:
    found = [where]
    if isinstance(value, dict | list):
        for key, of in value.items() if isinstance(value, dict) else enumerate(value):
            found += _places(of, (*where, key))
    return found


def _at(value: Value, place: Place) -> Value:
    for step in place:
        value = value[step]
    return value


@st.composite
def spoilt_texts(draw: st.DrawFn) -> bytes:
    """A document as a file: spoilt, or written rightly and then damaged byte by byte."""
    if draw(st.booleans()):
        value = draw(spoilt_values())
        if draw(st.booleans()):
            return json.dumps(value, ensure_ascii=draw(st.booleans())).encode()
        flow = draw(st.sampled_from([True, False, None]))
        return yaml.safe_dump(value, allow_unicode=True, default_flow_style=flow).encode()
    text = draw(st.sampled_from([*DOCUMENTS.values()])).encode()
    for _ in range(draw(st.integers(1, 4))):
        text = _damaged(draw, text)
    return text


def _damaged(draw: st.DrawFn, text: bytes) -> bytes:
    at = draw(st.integers(0, len(text)))
    to = min(len(text), at + draw(st.integers(1, 12)))
    match draw(st.integers(0, 5)):
        case 0:
            return text[:at] + text[to:]
        case 1:
            return text[:at] + draw(st.binary(min_size=1, max_size=4)) + text[to:]
        case 2:
            signs = [b"{", b"}", b"[", b"]", b":", b",", b"\n", b"  ", b"- ", b"#", b"'", b'"']
            odd = [b"&a ", b"*a", b"<<: ", b"!!x ", b"\t", b"|", b"? ", b"---\n", b"\xff", b"\r"]
            return text[:at] + draw(st.sampled_from(signs + odd)) + text[at:]
        case 3:
            return text[:at] + text[at:to] * 2 + text[to:]
        case 4:
            lines = text.splitlines(keepends=True) or [b"a: 1"]
            place = draw(st.integers(0, len(lines) - 1))
            lines.insert(draw(st.integers(0, len(lines))), lines[place])
            return b"".join(lines)
        case _:
            return text[:at]
