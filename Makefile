# make tune and make test do all the set-up they need; `make help` lists the rest.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TRIALS ?= 48
WORKERS ?= 2
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

.PHONY: help tune fast test land landing nightly sweeps lowest extras lint bench docs clean
.DEFAULT_GOAL := help

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

tune: $(VENV)/.installed ## Set up, then tune examples/linear_silu.mlir for one thread into tuned/ (TRIALS=48)
	$(BIN)/mlir-sched tune examples/linear_silu.mlir -o tuned --trials $(TRIALS) --threads 1

# $(call tests,MARKS) runs the tests with these marks: first those that can share the machine, then those that need the
# cores to themselves, which get a second try. Where either part fails, so does the whole, after both.
define tests
@result=0; \
$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m '$(1) and not alone' || result=1; \
$(BIN)/python -m pytest -m '$(1) and alone' --reruns 1 || result=1; \
if test $$result = 0; then echo "all tests passed"; else echo "error: tests failed, see above" >&2; exit 1; fi
endef

fast: lint ## Check style and types, and run the tests that start no process: about 2 minutes
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder -m fast

test: lint ## Set up, then check what the README and each layer promise: about 8 minutes
	$(call tests,not landing and not nightly)

land: ## Run what a change must pass: make test, then the other tests that guard a landing; about 20 minutes
	@result=0; \
	$(MAKE) test || result=1; \
	$(MAKE) landing || result=1; \
	exit $$result

landing: $(VENV)/.installed-test
	$(call tests,landing and not nightly)

nightly: ## Run everything: make land, sweeps, statistics, many kills, and the lowest versions of dependencies
	@result=0; \
	$(MAKE) land || result=1; \
	$(MAKE) sweeps || result=1; \
	$(MAKE) lowest || result=1; \
	exit $$result

sweeps: $(VENV)/.installed-test
	$(call tests,nightly)

# Types are checked with the newest versions alone, and warnings are no errors: old releases warn of what others removed.
lowest: ## Run the fast tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) tests/support/lowest_versions.py > .lowest.txt
	PIP_CONSTRAINT=$(CURDIR)/.lowest.txt $(MAKE) VENV=.venv-lowest .venv-lowest/.installed-test
	.venv-lowest/bin/python -m pytest -n $(WORKERS) -m fast -W default

# Tests of the cost models that need an extra: warnings of the packages that it brings are no errors.
extras: ## Run the tests of cost models that need an extra, with PyTorch for CPUs, in an environment of their own
	$(MAKE) VENV=.venv-extras .venv-extras/.installed-extras
	.venv-extras/bin/python -m pytest tests/extras -W default

lint: $(VENV)/.installed-test ## Check style and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy tests benchmarks examples

bench: $(VENV)/.installed-test ## Run the benchmarks of the tool itself
	@set -e; for name in tool_speed record_store; do echo "== $$name"; $(BIN)/python -m benchmarks $$name; done

docs: $(VENV)/.installed-docs ## Build the site of the documentation into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "built: build/site/index.html"

clean: ## Remove the environment and everything that was made
	rm -rf $(VENV) .venv-lowest .venv-extras .lowest.txt build dist *.egg-info tuned .mypy_cache .ruff_cache .pytest_cache

# The environment is brought up to date whenever pyproject.toml changes. The install is editable, so that changed code
# needs no other step.
$(VENV)/.installed: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-extras: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --extra-index-url $(TORCH_INDEX) -e '.[test,gp,gnn]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.made:
	@command -v $(PYTHON) > /dev/null || { echo "error: $(PYTHON) not found: install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $$($(PYTHON) --version) is too old: Python 3.11 or newer is needed, e.g. make PYTHON=python3.12" >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
	  echo "error: $(PYTHON) cannot make environments: install its venv package, e.g. apt-get install python3-venv" >&2; \
	  exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@
