# Everything a newcomer needs: `make rehearse` and `make test`. Both set up what they need first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SOURCES := planning components automation rehearsal toolchain tests charts __main__.py

.DEFAULT_GOAL := help
.PHONY: help setup rehearse test doctor lint types lock clean

help:  ## Show the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; $$($(PYTHON) --version) was found. Set PYTHON=/path/to/python3.11."; exit 2; }
	@echo "Installing the Python packages of requirements.lock into $(VENV) (one to three minutes the first time)"
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is needed (Debian, Ubuntu: apt install python3-venv)."; exit 2; }
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(STAMP)

setup: $(STAMP)  ## Install the Python packages, then find, install or build the engine and Kubernetes
	@$(BIN)/python -m toolchain ensure

rehearse: setup  ## Rehearse a whole session, free and without an AWS account
	@$(BIN)/rentblock rehearse

test: setup  ## Run all tests
	@$(BIN)/python -m pytest -n 2 --dist worksteal

doctor: $(STAMP)  ## Say what is installed, which way it came, and what a real session lacks
	@$(BIN)/rentblock doctor || [ $$? -eq 15 ]  # 15: something lacks. It has said what; that is no fault of make.

lint: $(STAMP)  ## Style and the direction of imports
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/lint-imports --no-cache

types: $(STAMP)  ## Types, strictly
	@$(BIN)/mypy planning components automation rehearsal toolchain charts __main__.py

lock: $(STAMP)  ## Resolve requirements.lock again (needs uv)
	@uv pip compile --universal --extra dev --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
	  --quiet pyproject.toml --output-file requirements.lock

clean:  ## Remove the virtual environment and what tests leave
	@rm -rf $(VENV) out .pytest_cache .mypy_cache .ruff_cache
