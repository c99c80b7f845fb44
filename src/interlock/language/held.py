"""Whether the store can hold what a flat machine is called.

Each name of a document is short enough by itself; here it is seen what the flat machine makes of
them: paths, `parent{leaf|leaf}`, `action/branch`, several labels for one branch.
"""

from interlock.core.text import LIMITS, clipped, text_fault
from interlock.language.chart import Chart, Report, State
from interlock.language.flatten import Flat

_SHOWN = 60  # characters of a name that is too long


def check_held(flat: Flat, chart: Chart, report: Report) -> None:
    """Report states, actions and guards whose names are too long for the store.

    Each is told where it is written: a product of regions at their parallel state, an action or a
    guard at its branch. Where many are too long for one reason, it is told once.
    """
    for name, leaves in flat.leaves.items():
        if why := text_fault(name, LIMITS.name_bytes):
            state = _outermost_parallel(chart.states[leaves[0]])
            what = f"the regions of `{clipped(state.path, _SHOWN)}` make a state whose name {why}"
            report("bad-name", what, state.where, "give its states shorter names")
    for branch in flat.branches:
        told = f"`{clipped(branch.action, _SHOWN)}`"
        if why := text_fault(branch.action, LIMITS.name_bytes):
            what = f"the action {told} {why}"
            report("bad-name", what, branch.places[0], "give the branch a shorter `name`")
        elif branch.guards and (why := text_fault(" && ".join(branch.guards), LIMITS.name_bytes)):
            what = f"what the caller has to assert for {told} {why}"
            report("bad-name", what, branch.places[0], "give the guards shorter labels")


def _outermost_parallel(leaf: State) -> State:
    """Give the parallel state that a product is called after, or the leaf itself."""
    around = [state for state in leaf.around() if state.kind == "parallel"]
    return around[-1] if around else leaf
