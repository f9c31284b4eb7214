# SPDX-License-Identifier: Apache-2.0

# One environment serves everything: Heat and the services of the mini cloud,
# heat-plugins from this checkout, and what the tests need.
export MINICLOUD_HOME ?= $(CURDIR)/.minicloud
VENV ?= $(MINICLOUD_HOME)/venv
PYTHON := $(VENV)/bin/python
STAMP := $(VENV)/.heat-plugins-installed
DOCS_STAMP := $(VENV)/.heat-plugins-docs-installed
BENCH_STAMP := $(VENV)/.heat-plugins-bench-installed

# How the environment is made, and what the demo is.
MAKE_VENV ?= contrib/minicloud/minicloud install
DEMO ?= contrib/demo/run

# The versions that the mini cloud is known to work with.
CONSTRAINTS := $(wildcard contrib/minicloud/constraints.txt)

# How many processes run the tests; each has mini clouds of its own.
JOBS ?= 3

# How often `make test` tries a functional test once more that has failed, and
# how many of them. What passes then is listed with what was wrong before: the
# services are real and have races of their own, but so may we. RERUNS=0 takes
# the first failure for what it is.
RERUNS ?= 1
RERUNS_AT_MOST ?= 3
RERUN = --reruns $(RERUNS) --max-suite-reruns $(RERUNS_AT_MOST) \
    --rerun-show-tracebacks

# Where test-production finds its tests, and what test-heats runs.
PRODUCTION ?= tests/functional
HEATS ?= heat24,heat25,heat26,heat27

# For pytest, such as ARGS='-k registry', or for the bench: ARGS=--help.
ARGS ?=

.PHONY: help venv lint unit functional test demo demo-plan bench docs

help:
	@echo 'make demo        watch a real Heat deploy software and run workflows'
	@echo 'make demo-plan   watch templates become a plan that is deployed'
	@echo 'make test        lint, docs and all tests'
	@echo 'make lint        ruff, mypy, bandit and pip-audit'
	@echo 'make unit        the tests that need no cloud; BAD_INPUT=long makes'
	@echo '                 up more input, for an hour or so'
	@echo 'make functional  the tests on the mini cloud'
	@echo 'make test-production'
	@echo '                 those, and more, with several engines, RabbitMQ,'
	@echo '                 MariaDB and TLS; installs packages of Debian, as root'
	@echo 'make soak        deployments there, with a fault every few seconds'
	@echo 'make test-heats  the unit tests under each Heat that is supported'
	@echo 'make bench       measure what waiting costs; takes most of an hour'
	@echo 'make docs        the pages for users, in doc/build: html and man'
	@echo 'make venv        the environment for all of these'

venv: $(STAMP)

$(PYTHON):
	$(MAKE_VENV)

# Entry points and requirements are read at installation only, so a change of
# them asks for another one.
$(STAMP): setup.cfg requirements.txt pyproject.toml | $(PYTHON)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[engine,test,validations]'
	@touch $@

lint: $(STAMP)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m bandit --quiet --configfile pyproject.toml \
	    --recursive heat_plugins contrib
	.ci/audit $(PYTHON)

unit functional: %: $(STAMP)
	$(PYTHON) -m pytest tests/$@ $(ARGS)

# The unit tests have Heat in their own process, and with it what eventlet does
# to Python's modules; so the others run apart. Those spend most of their time
# waiting for agents, so several files run side by side.
test: lint docs
	$(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	    tests/unit $(ARGS)
	$(PYTHON) -m pytest --numprocesses $(JOBS) --dist loadfile \
	    $(RERUN) tests/functional $(ARGS)

install-production: $(STAMP)
	contrib/minicloud/minicloud install --profile production

test-production: install-production
	FUNCTIONAL_PROFILE=production $(PYTHON) -m pytest $(RERUN) \
	    $(PRODUCTION) $(ARGS)

soak: install-production
	$(PYTHON) -m tests.functional.production.soak $(ARGS)

test-heats: $(STAMP)
	$(PYTHON) -m tox -e $(HEATS) -- $(ARGS)

demo: $(STAMP)
	$(DEMO)

demo-plan: $(STAMP)
	contrib/demo/run-plan

$(BENCH_STAMP): $(STAMP)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[bench]'
	@touch $@

bench: $(BENCH_STAMP)
	$(PYTHON) -m tests.bench $(ARGS)

$(DOCS_STAMP): $(STAMP)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check \
	    $(CONSTRAINTS:%=--constraint %) --editable '.[docs]'
	@touch $@

docs: $(DOCS_STAMP)
	$(PYTHON) -m sphinx -W --keep-going -q doc/source doc/build/html
	$(PYTHON) -m sphinx -b man -W --keep-going -q doc/source doc/build/man
