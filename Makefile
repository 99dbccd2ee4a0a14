# make run and make test are all that a new machine needs: python3, make and a package registry.
.DEFAULT_GOAL := help
.PHONY: help run demo call test lint

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOL ?= delete_report
ARGUMENTS ?= {"target": "Q3"}

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

$(READY): pyproject.toml uv.lock
	@echo "Installing the locked dependencies into $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.9"
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/uv sync --frozen --quiet
	@touch $@

run: $(READY) ## Start everything here: functions in two environments each, authorization server
	@$(BIN)/python -m infra.local $(RUN)

demo: $(READY) ## See two rounds of a question, each on another instance, with the official Python client
	@$(BIN)/python -m infra.local.demo $(DEMO)

call: $(READY) ## Call a tool of the running stack: make call TOOL=delete_report ARGUMENTS='{"target": "Q3"}'
	@$(BIN)/python -m infra.local.call $(CALL) '$(TOOL)' '$(ARGUMENTS)'

lint: $(READY) ## Style, types, layers, template
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/cfn-lint -r us-east-1 -- template.yaml

test: lint ## Everything that must hold
	@$(BIN)/python -m pytest $(PYTEST)
