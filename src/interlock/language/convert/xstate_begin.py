"""Where the states of an XState machine begin."""

from interlock.language.convert.xstate_tree import Node, Tree


class Beginnings:
    """Finds where a state begins; one that does not say it is refused, unless nothing asks it."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._found: dict[Node, list[Node]] = {}
        self._aimed_at = {
            target
            for node in tree.nodes
            for raws in node.triggers.values()
            for raw in raws
            for target in tree.targets(raw)
        }

    def of(self, node: Node) -> list[Node]:
        """List where a state begins; nothing for one that holds no states."""
        if node not in self._found:
            self._found[node] = self._find(node)
        return self._found[node]

    def _find(self, node: Node) -> list[Node]:
        if node.kind == "parallel" or not node.regions:
            return node.regions
        given = node.config.get("initial")
        if isinstance(given, dict):
            if given.get("actions"):
                message = f"`initial` of `{node.key}` acts"
                self._tree.refuse("initial-with-actions", message, (*node.where, "initial"))
            given = given.get("target")
        if given is None:
            self._unsaid(node)
            return node.regions[:1]
        if isinstance(given, str):
            by_id = given.startswith("#")
            found = self._tree.by_id(given[1:]) if by_id else node.down(given.lstrip("."))
            if found is not None and found.is_in(node):
                return [found]
        message = f"`{node.key}` begins at no state of its own"
        self._tree.refuse("unknown-state", message, (*node.where, "initial"))
        return []

    def _unsaid(self, node: Node) -> None:
        """Refuse a state that does not say where it begins, unless nothing asks it."""
        around = node.parent
        asked = around is None or node in self._aimed_at
        if around is not None:
            asked |= around.kind == "parallel" or around.config.get("initial") == node.key
        if asked:
            message = f"`{node.key}` holds states and does not say where it begins"
            self._tree.refuse("initial-missing", message, node.where)
        else:
            message = f"`{node.key}` does not say where it begins, and no way in asks it"
            self._tree.note("initial-unsaid", message, node.where)
