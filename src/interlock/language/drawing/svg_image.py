"""Pictures as SVG, without any other tool.

The image needs no script and no font of its own, follows the reader's choice of light or dark, and
says in `<title>` what is cut or only drawn. Its parts are named by classes and `data-` attributes.
"""

from collections.abc import Iterator
from html import escape

from interlock.language.diagnostic import visible
from interlock.language.drawing.layout import (
    LINE,
    SMALL,
    TEXT,
    Frame,
    Rect,
    Scene,
    Tie,
    scene_of,
)
from interlock.language.drawing.picture import Picture

MARGIN = 12.0
HEAD = 7.0  # of an arrow

STYLE = """\
.interlock{font-family:system-ui,"Segoe UI",Roboto,"Helvetica Neue","DejaVu Sans",sans-serif}
.interlock text{white-space:pre}
.interlock .paper{fill:#fff}
.interlock .state rect{fill:#edf1fb;stroke:#5b6ca3;stroke-width:1.2}
.interlock .state.outer>rect{fill:#5b6ca3;fill-opacity:.06}
.interlock .state.parallel>rect{stroke-width:2}
.interlock .state.region>rect{stroke-dasharray:5 4}
.interlock .state.final rect{fill:#e6f4ea;stroke:#3f8157}
.interlock .state.history rect{fill:#fbf3e2;stroke:#a97d2a}
.interlock .state text{fill:#1c2437}
.interlock .wire path{fill:none;stroke:#66708a;stroke-width:1.2}
.interlock .wire.stays path{stroke-dasharray:4 3}
.interlock .wire polygon,.interlock .start{fill:#66708a}
.interlock .wire text{fill:#3b445b}
@media (prefers-color-scheme:dark){
.interlock .paper{fill:#12161f}
.interlock .state rect{fill:#242c40;stroke:#8b9bd3}
.interlock .state.outer>rect{fill:#8b9bd3;fill-opacity:.08}
.interlock .state.final rect{fill:#1c3126;stroke:#6cbb88}
.interlock .state.history rect{fill:#33291a;stroke:#d0a552}
.interlock .state text{fill:#e6eaf6}
.interlock .wire path{stroke:#8d97b0}
.interlock .wire polygon,.interlock .start{fill:#8d97b0}
.interlock .wire text{fill:#c2c9dc}
}"""


def write(picture: Picture) -> str:
    """Write a picture."""
    scene = scene_of(picture)
    wide, high = (_number(size + 2 * MARGIN) for size in (scene.width, scene.height))
    title = _text(picture.whole.label or "declaration")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="interlock" role="img" aria-label="{title}"'
        f' width="{wide}" height="{high}" viewBox="0 0 {wide} {high}">',
        f"<title>{title}</title>",
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="paper" width="{wide}" height="{high}" rx="8"/>',
        f'<g transform="translate({_number(MARGIN)} {_number(MARGIN)})">',
        *_parts(scene),
        "</g>",
        "</svg>",
        "",
    ]
    return "\n".join(lines)


def _parts(scene: Scene) -> Iterator[str]:
    for frame in scene.frames:
        yield from _state(frame)
    for x, y in scene.dots:
        yield f'<circle class="start" cx="{_number(x)}" cy="{_number(y)}" r="6"/>'
    for tie in scene.ties:
        yield from _wire(tie)


def _state(frame: Frame) -> Iterator[str]:
    box, rect = frame.box, frame.rect
    kinds = ["state", *([box.kind] if box.kind != "plain" else [])]
    if box.children:
        kinds.append("outer")
    if box.parent is not None and box.parent.kind == "parallel":
        kinds.append("region")
    yield f'<g class="{" ".join(kinds)}" data-state="{_text(box.path)}">'
    yield f"<title>{_text(box.path)}</title>"
    radius = rect.height / 2 if box.kind == "history" else 8
    yield _rect(rect, radius)
    if box.kind == "final":
        yield _rect(Rect(rect.x + 3, rect.y + 3, rect.width - 6, rect.height - 6), 5)
    x, y, wide, _ = frame.text
    if box.children:
        yield from _words(frame.lines, x, y, TEXT, "start", bold=True)
    else:
        yield from _words(frame.lines, x + wide / 2, y, TEXT, "middle")
    yield "</g>"


