"""What the expressions of a workflow may name: its input, what steps before it gave, the moment."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from interlock.language.expressions.properties import (
    ANY,
    DATE_TIME,
    STRING,
    Properties,
    Type,
)

#: What an approval gives.
DECISION = Type(
    "object",
    fields={
        "decision": (Type("string", enum=("approved", "refused")), False),
        "by": (STRING, False),
        "reason": (STRING, True),
        "at": (DATE_TIME, False),
    },
)
#: What a timer or a schedule gives.
MOMENT = Type("object", fields={"at": (DATE_TIME, False)})


class Given(NamedTuple):
    """What a step gives.

    Attributes:
        may_be_nothing: the step may be skipped.
    """

    type: Type
    may_be_nothing: bool = False


class Scope(NamedTuple):
    """What one expression may name."""

    roots: Mapping[str, Type]
    present: frozenset[str] = frozenset()


class Names:
    """What expressions may name, each in its place.

    Args:
        given: what each step gives.
        order: of the steps.
        before, surely: for each step, those that may have been done before it, and those that have,
            a bit for each place in the order: all of them where steps need one another in a circle.
    """

    def __init__(
        self,
        inputs: Properties,
        given: Mapping[str, Given],
        order: Sequence[str],
        before: Mapping[str, int],
        surely: Mapping[str, int],
    ) -> None:
        self._inputs = inputs.type()
        self._given = given
        self._places = {name: 1 << place for place, name in enumerate(order)}
        self._before = before
        self._surely = surely

    def within(self, step: str, **more: Type) -> Scope:
        """Give what an expression of a step may name."""
        return self._scope(self._before[step], self._surely[step], more)

    def after(self, step: str) -> Scope:
        """Give what an expression may name that is evaluated when a step is done."""
        own = self._places[step]
        return self._scope(self._before[step] | own, self._surely[step] | own, {})

    def at_the_end(self, ends: Sequence[str]) -> Scope:
        """Give what an expression may name that is evaluated when all is done.

        Args:
            ends: the steps that are done whichever way it went.
        """
        surely = 0
        for name in ends:
            surely |= self._surely[name] | self._places[name]
        return self._scope(-1, surely, {})

    def _scope(self, before: int, surely: int, more: Mapping[str, Type]) -> Scope:
        steps = Type("object", fields=_Visible(self._given, self._places, before, surely))
        return Scope({"input": self._inputs, "steps": steps, "now": DATE_TIME, **more})


class _Visible(Mapping[str, tuple[Type, bool]]):
    """The steps that an expression may name, as fields; made when they are asked for.

    Of a step that may be skipped a declared output may be absent, and of one that need not be done
    any output. What nobody has declared is just null where it was skipped.
    """

    def __init__(
        self, given: Mapping[str, Given], places: Mapping[str, int], before: int, surely: int
    ) -> None:
        self._given, self._places = given, places
        self._before, self._surely = before, surely

    def __getitem__(self, name: str) -> tuple[Type, bool]:
        place = self._places.get(name, 0)
        if name not in self._given or not self._before & place:
            raise KeyError(name)
        type_, may_be_nothing = self._given[name]
        absent = not self._surely & place or (may_be_nothing and type_ != ANY)
        return Type("object", fields={"output": (type_, absent)}), False

    def __iter__(self) -> Iterator[str]:
        return (name for name, place in self._places.items() if self._before & place)

    def __len__(self) -> int:
        return sum(1 for _ in self)
