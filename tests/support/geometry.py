"""What a laid out drawing promises: nothing stands on anything else, and no line hides a text."""

from collections.abc import Iterator
from itertools import combinations

from interlock.language.drawing.layout import LINE, SMALL, TEXT, Rect, Scene, Tie
from interlock.language.drawing.words import width

NEAR = 0.01  # what rounding makes of it


def overlap(one: Rect, other: Rect) -> bool:
    return (
        one.x + NEAR < other.x + other.width
        and other.x + NEAR < one.x + one.width
        and one.y + NEAR < other.y + other.height
        and other.y + NEAR < one.y + one.height
    )


def holds(outer: Rect, inner: Rect) -> bool:
    return (
        outer.x <= inner.x + NEAR
        and outer.y <= inner.y + NEAR
        and inner.x + inner.width <= outer.x + outer.width + NEAR
        and inner.y + inner.height <= outer.y + outer.height + NEAR
    )


def strokes(tie: Tie) -> Iterator[Rect]:
    """Give what each part of a line takes: the straight ones, and those that bend."""
    if tie.loop is not None:
        yield tie.loop
    before = None
    for run in tie.runs:
        if before is not None:
            left, right = sorted((before.x, run.x))
            yield Rect(left, before.bottom, right - left, run.top - before.bottom)
        if not run.named:
            yield Rect(run.x, run.top, 0.0, run.bottom - run.top)
        before = run


def check(scene: Scene) -> None:
    """Say that a drawing keeps what it promises."""
    paper = Rect(0.0, 0.0, scene.width, scene.height)
    frames = {frame.box: frame for frame in scene.frames}
    leaves = [frame for frame in scene.frames if not frame.box.children]
    names = [name for tie in scene.ties for name in tie.names]
    for frame in scene.frames:
        parent = frames.get(frame.box.parent) if frame.box.parent is not None else None
        assert holds(parent.rect if parent else paper, frame.rect), frame.box.path
        assert holds(frame.rect, frame.text), frame.box.path
        check_text(frame.lines, frame.text, TEXT)
        if parent:
            assert not overlap(frame.rect, parent.text), frame.box.path
    for one, other in combinations(scene.frames, 2):
        if one.box.parent is other.box.parent:
            assert not overlap(one.rect, other.rect), (one.box.path, other.box.path)
    for name in names:
        assert holds(paper, name.rect), name.lines
        check_text(name.lines, name.rect, SMALL)
        for frame in scene.frames:
            apart = not overlap(name.rect, frame.rect)
            assert apart or holds(frame.rect, name.rect), (name.lines, frame.box.path)
            assert not overlap(name.rect, frame.text), (name.lines, frame.box.path)
    for first, second in combinations(names, 2):
        assert not overlap(first.rect, second.rect), (first.lines, second.lines)
    texts = [*(frame.text for frame in scene.frames), *(name.rect for name in names)]
    for tie in scene.ties:
        for stroke in strokes(tie):
            assert stroke.height >= -NEAR, tie.runs
            what = (tie.source.path, tie.target.path, stroke)
            assert holds(paper, stroke), what
            assert not any(overlap(stroke, frame.rect) for frame in leaves), what
            assert not any(overlap(stroke, text) for text in texts), what
        check_ends(tie, frames)


def check_text(lines: list[str], rect: Rect, size: float) -> None:
    assert lines
    assert rect.height >= len(lines) * LINE - NEAR
    assert rect.width >= max(width(line, size) for line in lines) - NEAR


def check_ends(tie: Tie, frames: dict) -> None:
    """Say that a line begins and ends on the borders of its boxes."""
    if tie.loop is not None:
        rect = frames[tie.source].rect
        assert abs(tie.loop.x - rect.x - rect.width) < NEAR
        return
    upper, lower = (tie.source, tie.target) if tie.down else (tie.target, tie.source)
    for box, run, y in ((upper, tie.runs[0], "top"), (lower, tie.runs[-1], "bottom")):
        if box not in frames:
            continue  # the dot where a box begins
        rect = frames[box].rect
        assert rect.x - NEAR <= run.x <= rect.x + rect.width + NEAR, box.path
        inside = any(box is around for other in (upper, lower) for around in other.around())
        ends = [rect.y + rect.height] if y == "top" else [rect.y]
        if inside:
            ends.append(rect.y if y == "top" else rect.y + rect.height)
        at = run.top if y == "top" else run.bottom
        assert any(abs(at - end) < NEAR for end in ends), (box.path, at, ends)
