"""Write, check and read `uv.lock`: one exact version of everything, with hashes, and no host.

uv writes the address of the registry it asked into every line of its lock. Whoever installs may
use another one, a mirror say, and it makes no difference: a file is known by its sha256. So the
addresses are replaced by `REGISTRY`, a name that can never resolve (RFC 2606), and the upload
times, which not every registry tells, are dropped. What is left is a lock that uv itself accepts,
the same whichever registry answered.

    python tools/lock.py [UV OPTION…]
        Resolve pyproject.toml and write uv.lock (`make lock`). Asks the registry. Versions stay as
        they are while they fit; `--upgrade` and `--upgrade-package NAME` renew them.
    python tools/lock.py --check
        Fail unless uv.lock is in this form and fits pyproject.toml (`make check`). Offline.
    python tools/lock.py --requirements
        Print uv.lock for `pip install --require-hashes` (`make setup`). Needs nothing installed.

The first two run the uv that the lock itself pins, from the environment that runs this script.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from shutil import copy
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "uv.lock"
REGISTRY = "https://registry.invalid/index"
NO_MARKERS: frozenset[str] = frozenset()


def normalised(lock: str) -> str:
    """Return `lock` with no address and no upload time in it; equal text if it was so already."""
    lock = re.sub(r'\bregistry = "[^"]*"', f'registry = "{REGISTRY}"', lock)
    lock = re.sub(r'\burl = "[^"]*/([^"/]+)"', rf'url = "{REGISTRY}/\1"', lock)
    return re.sub(r', upload-time = "[^"]*"', "", lock)


def requirements(lock: dict[str, Any]) -> Iterator[str]:
    """Yield one requirement with its hashes per package that the project and its groups lead to.

    A package is wanted under the markers met on the way to it: all those of one way, of any way.
    """
    packages: dict[str, dict[str, Any]] = {}
    for package in lock["package"]:
        if packages.setdefault(package["name"], package) is not package:
            sys.exit(f"uv.lock: two versions of `{package['name']}`; constrain it to one")

    (project,) = (name for name, it in packages.items() if "registry" not in it["source"])
    extras = packages[project].get("optional-dependencies", {})
    root: dict[str, Any] = {"name": project, "extra": list(extras)}
    todo = [(root, NO_MARKERS)]
    for group in packages[project].get("dev-dependencies", {}).values():
        todo += [(dependency, NO_MARKERS) for dependency in group]

    ways: dict[tuple[str, str | None], set[frozenset[str]]] = {}
    while todo:
        dependency, markers = todo.pop()
        if "marker" in dependency:
            markers |= {f"({dependency['marker']})"}
        package = packages[dependency["name"]]
        for extra in (None, *dependency.get("extra", ())):
            known = ways.setdefault((package["name"], extra), set())
            if any(way <= markers for way in known):
                continue
            known.add(markers)
            wanted = (
                package.get("optional-dependencies", {}).get(extra, ())
                if extra
                else package.get("dependencies", ())
            )
            todo += [(further, markers) for further in wanted]

    for name in sorted({name for name, _ in ways} - {project}):
        package, known = packages[name], ways[name, None]
        line = f"{name}=={package['version']}"
        if NO_MARKERS not in known:
            line += " ; " + " or ".join(sorted(" and ".join(sorted(way)) for way in known))
        files = [package["sdist"]] if "sdist" in package else []
        hashes = sorted(file["hash"] for file in (*files, *package.get("wheels", ())))
        yield " \\\n    ".join([line, *(f"--hash={digest}" for digest in hashes)])


def uv(*arguments: str, cwd: Path, fault: str) -> str:
    """Run the environment's uv in `cwd`; return what it printed, or exit with `fault`."""
    program = Path(sys.executable).with_name("uv")
    ran = subprocess.run([program, *arguments], cwd=cwd, text=True, stdout=subprocess.PIPE)
    if ran.returncode:
        sys.exit(f"uv.lock: {fault}")
    return ran.stdout


def write(options: list[str]) -> None:
    """Resolve in a scratch folder, so that no address touches the work tree even for a moment."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        copy(ROOT / "pyproject.toml", scratch)
        if LOCK.exists():
            copy(LOCK, scratch)
        arguments = ("lock", "--no-python-downloads", *options)
        uv(*arguments, cwd=scratch, fault="not written, pyproject.toml cannot be resolved")
        LOCK.write_text(normalised((scratch / "uv.lock").read_text()))


def check() -> None:
    """Exit with a sentence unless the lock is normal, fits pyproject.toml, and we read it as uv."""
    text = LOCK.read_text()
    if normalised(text) != text:
        sys.exit("uv.lock: not in normal form; run `make lock`")
    offline = ("--no-python-downloads", "--no-config", "--no-cache", "--offline", "-qq")
    # uv has no way to say "differs" offline but that it cannot resolve, hence -qq and our words.
    lock = ("lock", "--locked", "--default-index", REGISTRY)
    uv(*lock, *offline, cwd=ROOT, fault="does not fit pyproject.toml; run `make lock`")
    export = ("export", "--frozen", "--no-emit-project", "--all-extras", "--all-groups")
    theirs = uv(*export, *offline, cwd=ROOT, fault="cannot be exported")
    # uv may word a marker otherwise; names, versions and hashes are the same, and in one order.
    words = re.compile(r"^\S+==\S+|--hash=\S+", re.MULTILINE)
    if words.findall(theirs) != words.findall("\n".join(requirements(tomllib.loads(text)))):
        sys.exit("tools/lock.py: reads uv.lock otherwise than uv does")


def main(arguments: list[str]) -> None:
    match arguments:
        case ["--check"]:
            check()
        case ["--requirements"]:
            print(*requirements(tomllib.loads(LOCK.read_text())), sep="\n")
        case options:
            write(options)


if __name__ == "__main__":
    main(sys.argv[1:])
