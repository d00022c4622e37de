# The few commands; docs/architecture.md explains what stands behind them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv

.PHONY: venv lock fmt check test test-long demo up down clean render generate bench

venv: $(VENV)/.stamp

$(VENV)/.stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --requirement requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Hash-pinned, without URLs, for every supported Python and both architectures.
lock: venv
	$(UV) pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
	  --no-header --no-annotate pyproject.toml -o requirements/function.txt
	$(UV) pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
	  --no-header --no-annotate --extra reconciler pyproject.toml -o requirements/reconciler.txt
	$(UV) pip compile --quiet --upgrade --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
	  --no-header --no-annotate --extra reconciler pyproject.toml requirements/dev.in -o requirements/dev.txt

fmt: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/unit tests/architecture tests/contract -m "not integration" -q

test: venv
	$(BIN)/pytest -q
