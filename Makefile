# make demo    see what ocpool does, offline, in half a minute
# make test    format, lint, types, import rules, tests
# make run     the daemon, from this checkout
# make bench   the project's own figures, beside a plain aiohttp proxy; ARGS=--check compares with what is committed
# make traces  how well conversations are recognised without ids, client by client
# make image   build the container image and try it, without Docker (root on Debian)
# make scenarios  what routing does in every scenario, 20 seeds; writes docs/scenarios.md
# make slow    the tests that take minutes or hours
# make search  property tests and state machines with examples that were not played before

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# Many tests measure time on cores that they share. What failed beside others is tried once more, alone; that decides.
ALONE = $(BIN)/python -m pytest -q --last-failed --last-failed-no-failures none -m 'not slow' $(ARGS)

.DEFAULT_GOAL := help
.PHONY: help demo run test lint types imports tests search slow bench traces image format docs scenarios clean

help:
	@sed -n 's/^# make/make/p' Makefile

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	$(BIN)/python -m compileall -q config pool proxy
	@touch $@

$(VENV)/.developing: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

demo: $(VENV)/.installed
	$(BIN)/ocpool demo

run: $(VENV)/.installed
	$(BIN)/ocpool serve $(ARGS)

test: lint types imports tests

lint: $(VENV)/.developing
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.developing
	$(BIN)/mypy

imports: $(VENV)/.developing
	$(BIN)/lint-imports

tests: $(VENV)/.developing
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m 'not slow' $(ARGS) || $(ALONE)

search: $(VENV)/.developing
	$(BIN)/python -m pytest -q -n $(JOBS) --dist loadgroup -m 'hypothesis and not slow' --hypothesis-profile search $(ARGS)

slow: $(VENV)/.developing
	$(BIN)/python -m pytest -q -m slow --timeout 0 --hypothesis-profile search $(ARGS)

bench: $(VENV)/.developing
	$(BIN)/python -m tests.bench $(ARGS)

scenarios: $(VENV)/.installed
	$(BIN)/python -m proxy.cli.campaign $(ARGS)

traces: $(VENV)/.developing
	$(BIN)/python -m tests.traces $(ARGS)

image:
	.ci/image

format: $(VENV)/.developing
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.developing
	$(BIN)/python -m config.reference --write README.md
	$(BIN)/python -m proxy.insight.metrics --write docs/metrics.md
	$(BIN)/python -m proxy.cli.clients.document --write docs/clients.md

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
