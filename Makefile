# Everything is installed into .venv, from uv.lock, and nothing outside it.
# Another Python: make setup PYTHON=python3.12

PYTHON ?= $(shell for p in python3.11 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
SOURCES := $(wildcard src tests tools bench examples)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test test-all fuzz check format bench lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

setup: .venv/.installed ## make .venv from uv.lock; does nothing if that is up to date

demo: setup ## see Interlock at work
	$(BIN)/interlock demo

test: setup ## run the fast tests
	$(BIN)/pytest -n 2 -m "not slow"

test-all: setup ## run every test
	$(BIN)/pytest -n 2

SECONDS ?= 60
fuzz: setup ## spoil machine documents for a minute, other ones each time; SECONDS=600 for longer
	INTERLOCK_FUZZ_SECONDS=$(SECONDS) $(BIN)/pytest tests/property/test_mutations.py

check: setup ## lint, formatting, types, import contracts, lock
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/python tools/lock.py --check

format: setup ## format the code and make the safe lint repairs
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: setup ## measure speed
	$(BIN)/python -m bench

lock: .venv/.locked ## write uv.lock after a change of dependencies; OPTIONS=--upgrade renews versions
	$(BIN)/python tools/lock.py $(OPTIONS)

clean: ## remove what the other targets made, .venv too
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Made afresh when the lock changes, so that nothing which left the lock stays installed. Wheels only:
# building an sdist would fetch that package's build requirements, which no hash covers.
.venv/.locked: uv.lock tools/lock.py
	@test -n "$(PYTHON)" || { echo "no python3 found; Interlock needs Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than Python 3.11; try: make setup PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear .venv
	$(BIN)/python tools/lock.py --requirements > .venv/requirements.txt
	$(BIN)/python -m pip install --quiet --require-hashes --only-binary :all: -r .venv/requirements.txt
	@touch $@

.venv/.installed: .venv/.locked pyproject.toml
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@
