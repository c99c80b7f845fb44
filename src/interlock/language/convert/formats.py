"""A machine from a file of any format that is known, told by what it looks like."""

from collections.abc import Iterable
from typing import Literal, TypeAlias

from interlock.language.convert.result import Converted, ConvertError, Definition
from interlock.language.convert.scxml import from_scxml
from interlock.language.convert.scxml_out import Exported, to_scxml
from interlock.language.convert.symfony import from_symfony
from interlock.language.convert.xstate import from_xstate
from interlock.language.definition import compile_document
from interlock.language.diagnostic import DefinitionError
from interlock.language.document import Document, read_document
from interlock.language.node import BUDGETS
from interlock.language.source import decode
from interlock.language.write import to_yaml

Format: TypeAlias = Literal["machine", "scxml", "xstate", "symfony"]


def convert(
    data: str | bytes,
    *,
    format: Format | None = None,
    name: str | None = None,
    events: Iterable[str] = (),
    file: str | None = None,
) -> Converted:
    """Turn a file into a machine document.

    Args:
        format: what it is; without it the text tells.
        name: of the machine; of several workflows in one file, which one.
        events: what may be sent besides the events that the file names; for wildcards.
        file: its name in diagnostics.

    Raises:
        ConvertError: it holds what cannot be carried over, or is of no format that is known.
        DefinitionError: it cannot be read.
    """
    match format or detect(data, file=file):
        case "scxml":
            return from_scxml(data, name=name, events=events, file=file)
        case "xstate":
            return from_xstate(data, name=name, events=events, file=file)
        case "symfony":
            return from_symfony(data, name=name, file=file)
        case "machine":
            return _own(read_document(data, file=file), name)


def detect(data: str | bytes, *, file: str | None = None) -> Format:
    """Tell the format of a text.

    Raises:
        ConvertError: it looks like none.
        DefinitionError: it cannot be read.
    """
    source = decode(data, file, max_bytes=BUDGETS.bytes)
    if source.text.lstrip().startswith("<"):
        return "scxml"
    document = read_document(data, file=file)
    keys = set(document.value) if isinstance(document.value, dict) else set()
    if "machine" in keys:
        return "machine"
    if "states" in keys:
        return "xstate"
    if keys & {"framework", "workflows", "transitions"}:
        return "symfony"
    message = "neither SCXML, XState, Symfony's workflows nor a machine of ours"
    hint = "say which it is with `--from`"
    mark = document.mark(())
    raise ConvertError([document.source.diagnostic("unknown-format", message, mark, hint=hint)])


def export_scxml(definition: Definition, *, file: str | None = None) -> Exported:
    """Write a machine document as SCXML; places in diagnostics are those of its YAML."""
    return to_scxml(read_document(to_yaml(definition), file=file))


def _own(document: Document, name: str | None) -> Converted:
    definition, found = compile_document(document)
    if definition is None:
        raise DefinitionError(found)
    written: Definition = {**document.value, **({"machine": name} if name else {})}
    return Converted(definition=written, notes=definition.warnings)
