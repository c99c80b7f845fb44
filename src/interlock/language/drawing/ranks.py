"""How far down each node of a graph stands: edges lead downwards, but for those that close a cycle.

    ranks(3, [(0, 1), (1, 2), (2, 0)])   -> ([0, 1, 2], {2})

Which edges close a cycle depends on where a walk begins, and that is the first node.
"""

from collections.abc import Sequence


def ranks(count: int, edges: Sequence[tuple[int, int]]) -> tuple[list[int], set[int]]:
    """Give the rank of each node, and which edges, by their place, lead upwards.

    Args:
        edges: pairs of different nodes.
    """
    leaving: list[list[tuple[int, int]]] = [[] for _ in range(count)]
    for place, (tail, head) in enumerate(edges):
        leaving[tail].append((head, place))
    order, upwards = _walk(leaving)
    down = [
        (head, tail) if place in upwards else (tail, head)
        for place, (tail, head) in enumerate(edges)
    ]
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for upper, lower in down:
        above[lower].append(upper)
        below[upper].append(lower)
    found = [0] * count
    for node in order:
        found[node] = max((found[upper] + 1 for upper in above[node]), default=0)
    for node in reversed(order):  # nearer to what it leads to, where that shortens more edges
        if len(below[node]) > len(above[node]):
            found[node] = min(found[lower] for lower in below[node]) - 1
    return found, upwards


def _walk(leaving: list[list[tuple[int, int]]]) -> tuple[list[int], set[int]]:
    """Walk depth first; give the nodes, uppers first, and the edges that lead back up."""
    finished: list[int] = []
    upwards: set[int] = set()
    state = [0] * len(leaving)  # 1 while the walk is below it, then 2
    for root in range(len(leaving)):
        if state[root]:
            continue
        state[root] = 1
        path = [(root, iter(leaving[root]))]
        while path:
            node, edges = path[-1]
            for head, place in edges:
                if state[head] == 1:
                    upwards.add(place)
                elif not state[head]:
                    state[head] = 1
                    path.append((head, iter(leaving[head])))
                    break
            else:
                state[node] = 2
                finished.append(node)
                path.pop()
    return finished[::-1], upwards
