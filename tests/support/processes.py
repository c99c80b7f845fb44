"""Other processes: a piece of Python run in a fresh interpreter that sees what this one sees."""

import os
import subprocess
import sys
from pathlib import Path

import interlock

_ROOT = Path(__file__).resolve().parents[2]
_SEEN = os.pathsep.join([str(Path(interlock.__file__).resolve().parents[1]), str(_ROOT)])


def start(code: str, *arguments: object, **options: object) -> subprocess.Popen[str]:
    """Start `code` with `arguments` as `sys.argv[1:]`; its output comes through pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": _SEEN},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,  # type: ignore[call-overload]
    )


def run_shell(command: list[str]) -> str:
    """Run another program, which finds this interpreter as `$PYTHON`, and give what it printed."""
    environment = {**os.environ, "PYTHONPATH": _SEEN, "PYTHON": sys.executable}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def finish(process: subprocess.Popen[str], said: str = "", *, seconds: float = 120) -> str:
    """Say something to a process, wait for its end, and give what it printed; it must succeed."""
    out, err = process.communicate(said, timeout=seconds)
    assert process.returncode == 0, f"exit {process.returncode}\n{out}\n{err}"
    return out


def run(code: str, *arguments: object) -> str:
    return finish(start(code, *arguments))
