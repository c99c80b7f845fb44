"""Run the benchmarks: `python -m bench [sqlite] [postgres] [compiler] [--quick]`."""

import argparse
import os
import platform
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench import compile, engine, fires, postgres, records
from bench.harness import Figure


def on_sqlite(folder: Path, *, quick: bool) -> Iterator[Figure]:
    yield from fires.deciding()
    yield from fires.firing(folder)
    yield from engine.on_sqlite(folder)
    yield from fires.growing(folder, 20_000 if quick else 100_000, 50_000 if quick else 1_000_000)
    yield from records.verifying(folder, 20_000 if quick else 100_000)
    yield from records.remembering(folder, 20_000 if quick else 500_000)


def on_postgres(folder: Path, *, quick: bool) -> Iterator[Figure]:
    with postgres.server(folder) as uri:
        yield from postgres.firing(uri)
        yield from engine.on_postgres(uri)
        yield from postgres.contending(uri)
        yield from postgres.growing(
            uri, 20_000 if quick else 100_000, 50_000 if quick else 1_000_000
        )


def of_the_compiler(folder: Path, *, quick: bool) -> Iterator[Figure]:  # noqa: ARG001
    yield from compile.compiling(folder)
    yield from compile.evaluating()
    yield from compile.starting()


SUBJECTS = {"sqlite": on_sqlite, "postgres": on_postgres, "compiler": of_the_compiler}


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("subjects", nargs="*", choices=[[], *SUBJECTS], metavar="SUBJECT")
    parser.add_argument("--quick", action="store_true", help="smaller stores, in a minute")
    parser.add_argument("--folder", type=Path, help="where to put the stores: the disk to measure")
    options = parser.parse_args()
    print(
        f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, "
        f"{os.cpu_count()} CPUs, {platform.system()} {platform.machine()}"
    )
    with tempfile.TemporaryDirectory(dir=options.folder or Path.cwd(), prefix=".bench-") as name:
        for subject in options.subjects or SUBJECTS:
            print(f"\n{subject}")
            for figure in SUBJECTS[subject](Path(name), quick=options.quick):
                print(figure, flush=True)


if __name__ == "__main__":
    main()
