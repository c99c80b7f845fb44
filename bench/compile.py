"""The compiler: machines of two sizes from their files, imports, and guards once compiled."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from bench.harness import ROUNDS, Figure, at_most
from bench.machines import yaml_text

COMPILE = """
import sys, time
before = time.perf_counter()
import interlock
interlock.load
imported = time.perf_counter()
busy = time.process_time()
definition = interlock.load(sys.argv[1])
busy = time.process_time() - busy
compiled = time.perf_counter()
assert not definition.unproved
print((imported - before) * 1e3, (compiled - imported) * 1e3, busy * 1e3)
"""
IMPORT = """
import time
before = time.perf_counter()
import interlock
print((time.perf_counter() - before) * 1e3)
"""


def compiling(folder: Path) -> Iterator[Figure]:
    """Compile files, each time in a process of its own: nothing is warm but the disk."""
    for states, most, compared in (
        (100, 300, 0),
        (100, 300, 10),
        (1000, 3000, 0),
        (1000, 3000, 10),
    ):
        file = folder / f"claims-{states}-{compared}.machine.yaml"
        file.write_text(yaml_text(states, compared=compared), encoding="utf-8")
        taken = [[*map(float, _run("-c", COMPILE, str(file)).split())] for _ in range(ROUNDS)]
        how = "one choice in ten by the solver" if compared else "choices by bounds"
        imported, compiled, busy = zip(*taken, strict=True)
        detail = f"{median(busy):.0f} of CPU, after {median(imported):.0f} ms of imports"
        name = f"compile {states:,} states, {how}"
        yield at_most(name, most, compiled, "ms", detail)


def starting() -> Iterator[Figure]:
    _run("-c", IMPORT)  # writes the bytecode
    yield at_most("import interlock", 120, [float(_run("-c", IMPORT)) for _ in range(ROUNDS)], "ms")
    yield at_most(
        "interlock --help, the whole process", 250, [_help() for _ in range(ROUNDS)], "ms"
    )


def evaluating() -> Iterator[Figure]:
    """Ask a definition for a branch's guard and evaluate it."""
    import interlock
    from interlock.language.condition import Expr, tests

    definition = interlock.loads(yaml_text(100))
    values = {
        "data": {
            "amount": "350.00",
            "limit": "500.00",
            "qty": 7,
            "score": 0.5,
            "region": "EU",
            "express": False,
            "owner": "ann",
            "due_at": "2026-05-01T12:00:00Z",
        },
        "event": {"grade": 4},
        "now": "2026-05-01T11:00:00Z",
    }
    guards = [
        (test.text, branch)
        for branch in definition.flat.branches
        for test in tests(branch.when)
        if isinstance(test, Expr)
    ]
    taken = []
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        for text, branch in guards:
            definition.expression(text, branch).evaluate(values)
        taken.append((time.perf_counter() - start) / len(guards) * 1e6)
    yield at_most("a guard, found and evaluated", 10, taken[1:], "us", f"{len(guards)} guards")


def _help() -> float:
    start = time.perf_counter()
    _run("-m", "interlock", "--help")
    return (time.perf_counter() - start) * 1e3


def _run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
