"""Where everything in a drawing stands: boxes inside each other, and wires between them.

Each box that has others inside is a level of its own, laid out from the inside outwards. An arrow
between boxes of different levels is cut where it passes the border of a box: there it has a port,
at the top or at the bottom. Which of these, is decided from the outside inwards: an arrow that
leads downwards leaves a box at its bottom. So each piece stays within its level, and the pieces
meet at the ports.

Arrows with the same ends share a wire and stand on it with their names below each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from interlock.language.drawing.level import Level, Run, Spot, Wire, lay_out
from interlock.language.drawing.picture import Arrow, Box, Picture
from interlock.language.drawing.ranks import ranks
from interlock.language.drawing.words import broken, width

TEXT = 13.0  # the size of states' names
BOLD = 1.12  # how much wider bold letters are
SMALL = 12.0  # and of arrows' names
LINE = 16.0  # between lines of text
INSIDE = 14.0  # between a box and what is in it
HEADER = 30.0  # of a box with others inside, for its name
LOOP = 26.0  # how far an arrow goes that comes back
DOT = 12.0  # where a box begins
STATE_MAX = 170.0  # width of a state's name before it is broken
NAME_MAX = 200.0  # and of an arrow's


class Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Frame:
    """A box in its place.

    Attributes:
        lines: its name.
        text: where that stands: in the middle, or above what is inside.
    """

    box: Box
    rect: Rect
    lines: list[str]
    text: Rect


@dataclass(frozen=True, slots=True)
class Name:
    """The name of an arrow in its place; `rect` is what it takes at most."""

    arrow: Arrow
    lines: list[str]
    rect: Rect


@dataclass(slots=True, eq=False)
class Tie:
    """All arrows from a box to another, or where a box begins.

    Attributes:
        runs: its wire, from above; of one that comes back to its box, none.
        loop: where such a one stands.
        down: whether it leads downwards.
    """

    source: Box
    target: Box
    arrows: list[Arrow] = field(default_factory=list)
    down: bool = True
    runs: list[Run] = field(default_factory=list)
    loop: Rect | None = None
    names: list[Name] = field(default_factory=list)

    @property
    def size(self) -> tuple[float, float] | None:
        """How much the names of its arrows take, if they have any."""
        rects = [name.rect for name in self.named(0.0, 0.0)]
        if not rects:
            return None
        return max(rect.width for rect in rects), sum(rect.height for rect in rects)

    def named(self, x: float, top: float) -> Iterator[Name]:
        """Put the names of its arrows below each other, their middle at `x`."""
        for arrow in self.arrows:
            if arrow.label:
                lines = broken(arrow.label, SMALL, NAME_MAX, 3)
                wide = max(width(line, SMALL) for line in lines) + 8
                yield Name(arrow, lines, Rect(x - wide / 2, top, wide, len(lines) * LINE))
                top += len(lines) * LINE


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything in its place."""

    width: float
    height: float
    frames: list[Frame]
    dots: list[tuple[float, float]]
    ties: list[Tie]


class _Piece(NamedTuple):
    """The part of a tie within one level: between boxes, or from or to a port."""

    tie: Tie
    tail: Box | None
    head: Box | None


@dataclass(slots=True)
class _Inside:
    """What is inside a box, laid out; places are from its left upper corner."""

    level: Level
    spots: list[Box | None]
    pieces: list[_Piece]
    left: float
    top: float
    ports: dict[Tie, float]  # from the left


def scene_of(picture: Picture) -> Scene:
    """Lay out a picture."""
    return _Laying(picture).scene()


