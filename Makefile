# SPDX-License-Identifier: Apache-2.0
# What a developer runs; `make help` lists it.

# One environment for everything: Heat, the services of the mini cloud,
# heat-plugins from this checkout, and what the tests need.
HOME_DIR ?= .minicloud
VENV ?= $(HOME_DIR)/venv
MINICLOUD ?= contrib/minicloud/minicloud

# What the two larger targets run.
FUNCTIONAL ?= $(PYTHON) -m pytest tests/functional
DEMO ?= contrib/demo/run

PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.heat-plugins-test

.PHONY: help venv lint unit functional test demo

help:
	@echo 'make demo   watch software being deployed by a real Heat'
	@echo 'make test   lint, types, unit and functional tests'
	@echo 'make lint   ruff and mypy alone'
	@echo 'make unit   the unit tests alone; ARGS= goes to pytest'

venv: $(STAMP)

$(PYTHON):
	$(MINICLOUD) install

# Installed again whenever what is declared changes: entry points and
# requirements are read at installation only.
$(STAMP): setup.cfg requirements.txt pyproject.toml | $(PYTHON)
	$(PYTHON) -m pip install --quiet --editable '.[engine,test]'
	@touch $@

lint: $(STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy

unit: $(STAMP)
	$(PYTHON) -m pytest tests/unit $(ARGS)

functional: $(STAMP)
	$(FUNCTIONAL) $(ARGS)

test: lint unit functional

demo: $(STAMP)
	$(DEMO)
