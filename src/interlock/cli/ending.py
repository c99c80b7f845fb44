"""How a command ends: its exit code, and the word about it on stderr.

0    done
1    refused: the store, a definition or a log said no; `interlock: REASON: sentence` on stderr
2    wrong usage: it cannot be done as it was asked for
3    storage: the store, or a file that was to be written, cannot be used
70   a fault of Interlock itself
74   done, but its answer could not be written to stdout
130  interrupted
141  whoever read the output went away
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import click

from interlock.cli.output import OutputLost, counted, json_text, visible
from interlock.cli.session import Session
from interlock.core.rejection import InvalidRequest, OutcomeUnknown, Rejected, StorageFailure

REFUSED, USAGE, STORAGE, FAULT, OUTPUT_LOST, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 70, 74, 130, 141

# Arguments that say how to go about it. An `invalid-request` about any other is the store's answer
# to a call that was well written, such as a fire that is dated in the future.
_USAGE_ARGUMENTS = {"url", "since", "report", "batch", "format", "time_zone", "dir", "target"}


class Unsound(Exception):
    """What a command looked at is not sound; it has printed what it found.

    Attributes:
        reason: the word for stderr, such as `findings`.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class _PipeClosed(Exception):
    """A broken pipe, under a name that click does not know: it would make it a refusal."""


@contextmanager
def own_pipes() -> Iterator[None]:
    """Keep a broken pipe, which is no refusal, out of click's hands."""
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeClosed from error


def exit_code(run: Callable[[], object], session: Session) -> int:
    """Run a command and give its exit code, having said on stderr what is to be said.

    Args:
        run: gives the code it chose, or None for 0.
    """
    try:
        chosen = run()
        sys.stdout.flush()
        return chosen if isinstance(chosen, int) else 0
    except BaseException as error:
        return _failed(error, session)


def _failed(error: BaseException, session: Session) -> int:
    try:
        sys.stdout.flush()  # what was found comes before the word about it
    except OSError as lost:
        error = lost
        _let_go(sys.stdout)
    if isinstance(error, BrokenPipeError | _PipeClosed):
        return PIPE_CLOSED
    code, lines = _told(error, session)
    try:
        for line in lines:
            print(line, file=sys.stderr)
    except OSError:
        _let_go(sys.stderr)
    return code


def _let_go(stream: TextIO) -> None:
    """Send what is left in a stream that cannot be written to nowhere, so that it can be closed."""
    with suppress(OSError), Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), stream.fileno())


def _told(error: BaseException, session: Session) -> tuple[int, list[str]]:
    """Give the exit code for an error, and the lines for stderr."""
    match error:
        case SystemExit(code=code):
            return (code if isinstance(code, int) else 0), []
        case click.Abort() | KeyboardInterrupt():
            return INTERRUPTED, ["interlock: interrupted"]
        case click.UsageError():
            return USAGE, _usage(error, session)
        case click.ClickException():
            return error.exit_code, _refusal(session, "wrong-usage", error.format_message())
        case Unsound():
            return REFUSED, _refusal(session, error.reason, str(error))
        case Rejected():
            return _rejected(error, session)
        case OutputLost():
            return OUTPUT_LOST, _refusal(session, "output-lost", str(error))
        case OSError(filename=None):  # what is read and kept by name has other errors
            return _told(OutputLost.of(error), session)
        case OSError():
            message = f"`{error.filename}`: {(error.strerror or str(error)).lower()}"
            return STORAGE, _refusal(session, StorageFailure.reason, message)
        case _:
            return _of_a_file(error, session)


def _rejected(refusal: Rejected, session: Session) -> tuple[int, list[str]]:
    lines = _refusal(session, refusal.reason, str(refusal), refusal.as_dict())
    if isinstance(refusal, StorageFailure | OutcomeUnknown):
        return STORAGE, lines
    wrong = isinstance(refusal, InvalidRequest) and refusal.argument in _USAGE_ARGUMENTS
    return USAGE if wrong else REFUSED, lines


def _of_a_file(error: BaseException, session: Session) -> tuple[int, list[str]]:
    """Tell of a definition or a log that was refused, or else of a fault of our own."""
    from interlock.eventlog import LogError
    from interlock.language import DefinitionError

    if isinstance(error, LogError):
        fields = {"file": error.file, "line": error.line, "hint": error.hint}
        return REFUSED, _refusal(session, "invalid-log", str(error), fields)
    if isinstance(error, DefinitionError):
        found = [diagnostic.as_dict() for diagnostic in error.diagnostics]
        message = f"{counted(len(found), 'fault')} in the definition"
        lines = _refusal(session, "invalid-declaration", message, {"diagnostics": found})
        shown = [] if session.json else [diagnostic.show() for diagnostic in error.diagnostics]
        return REFUSED, [*shown, *lines]
    from traceback import format_exception

    message = f"interlock: this is a fault of Interlock itself, please report it: {error!r}"
    return FAULT, ["".join(format_exception(error)), message]


def _refusal(
    session: Session, reason: str, message: str, fields: Mapping[str, object] | None = None
) -> list[str]:
    if session.json:
        return [json_text({"reason": reason, "message": message, **(fields or {})})]
    return [f"interlock: {reason}: {visible(message)}"]


def _usage(error: click.UsageError, session: Session) -> list[str]:
    message = error.format_message()
    if session.json:
        return _refusal(session, "wrong-usage", message)
    context = error.ctx
    usage = [context.get_usage(), f"Try `{context.command_path} --help`."] if context else []
    return [*usage, f"interlock: wrong usage: {visible(message)}"]
