"""What the page on testing says runs as it says, in a project that is not this one."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.docs.pages import DOCS, ROOT, code_blocks

FEW = "closed_store or keys_of_tenants or order_is_the_number"


def block_with(name: str) -> str:
    (found,) = [block for block in code_blocks(DOCS / "testing.md", "python") if name in block]
    return found


def test_the_machine_of_the_example_is_tested_and_its_coverage_shown(tmp_path: Path) -> None:
    shutil.copy(ROOT / "examples" / "order.machine.yaml", tmp_path)
    (tmp_path / "test_order.py").write_text(block_with("machine_tests"), encoding="utf-8")
    (tmp_path / "conftest.py").write_text(block_with("pytest_plugins"), encoding="utf-8")
    (tmp_path / "test_time.py").write_text(
        "def test_time():\n" + textwrap.indent(block_with("ManualClock"), "    "), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--interlock-coverage=100", "-W", "error"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "= transition coverage =" in done.stdout
    assert "order 1: 100% (" in done.stdout
    assert "failed" not in done.stdout


def test_the_example_is_a_test_module_that_passes(tmp_path: Path) -> None:
    example = block_with("StoreContract")
    (tmp_path / "test_mine.py").write_text(example, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-W", "error", "-k", FEW]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SKIPPED [1]" in done.stdout
    assert "needs two handles on one database" in done.stdout
    assert "11 passed, 1 skipped" in done.stdout


def test_a_broken_promise_is_shown_with_both_its_sides(tmp_path: Path) -> None:
    example = block_with("StoreContract")
    broken = """


class Forgetful(interlock.Store):
    def current(self, id, **how):
        return super().current(id, **how).upper()


class TestBroken(TestFile):
    def open_store(self, **how):
        store = super().open_store(**how)
        store.__class__ = Forgetful
        return store
"""
    (tmp_path / "test_mine.py").write_text(example + broken, encoding="utf-8")
    one = "TestBroken and moves_along_the_declared"
    command = [sys.executable, "-m", "pytest", "-q", "-k", one]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "AssertionError: assert 'TESTING' == 'testing'" in done.stdout
