"""Machines of other formats, as machine documents: a file is carried over whole or refused by name.

    converted = from_scxml(text)
    yaml = to_yaml(converted.definition)

Every importer gives a `Converted` or raises a `ConvertError`, whose diagnostics name each construct
that cannot be carried over. What is changed on the way (a name, a log left out) is in `notes`.
"""

from interlock.language.convert.result import Converted, ConvertError
from interlock.language.convert.scxml import from_scxml
from interlock.language.convert.scxml_out import Exported, to_scxml
from interlock.language.convert.symfony import from_symfony
from interlock.language.convert.xstate import from_xstate
from interlock.language.write import to_yaml

__all__ = [
    "ConvertError",
    "Converted",
    "Exported",
    "from_scxml",
    "from_symfony",
    "from_xstate",
    "to_scxml",
    "to_yaml",
]
