# `make` alone lists what there is. Every target prepares what it needs, and skips what is already there.

PYTHON ?= python3
BIN := .venv/bin
# Our own tools first; a Node that the set-up installed is among them.
WITH_TOOLS := PATH="$(CURDIR)/$(BIN):$$PATH" PYTHON="$(CURDIR)/$(BIN)/python"

# What the demo does: DEMO=capture writes a file and ends; DEMO_ARGS are options for that command.
DEMO ?= open
DEMO_FILE ?= examples/gpt.py
DEMO_ARGS ?=
PYTEST_ARGS ?=
ZOO_ARGS ?=
BENCH_ARGS ?=

CHECKS := check-format check-lint check-types check-imports check-contracts check-web check-locks

.DEFAULT_GOAL := help
.PHONY: help demo test zoo check format bench wheel clean python $(CHECKS)

help:
	@echo 'make demo    capture an example model and open it in the browser (DEMO_ARGS=--no-browser)'
	@echo 'make test    run every test; make test PYTEST_ARGS="-k worker" runs some'
	@echo 'make check   formatting, lint, types, import rules, generated files, lock files'
	@echo 'make zoo     record and replay some 260 models and programs, write docs/zoo.md (ZOO_ARGS="--family NAME")'
	@echo 'make format  format the Python code and apply the safe lint fixes'
	@echo 'make bench   measure what recording costs, ours and others (BENCH_ARGS="--quick", or --help)'
	@echo 'make wheel   build dist/*.whl, with the viewer inside'
	@echo 'make clean   remove everything that was built or installed here'
	@echo 'A Python 3.11 or newer is needed; name another one with PYTHON=/path/to/python3'

python:
	@command -v $(PYTHON) >/dev/null || { echo "tensorviz: there is no $(PYTHON) here; install Python 3.11 or newer, or name one: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tensorviz: $(PYTHON) is Python %d.%d, and 3.11 or newer is needed: make PYTHON=..." % tuple(sys.version_info[:2]) or 0)'

demo: python
	@$(PYTHON) tools/setup.py demo
	@$(WITH_TOOLS) $(BIN)/tensorviz $(DEMO) $(DEMO_FILE) $(DEMO_ARGS)

test: python
	@$(PYTHON) tools/setup.py test
	$(WITH_TOOLS) npm test
	$(WITH_TOOLS) $(BIN)/python -m pytest -n 2 --dist loadfile $(PYTEST_ARGS)

zoo: python
	@$(PYTHON) tools/setup.py zoo
	@cd tests && ../$(BIN)/python -m zoo $(ZOO_ARGS)

check: python
	@$(PYTHON) tools/setup.py check
	@$(MAKE) --no-print-directory --keep-going $(CHECKS)

check-format:
	$(BIN)/ruff format --check --quiet .

check-lint:
	$(BIN)/ruff check .

check-types:
	$(WITH_TOOLS) $(BIN)/pyright

check-imports:
	$(BIN)/lint-imports

check-contracts:
	$(WITH_TOOLS) npm run --silent semantic:check --prefix extension

check-web:
	$(WITH_TOOLS) npm run --silent lint
	$(WITH_TOOLS) npm run --silent typecheck

check-locks:
	$(BIN)/python tools/check_locks.py

format: python
	@$(PYTHON) tools/setup.py check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: python
	@$(PYTHON) tools/setup.py bench
	@PYTHONPATH=tools .venv-bench/bin/python -m bench $(BENCH_ARGS)

wheel: python
	@$(PYTHON) tools/setup.py wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir dist

clean:
	rm -rf .venv .venv-plain .venv-bench .venv-zoo .tensorviz-setup node_modules packages/*/node_modules packages/*/dist extension/dist
	rm -rf backend/tensorviz/page dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find backend tests tools examples -name __pycache__ -type d -prune -exec rm -rf {} +