def _wire(tie: Tie) -> Iterator[str]:
    stays = any(arrow.stays for arrow in tie.arrows)
    yield f'<g class="wire{" stays" if stays else ""}">'
    yield f'<path d="{_loop(tie.loop) if tie.loop else _path(tie)}"/>'
    yield f'<polygon points="{_head(tie)}"/>'
    named = {id(name.arrow): name for name in tie.names}
    for arrow in tie.arrows:
        source, target = _text(arrow.source.path), _text(arrow.target.path)
        yield f'<g class="transition" data-from="{source}" data-to="{target}">'
        yield f"<title>{_text(arrow.label)}</title>"
        if name := named.get(id(arrow)):
            x, y, wide, _ = name.rect
            yield from _words(name.lines, x + wide / 2, y, SMALL, "middle")
        yield "</g>"
    yield "</g>"


def _path(tie: Tie) -> str:
    """Draw a wire from above: straight within a row, bent between two, broken at a name."""
    runs = [*tie.runs]
    x, y = runs[0].x, runs[0].top + (0 if tie.down else HEAD)
    parts, pen = [f"M{_number(x)} {_number(y)}"], True
    for place, run in enumerate(runs):
        last = place == len(runs) - 1
        if run.named:
            x, y, pen = run.x, run.bottom, False
            continue
        if not pen:
            parts.append(f"M{_number(x)} {_number(y)}")
            pen = True
        if abs(run.x - x) > 0.05:
            middle = _number((y + run.top) / 2)
            end = f"{_number(run.x)} {_number(run.top)}"
            parts.append(f"C{_number(x)} {middle} {_number(run.x)} {middle} {end}")
        bottom = run.bottom - (HEAD if last and tie.down else 0)
        parts.append(f"L{_number(run.x)} {_number(bottom)}")
        x, y = run.x, run.bottom
    return "".join(parts)


def _loop(loop: Rect) -> str:
    left, right = _number(loop.x), _number(loop.x + loop.width)
    top, bottom = loop.y + 6, loop.y + loop.height - 6
    start = _number(loop.x + HEAD)
    return (
        f"M{left} {_number(top)}C{right} {_number(top)} {right} {_number(bottom)}"
        f" {start} {_number(bottom)}"
    )


def _head(tie: Tie) -> str:
    """Draw the head of an arrow, with its point where the wire ends."""
    if tie.loop:
        x, y = tie.loop.x, tie.loop.y + tie.loop.height - 6
        corners = [(x, y), (x + HEAD, y - 4), (x + HEAD, y + 4)]
    elif tie.down:
        x, y = tie.runs[-1].x, tie.runs[-1].bottom
        corners = [(x, y), (x - 4, y - HEAD), (x + 4, y - HEAD)]
    else:
        x, y = tie.runs[0].x, tie.runs[0].top
        corners = [(x, y), (x - 4, y + HEAD), (x + 4, y + HEAD)]
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in corners)


def _rect(rect: Rect, radius: float) -> str:
    x, y, wide, high = map(_number, rect)
    return f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="{_number(radius)}"/>'


def _words(
    lines: list[str], x: float, y: float, size: float, anchor: str, *, bold: bool = False
) -> Iterator[str]:
    """Write lines below each other; `y` is the top of the first."""
    weight = ' font-weight="600"' if bold else ""
    for place, line in enumerate(lines):
        middle = _number(y + (place + 0.5) * LINE + size * 0.35)
        yield (
            f'<text x="{_number(x)}" y="{middle}" font-size="{_number(size)}"'
            f' text-anchor="{anchor}"{weight}>{_text(line)}</text>'
        )


def _text(text: str) -> str:
    return escape(visible(text))


def _number(value: float) -> str:
    """Write a number with one digit at most, the same everywhere."""
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text
