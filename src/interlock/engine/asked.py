"""What a program asks of an engine, checked as far as that can be done without the store."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from interlock.core.machine import check_text
from interlock.core.payload import encode_payload
from interlock.core.rejection import InvalidRequest
from interlock.core.text import Limits, quoted
from interlock.language.chart import Trigger
from interlock.language.expressions.properties import Properties

#: What an event that is not declared may bring.
NOTHING = Properties()


class Asked(NamedTuple):
    """An event that was sent, or a timer that is due.

    Attributes:
        trigger, owner: what it is to the machine; a timer is that of a state.
        payload: as it was given; it is checked when the definition is known.
        asserting: labels that the sender asserts.
        armed_at: the entry that a timer was set with; it may have been set anew since.
    """

    trigger: Trigger
    owner: str = ""
    payload: Mapping[str, Any] = {}
    asserting: tuple[str, ...] = ()
    armed_at: int | None = None


class Begin(NamedTuple):
    """An instance that is to begin.

    Attributes:
        data: complete, as JSON has it.
        hooks: whether it enters its state, or came there before it was known here.
    """

    digest: str
    data: dict[str, Any]
    hooks: bool = True


def labels(asserting: object, limits: Limits) -> tuple[str, ...]:
    """Read the labels that a sender asserts.

    Raises:
        InvalidRequest: they are no list of texts.
    """
    if isinstance(asserting, str) or not isinstance(asserting, Iterable):
        what = f"`asserting` is a list of labels, such as [{quoted(str(asserting))}]"
        raise InvalidRequest(what, argument="asserting")
    return tuple(check_text("asserting", label, limits.reference_bytes) for label in asserting)


def fields(argument: str, given: object) -> Mapping[str, Any]:
    """Read a mapping of fields, or nothing.

    Raises:
        InvalidRequest: it is no mapping.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        what = f"`{argument}` is a mapping of fields, not {type(given).__name__}"
        raise InvalidRequest(what, argument=argument)
    return given


def complete(
    argument: str, properties: Properties, given: Mapping[str, Any], limits: Limits
) -> dict[str, Any]:
    """Hold fields to their declaration, and write them as JSON has them, defaults included.

    Raises:
        InvalidRequest: they are not as declared, or too large; `faults` lists what is wrong.
    """
    if not given and not properties.fields:
        return {}
    faults = properties.check(given)
    if faults:
        listed = "; ".join(map(str, faults[:5])) + ("; …" if len(faults) > 5 else "")
        what = f"`{argument}` is not as declared: {listed}"
        raise InvalidRequest(what, argument=argument, faults=[str(fault) for fault in faults])
    whole = properties.encode(properties.complete(given))
    if fault := size_fault(whole, limits):
        raise InvalidRequest(f"`{argument}` {fault}", argument=argument, faults=[fault])
    return whole


def size_fault(whole: Mapping[str, Any], limits: Limits) -> str | None:
    """Say that fields are too large, if they are."""
    size = len(encode_payload(whole))
    if size <= limits.payload_bytes:
        return None
    return f"is {size} bytes long as JSON, more than the {limits.payload_bytes} allowed"
