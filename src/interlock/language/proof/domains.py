"""What a scope declares, in the terms of the prover: bounds, choices, what may be absent.

prover = Prover(*domains(scope))
"""

from collections.abc import Iterator
from decimal import Decimal

from interlock.language.expressions.expression import Scope
from interlock.language.expressions.properties import Properties, Property
from interlock.language.proof.prove import Domain


def domains(scope: Scope) -> tuple[dict[str, Domain], dict[str, str]]:
    """Give what is known of each variable, and the variables that say whether one is present."""
    known: dict[str, Domain] = {}
    presence: dict[str, str] = {}
    roots = {"data": scope.data, "event": scope.event, **scope.others}
    for root, properties in roots.items():
        if properties is None:
            continue
        for name, property_, absent in _walk(properties, root, False, scope.present):
            presence[f"present.{name}"] = name
            known[name] = _domain(property_, optional=absent)
    return known, presence


def _walk(
    properties: Properties, prefix: str, absent: bool, present: frozenset[str]
) -> Iterator[tuple[str, Property, bool]]:
    """Give each field, those of objects too, and whether it may be absent."""
    for name, property_ in properties.fields.items():
        path = f"{prefix}.{name}"
        missing = absent or (property_.optional and path not in present)
        yield path, property_, missing
        if property_.properties is not None:
            yield from _walk(property_.properties, path, missing, present)


def _domain(property_: Property, *, optional: bool) -> Domain:
    kind = property_.type
    if kind.name == "string":
        least, most = property_.length
        values = property_.values
        return Domain(optional=optional, enum=values, min_length=least or None, max_length=most)
    if kind.name not in ("integer", "number", "decimal"):
        return Domain(optional=optional)

    def counted(value: int | float | Decimal | None) -> int | float | None:
        return int(value.scaleb(kind.scale)) if isinstance(value, Decimal) else value

    values = property_.values
    return Domain(
        optional=optional,
        enum=None if values is None else tuple(v for v in map(counted, values) if v is not None),
        minimum=counted(property_.minimum),
        maximum=counted(property_.maximum),
        exclusive=property_.exclusive,
        scale=kind.scale if kind.name == "decimal" else None,
    )
