"""A pytest plugin: transition coverage in the report.

    pytest_plugins = ["interlock.testing.plugin"]      # in the conftest.py at the root

With `--interlock-coverage`, the report ends with the share of each definition's branches that the
tests took, and names the others. `--interlock-coverage=90` fails the run where one has less.
"""

from typing import Any

import pytest

from interlock.testing import coverage

OPTION = "interlock_coverage"
SHOWN_MAX = 20  # branches that are named of one definition


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--interlock-coverage` and the setting `interlock_coverage`."""
    told = "show which branches of machines were taken, and fail below a percentage"
    parser.getgroup("interlock").addoption(
        "--interlock-coverage",
        dest=OPTION,
        nargs="?",
        const="0",
        default=None,
        metavar="PERCENT",
        help=told,
    )
    parser.addini(OPTION, told)


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count, if it was asked for."""
    least = _least(config)
    if least is not None:
        coverage.listen()
        config.pluginmanager.register(_Coverage(least), "interlock-coverage")


def pytest_unconfigure() -> None:
    """Count no longer."""
    coverage.stop()


def _least(config: pytest.Config) -> float | None:
    """Read the least percentage that is asked for; None if nothing is."""
    given = config.getoption(OPTION)
    if given is None:
        given = config.getini(OPTION) or None
    if given is None:
        return None
    try:
        least = float(str(given).rstrip("%"))
    except ValueError:
        least = -1.0
    if not 0 <= least <= 100:
        raise pytest.UsageError(f"--interlock-coverage is a percentage, not `{given}`")
    return least


class _Coverage:
    """Reports at the end of a run."""

    def __init__(self, least: float) -> None:
        self._least = least

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a run that took too little; a process of pytest-xdist hands on what it counted."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[OPTION] = coverage.rows()
        elif self._short() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a process of pytest-xdist counted."""
        coverage.merge(getattr(node, "workeroutput", {}).get(OPTION, ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Show the coverage of each definition."""
        found = coverage.found()
        if not found:
            return
        terminalreporter.section("transition coverage")
        for one in found:
            share = f"{len(one.taken)} of {len(one.counted)} branches"
            if out := len(one.branches) - len(one.counted):
                share += f", {out} that nothing takes"
            short = "" if one.percent >= self._least else f", less than {self._least:g}%"
            terminalreporter.line(
                f"{one.name} {one.version}: {one.percent:.0f}% ({share}){short}",
                red=bool(short),
                green=not short,
            )
            for state, action in one.missing[:SHOWN_MAX]:
                terminalreporter.line(f"    not taken: {state} --{action}-->")
            if len(one.missing) > SHOWN_MAX:
                terminalreporter.line(f"    and {len(one.missing) - SHOWN_MAX} more")

    def _short(self) -> bool:
        return any(one.percent < self._least for one in coverage.found())