class _Laying:
    def __init__(self, picture: Picture) -> None:
        self._whole = picture.whole
        self._boxes = [self._whole, *self._whole.inside()]
        self._dots: dict[Box, list[Box]] = {}
        self._loops: dict[Box, list[Tie]] = {}
        self._pieces: dict[Box, list[_Piece]] = {box: [] for box in self._boxes}
        self._ranks: dict[Box, int] = {}
        self._insides: dict[Box, _Inside] = {}
        self._sizes: dict[Box, tuple[float, float]] = {}
        self._lines: dict[Box, list[str]] = {}
        self._parts: dict[tuple[Tie, Box], list[Run]] = {}
        self._rects: dict[Box, Rect] = {}
        self._places: list[tuple[float, float]] = []
        self._ties = [*self._gather(picture)]

    def scene(self) -> Scene:
        wired = [tie for tie in self._ties if tie.source is not tie.target]
        for tie in wired:
            around, tail, head = _meeting(tie)
            self._pieces[around].append(_Piece(tie, tail, head))
        for box in self._boxes:
            self._rank(box)
        for tie in wired:
            self._cut(tie)
        for box in reversed(self._boxes):
            self._measure(box)
        self._place(self._whole, 0.0, 0.0)
        for tie in wired:
            self._join(tie)
        frames = [self._frame(box) for box in self._boxes[1:]]
        _, _, width, height = self._rects[self._whole]
        return Scene(width, height, frames, self._places, self._ties)

    def _gather(self, picture: Picture) -> Iterator[Tie]:
        for box in self._boxes:
            if box.starts:
                dot = Box("", box.path, "", parent=box)
                self._dots[box] = [dot]
                yield from (Tie(dot, first) for first in box.starts)
        ties: dict[tuple[Box, Box, bool], Tie] = {}
        for arrow in picture.arrows:
            ends = (arrow.source, arrow.target, arrow.stays)
            tie = ties.get(ends)
            if tie is None:
                tie = ties[ends] = Tie(arrow.source, arrow.target)
                if arrow.source is arrow.target:
                    self._loops.setdefault(arrow.source, []).append(tie)
            tie.arrows.append(arrow)
        yield from ties.values()

    def _rank(self, box: Box) -> None:
        """Rank what is inside a box, and say which ties lead upwards in it."""
        nodes = [*self._dots.get(box, ()), *box.children]
        number = {node: place for place, node in enumerate(nodes)}
        ties, edges = [], []
        for tie, tail, head in self._pieces[box]:
            if tail is not None and head is not None:
                ties.append(tie)
                edges.append((number[tail], number[head]))
        found, upwards = ranks(len(nodes), edges)
        self._ranks.update(zip(nodes, found, strict=True))
        for place in upwards:
            ties[place].down = False

    def _cut(self, tie: Tie) -> None:
        """Give a piece of a tie to each level that it passes on its way outwards or inwards."""
        around, _, _ = _meeting(tie)
        for box, inner in _outwards(tie.source, around):
            self._pieces[box].append(_Piece(tie, inner, None))
        for box, inner in _outwards(tie.target, around):
            self._pieces[box].append(_Piece(tie, None, inner))

    def _measure(self, box: Box) -> None:
        lines = broken(box.label, TEXT, STATE_MAX, 3) if box.parent is not None else []
        self._lines[box] = lines
        wide = _title(box, lines) + 2 * INSIDE
        if not box.children:
            self._sizes[box] = (max(wide, 48.0), len(lines) * LINE + 16)
            return
        header = HEADER + (len(lines) - 1) * LINE if lines else INSIDE
        if box.kind == "parallel":
            self._level_regions(box)
        inside = self._lay(box, wide if lines else 0.0, header)
        self._insides[box] = inside
        self._sizes[box] = (
            max(inside.left + inside.level.width + INSIDE, wide),
            header + inside.level.height + INSIDE,
        )

    def _level_regions(self, box: Box) -> None:
        """Make regions beside each other equally high."""
        regions = [child for child in box.children if child.kind != "history"]
        for rank in {self._ranks[region] for region in regions}:
            beside = [region for region in regions if self._ranks[region] == rank]
            high = max(self._sizes[region][1] for region in beside)
            for region in beside:
                self._sizes[region] = (self._sizes[region][0], high)

    def _lay(self, box: Box, titled: float, header: float) -> _Inside:
        """Lay out what is inside a box.

        Args:
            titled: how much of the header its name takes, where no wire may come in.
        """
        keys: list[Box | None] = [*self._dots.get(box, ()), *box.children]
        spots = [self._spot(key) for key in keys if key is not None]
        number = {key: place for place, key in enumerate(keys) if key is not None}
        ports: dict[Tie, int] = {}

        def spot_of(tie: Tie, end: Box | None, *, upper: bool) -> int:
            if end is not None:
                return number[end]
            ports[tie] = len(spots)
            spots.append(Spot(role="top" if upper else "bottom"))
            keys.append(None)
            return ports[tie]

        wires = []
        for tie, tail, head in self._pieces[box]:
            begins = tie.source in (tail, box)
            upper, lower = (tail, head) if tie.down else (head, tail)
            wires.append(
                Wire(
                    upper=spot_of(tie, upper, upper=True),
                    lower=spot_of(tie, lower, upper=False),
                    down=tie.down,
                    name=tie.size if begins else None,
                    out=self._port(tie, upper),
                    into=self._port(tie, lower),
                )
            )
        level = lay_out(spots, wires)
        xs = {tie: level.middles[spot][0] for tie, spot in ports.items()}
        above = [xs[tie] for tie, spot in ports.items() if spots[spot].role == "top"]
        left = INSIDE
        if above:
            left = max(left, titled + 4 - min(above))
        elif titled > level.width + 2 * INSIDE:
            left = (titled - level.width) / 2
        places = {tie: x + left for tie, x in xs.items()}
        return _Inside(level, keys, self._pieces[box], left, header, places)

    def _spot(self, box: Box) -> Spot:
        if box not in self._sizes:
            return Spot(width=DOT, height=DOT, tall=DOT, rank=self._ranks[box])
        wide, tall = self._sizes[box]
        loops = self._loops.get(box, [])
        sizes = [tie.size or (0.0, LINE) for tie in loops]
        side = LOOP + 6 + max(wide for wide, _ in sizes) if sizes else 0.0
        high = max(tall, sum(max(high, 2 * LINE) for _, high in sizes))
        rank = self._ranks[box]
        return Spot(width=wide + side, height=high, side=side, tall=tall, rank=rank)

    def _port(self, tie: Tie, box: Box | None) -> float | None:
        """Where a tie goes on inside a box, from the middle of its spot."""
        if box is None:
            return 0.0  # a port of this level is as wide as the wire
        inside = self._insides.get(box)
        if inside is None or tie not in inside.ports:
            return None
        return inside.ports[tie] - self._spot(box).width / 2

    def _place(self, box: Box, x: float, y: float) -> None:
        """Put a box and all that is in it at a place."""
        inside = self._insides.get(box)
        self._rects[box] = rect = Rect(x, y, *self._sizes[box])
        self._place_loops(box, rect)
        if inside is None:
            return
        x, y = x + inside.left, y + inside.top
        for key, middle in zip(inside.spots, inside.level.middles, strict=True):
            if key is None:
                continue
            if key not in self._sizes:
                self._places.append((x + middle[0], y + middle[1]))
                continue
            spot = self._spot(key)
            high = self._sizes[key][1]
            self._place(key, x + middle[0] - spot.width / 2, y + middle[1] - high / 2)
        for piece, runs in zip(inside.pieces, inside.level.runs, strict=True):
            self._parts[piece.tie, box] = [run.moved(x, y) for run in runs]

    def _frame(self, box: Box) -> Frame:
        rect, lines = self._rects[box], self._lines[box]
        wide, high = _title(box, lines), len(lines) * LINE
        x = rect.x + (INSIDE if box.children else (rect.width - wide) / 2)
        y = rect.y + ((HEADER - LINE) / 2 if box.children else (rect.height - high) / 2)
        return Frame(box, rect, lines, Rect(x, y, wide, high))

    def _place_loops(self, box: Box, rect: Rect) -> None:
        loops = self._loops.get(box, [])
        sizes = [tie.size or (0.0, LINE) for tie in loops]
        y = rect.y + rect.height / 2 - sum(max(high, 2 * LINE) for _, high in sizes) / 2
        for tie, (wide, high) in zip(loops, sizes, strict=True):
            tall = max(high, 2 * LINE)
            tie.loop = Rect(rect.x + rect.width, y, LOOP, tall)
            if tie.size:
                x = rect.x + rect.width + LOOP + 4
                tie.names = [*tie.named(x + wide / 2, y + (tall - high) / 2)]
            y += tall

    def _join(self, tie: Tie) -> None:
        """Put the pieces of a tie together, from above."""
        around, _, _ = _meeting(tie)
        out = [box for box, _ in _outwards(tie.source, around)]
        into = [box for box, _ in _outwards(tie.target, around)]
        upper, lower = (out, into) if tie.down else (into, out)
        for box in [*upper, around, *reversed(lower)]:
            tie.runs += self._parts[tie, box]
        if around in (tie.source, tie.target):  # from or to the border that it is inside of
            _, y, _, high = self._rects[around]
            first, last = tie.runs[0], tie.runs[-1]
            if around is tie.source:
                tie.runs.insert(0, Run(first.x, y, first.top))
            else:
                tie.runs.append(Run(last.x, last.bottom, y + high))
        for run in tie.runs:
            if run.named:
                tie.names = [*tie.named(run.x, run.top)]


def _title(box: Box, lines: list[str]) -> float:
    """Give how wide the name of a box is; that of one with others inside is bold."""
    size = TEXT * BOLD if box.children else TEXT
    return max((width(line, size) for line in lines), default=0.0)


def _meeting(tie: Tie) -> tuple[Box, Box | None, Box | None]:
    """Give the level at which a tie turns from outwards to inwards, and the boxes there.

    A tie between a box and something inside of it has only one of them.
    """
    outer = [tie.source, *tie.source.around()]
    inner = [tie.target, *tie.target.around()]
    around = next(box for box in outer if box in inner)
    tail = None if around is tie.source else outer[outer.index(around) - 1]
    head = None if around is tie.target else inner[inner.index(around) - 1]
    return around, tail, head


def _outwards(box: Box, around: Box) -> Iterator[tuple[Box, Box]]:
    """Give the levels from a box up to one around it, each with the box in it that is passed."""
    for outer in box.around():
        if outer is around or box is around:
            return
        yield outer, box
        box = outer
