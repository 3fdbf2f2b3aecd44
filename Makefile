# What a developer does here. `make` alone lists it; everything needs only Python 3.11 or newer on the machine.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
TYPED := tests/typed/correct.py

# One test process more than there are processors, for tests mostly wait, but at most four: each starts a server of its own.
# They start hundreds of processes, which are not to compile Rota each time, even where Python is told to keep no bytecode.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
PYTEST = $(BIN)/python -m compileall -q src examples tests && $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help setup demo guestbook test check fast static bench clean

help: ## list what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: $(INSTALLED) ## make .venv with Rota and all that its development needs

demo: $(INSTALLED) ## watch a worker run jobs
	@$(BIN)/rota demo

guestbook: $(INSTALLED) ## serve the guestbook of examples/, with a worker beside it that sends its mail
	@$(BIN)/python -m examples.guestbook

test: $(INSTALLED) ## run every test, on every store
	@$(PYTEST)

check: static fast ## what to run before a commit: format, types, layers and the quick tests

fast: $(INSTALLED) ## run the tests that are not slow
	@$(PYTEST) -m "not slow"

static: $(INSTALLED) ## check format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python $(TYPED)
	$(BIN)/lint-imports --no-logo --no-cache

bench: $(INSTALLED) ## measure Rota and its peers side by side
	@$(BIN)/python -m bench

clean: ## remove what was made here, .venv included
	rm -rf .venv .bench .pgbouncer .chromium .redis build dist site .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "There is no $(PYTHON) here. Name yours: make PYTHON=/path/to/python3.11"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Rota needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) -V). Name another: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable . --group dev
	@touch $@
