# make run and make test are all that a new machine needs: python3, make and a package registry.
.DEFAULT_GOAL := help
.PHONY: help run demo call test lint check-template new-tool strip-examples bench bench-quick fuzz soak keys doctor build test-artefact build-McpFunction build-WebFunction

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
TOOL ?= delete_report
ARGUMENTS ?= {"target": "Q3"}
KIND ?= form

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

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

lint: $(READY) check-template ## Style, types, layers, template
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

check-template: $(READY) ## Expand template.yaml as SAM does, lint it, and hold it to our own rules
	@$(BIN)/python -m infra.check_template

test: lint ## Everything that must hold
	@$(BIN)/python -m pytest $(PYTEST)

build: $(READY) ## Build both functions into build/, with their zips, without the SAM CLI
	@$(BIN)/python -m infra.build $(BUILD)

# What `sam build` calls for each function (BuildMethod: makefile in template.yaml).
build-McpFunction build-WebFunction: $(READY)
	@$(BIN)/python -m infra.build $(@:build-%=%) --into '$(ARTIFACTS_DIR)'

new-tool: $(READY) ## Write a tool and its test that passes: make new-tool NAME=archive_report KIND=form|connect|plain
	@$(BIN)/python -m infra.scaffold '$(NAME)' $(KIND)

strip-examples: $(READY) ## Delete the example tools and what only they need
	@$(BIN)/python -m infra.scaffold.strip_examples

bench: $(READY) ## Measure cold and warm starts side by side with other servers (ten minutes)
	@$(BIN)/python -m tests.bench $(BENCH)

bench-quick: $(READY) ## The same in a minute, for a look
	@$(BIN)/python -m tests.bench --quick $(BENCH)

fuzz: $(READY) ## Twenty times the everyday fuzzing, then a minute for each parser, guided by coverage
	@UV_PROJECT_ENVIRONMENT=$(VENV) $(BIN)/uv sync --frozen --quiet --inexact --group fuzz
	@FUZZ_TIMES=20 $(BIN)/python -m pytest tests/fuzz
	@$(BIN)/python -m tests.fuzz.coverage_guided $(FUZZ)

soak: $(READY) ## Ten minutes of load: memory, keys and descriptors must stay flat
	@$(BIN)/python -m tests.faults.soak $(SOAK)

keys: $(READY) ## Sealing keys of a deployment: make keys KEYS='create --secret ... --apply'
	@$(BIN)/python -m infra.keys $(KEYS)

doctor: $(READY) ## Say what is wrong with a deployment: make doctor DOCTOR='--url https://mcp.example.com/mcp'
	@$(BIN)/python -m infra.doctor $(DOCTOR)

test-artefact: $(READY) ## Run the built functions on the template's Python, with KMS, Secrets Manager and a cluster
	@$(BIN)/python -m pytest tests/infra/test_artefact.py $(PYTEST)
