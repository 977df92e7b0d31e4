# Two commands are enough: `make study` to learn, `make test` to check everything. Both set up .venv by themselves.
SHELL := bash
.SHELLFLAGS := -eo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help study test check notebooks book course lab clean

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
HANDED_OUT := .venv/handed_out
# A browser is opened where there is a desktop; elsewhere JupyterLab prints its address.
DESKTOP := $(DISPLAY)$(WAYLAND_DISPLAY)$(filter Darwin,$(shell uname -s))

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

study: $(READY) $(HANDED_OUT) ## open JupyterLab at the contents page
	JUPYTER_CONFIG_PATH=$(CURDIR)/tools/jupyter $(BIN)/jupyter lab $(if $(DESKTOP),,--no-browser) $(LAB_FLAGS)

test: $(READY) ## run every test
	$(BIN)/python -m tools.machine
	$(BIN)/python -m pytest -n auto --maxprocesses 4

check: $(READY) ## lint, format, layers, stray numbers, spelling, built files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m pytest -q tests/layers
	$(BIN)/python -m tools.stray_numbers
	$(BIN)/python -m tools.notebooks --check
	$(BIN)/python -m tools.contents --check
	$(BIN)/codespell

notebooks: $(READY) ## build the notebooks, pictures and contents page from their sources
	$(BIN)/python -m tools.notebooks
	$(BIN)/python -m tools.contents

book: $(READY) ## build the static site in build/book; it needs no kernel and no network
	$(BIN)/python -m book.build

course: $(READY) ## build the assignments and hand out the ones you do not have yet
	$(BIN)/psi course build
	$(BIN)/python -m tools.hand_out
	@touch $(HANDED_OUT)

lab: $(READY) ## run the first lab on two processes
	$(BIN)/psi lab run model_states --nproc 2

clean: ## remove what was built, but never .venv or your answers in assignments/
	rm -rf build dist .pytest_cache .hypothesis .ruff_cache
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

$(READY): requirements.txt pyproject.toml
	$(PYTHON) tools/check_python.py
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -e .
	$(BIN)/python -m ipykernel install --sys-prefix --name python3 --display-name "Python 3 (ipykernel)" >/dev/null
	touch $@

# once, and again when an exercise or what builds it has changed
$(HANDED_OUT): $(READY) $(shell find exercises/bank exercises/course/assignments autograder formulary -name '*.yaml' -o -name '*.py')
	$(MAKE) --no-print-directory course
