"""YAML 1.2 text as events, by libyaml's parser; without libyaml by PyYAML's own, six times slower.

Only the syntax is PyYAML's: no tag is resolved and no object made. Its parsers are of YAML 1.1, so
the characters that the two versions take differently are refused where they are not escaped.
"""

import re
from collections.abc import Iterator

import yaml

from interlock.core.text import clipped
from interlock.language.node import Event
from interlock.language.source import Source, character

PARSER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Beside what YAML forbids: U+0085, U+2028 and U+2029 end a line in 1.1 only, and 1.1 skips U+FEFF.
UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def yaml_events(source: Source) -> Iterator[Event]:
    """Yield the events of one document.

    Raises:
        DefinitionError: `yaml-syntax`, where the parser had to stop.
    """
    if found := UNPRINTABLE.search(source.text):
        message = f"YAML takes {character(found[0])} only as an escape in double quotes"
        raise source.error("yaml-syntax", message, found.start())
    documents = 0
    try:
        for event in yaml.parse(source.text, Loader=PARSER):
            at = event.start_mark.index if event.start_mark else 0
            match event:
                case yaml.ScalarEvent(value=text, anchor=anchor, tag=tag, style=style):
                    yield Event("scalar", at, text, not style, anchor, tag)
                case yaml.SequenceStartEvent(anchor=anchor, tag=tag):
                    yield Event("list", at, anchor=anchor, tag=tag)
                case yaml.MappingStartEvent(anchor=anchor, tag=tag):
                    yield Event("mapping", at, anchor=anchor, tag=tag)
                case yaml.CollectionEndEvent():
                    yield Event("end", at)
                case yaml.AliasEvent(anchor=str(anchor)):
                    yield Event("alias", at, anchor)
                case yaml.DocumentStartEvent():
                    documents += 1
                    if documents > 1:
                        message = "a second document begins here, and a file holds one"
                        raise source.error("yaml-syntax", message, at)
                case _:
                    pass
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        index = min(mark.index, len(source.text)) if mark else 0
        if source.text[index : index + 1] == "\t":
            hint = "indent with spaces"
            raise source.error("yaml-syntax", "YAML takes no tab here", index, hint=hint) from None
        message = clipped(": ".join(filter(None, (fault.context, fault.problem))), 200)
        raise source.error("yaml-syntax", message, index) from None
    except (yaml.YAMLError, ValueError, OverflowError) as fault:  # the last two by the slow parser
        message = clipped(str(fault).lower(), 200)
        raise source.error("yaml-syntax", message, 0) from None
