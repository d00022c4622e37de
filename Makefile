# The few commands; `make help` lists them, README.md says what they show.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --generate-hashes \
	--python-version 3.11 --no-emit-index-url --no-header --no-annotate
DELETE ?= background
LIVES ?= 10000
MUTANTS ?= 300
SEED ?= 1
MINUTES ?= 120
# What `make test` runs, in pytest's words; without any, everything.
TESTS ?=
# How many run side by side, on two cores: each waits for its control plane a quarter of the time.
# `-n0` in TESTS: one by one.
WORKERS ?= 3
SIDE_BY_SIDE = -n $(WORKERS) --dist loadscope
LONG_E2E := $(addprefix tests/e2e/test_,enrol_slow.py enrol_namespace.py blueprints_installed.py \
	enrol_left_over.py lifecycle.py protection.py registration_timeout.py deletion_matrix.py) \
	tests/e2e/random_run

.DEFAULT_GOAL := help

.PHONY: help venv lock fmt generate check prepare test test-long simulate mutants demo up down clean render packages bench

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/.stamp ## the Python environment in .venv

$(VENV)/.stamp: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes --requirement requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Hash-pinned, without URLs, for every supported Python and both architectures.
lock: venv ## the hash-pinned requirement files
	$(COMPILE) pyproject.toml -o requirements/function.txt
	$(COMPILE) --extra reconciler pyproject.toml -o requirements/reconciler.txt
	$(COMPILE) --extra reconciler pyproject.toml requirements/dev.in -o requirements/dev.txt
	$(COMPILE) requirements/pythonic.in -o requirements/pythonic.txt

fmt: venv ## formats and sorts imports
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# What is derived from something else; tests fail when it drifts.
generate: venv ## CRDs, goldens, API documents, schema dump, policy digests
	$(BIN)/python -m dev.crds
	$(BIN)/python -m tests.golden.regenerate
	$(BIN)/broker openapi --out docs/openapi.json
	$(BIN)/python -m dev.schema_dump
	$(BIN)/python -m dev.policy_digests

check: venv ## format, lint, types, import contracts, the fast tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q $(SIDE_BY_SIDE) -m "not integration and not render and not e2e"

# Builds, installs and fetches what the tests need, outside any test's time limit.
prepare: venv ## builds and installs what the tests need
	$(BIN)/python -m dev.binaries
	$(BIN)/python -m dev.pythonic
	$(BIN)/python -m dev.schemas

test: prepare ## every test, on a real control plane; TESTS="-k name" narrows it
	$(BIN)/pytest -q $(SIDE_BY_SIDE) --durations=30 $(TESTS)

test-long: test ## the tests that take hours, after all others
	HYPOTHESIS_PROFILE=long $(BIN)/pytest -q tests/unit/function/hostile tests/integration/load \
		tests/integration/replicas tests/faults $(LONG_E2E)

# Any number of simulated lives: LIVES=1000000 takes hours, and goes on where it was interrupted.
simulate: venv ## LIVES=N simulated lives, resumable
	$(BIN)/python -m dev.simulate --lives $(LIVES)

# Whether any fast test notices one change in the code, for a sample of all of them; takes hours, and
# goes on where it was interrupted.
mutants: venv ## whether any fast test notices a change in the code
	$(BIN)/python -m dev.mutants --count $(MUTANTS) --seed $(SEED) --minutes $(MINUTES)

# One node from Git to Ready and back; DELETE=background or foreground.
demo: venv ## one node from Git to Ready and back; DELETE=foreground too
	DELETE=$(DELETE) $(BIN)/python -m dev.demo

up: venv ## the demo's stack, empty, until Ctrl-C
	$(BIN)/python -m dev.stack --run-dir .run

# Every example through the real renderer and validator, as a pull request would be.
render: prepare ## every example through the real renderer and validator
	$(BIN)/python -m dev.render

# The packages of the function and the Configurations, under dist/.
packages: venv ## the packages of function and Configurations, under dist/
	$(BIN)/python -m dev.packages

# Every benchmark, with ratios of one run; bench/results has the figures.
bench: prepare ## every benchmark
	$(BIN)/python -m bench
	$(BIN)/python -m bench registration
	$(BIN)/python -m bench events
	$(BIN)/python -m bench scale

# Ends a stack that `make up` left, by the process id it wrote; stops nothing else.
down: venv ## ends a stack that `make up` left
	$(BIN)/python -m dev.down

clean: down ## removes what was built, and the environment
	$(BIN)/python -c 'import shutil; from dev.toolchain import cache_dir; shutil.rmtree(cache_dir(), ignore_errors=True)'
	rm -rf .run dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -rf $(VENV)
