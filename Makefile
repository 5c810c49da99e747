# Everything people and CI run. `make` alone says what there is.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
NO_SERVERS := not (broker or cluster or emulator or helm or prometheus or install or thorough)

# Tests and demo start hundreds of Pythons; each would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help venv native servers setup check format lint types imports crds quick test demo samples thorough bench-core wheels clean

help: ## say what there is
	@printf 'Hedgerow: on-device training under memory and energy budgets.\n\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

venv: ## the virtual environment in .venv, from locked versions
	@HEDGEROW_VENV=$(VENV) $(PYTHON) hack/setup venv

native: ## the compiled backend, with the C compiler of this machine, beside the agent's core
	@$(PYTHON) native/build.py

servers: ## the real servers that tests and demo talk to, found, installed or built
	@$(PYTHON) hack/setup servers

setup: venv servers ## all set-up

format: venv ## rewrite the sources in the house format
	@$(BIN)/ruff format . && $(BIN)/ruff check --fix .

check: venv ## the static checks, two at a time
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target types lint imports crds

lint:
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types:
	@$(BIN)/python hack/types

imports:
	@$(BIN)/lint-imports --no-cache --config pyproject.toml

crds:
	@$(BIN)/python hack/crds --check

quick: venv ## the tests that need no server
	@$(PYTEST) -m "$(NO_SERVERS)"

test: setup check ## static checks and every test, on real servers
	@$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "not thorough"

demo: setup ## the whole story on this machine: apply, train, squeeze, roll back
	@PYTHONPATH=hack $(BIN)/python -m demo

samples: venv ## images, a base model and a job in samples/, to try `hedgerow-agent train` with
	@PYTHONPATH=hack $(BIN)/python -m sampledata samples

thorough: setup ## every long list in full, resumable, with a dated report in reports/
	@PYTHONPATH=hack $(BIN)/python -m thorough

bench: venv ## how long large models take to build and differentiate
	@PYTHONPATH=plans $(BIN)/python hack/bench-graphs

bench-core: venv ## the training step beside PyTorch's, which gets a venv of its own; a table in reports/
	@PYTHONPATH=hack $(BIN)/python -m bench_core $(BENCH)

wheels: venv ## an sdist and a wheel for each machine that the compiled backend is built for, in dist/
	@PYTHONPATH=hack $(BIN)/python hack/wheels

clean: ## remove what the build made here; the servers stay in the cache
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis dist build demo-output samples
