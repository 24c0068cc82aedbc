# Every target makes its own environment in .venv; nothing is installed outside it.
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PINS := --constraint constraints.txt --build-constraint constraints.txt
export PYTHONDONTWRITEBYTECODE :=
ONE_THREAD := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint format bench bench-accuracy lock clean

help:  ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1  /p' Makefile | while read -r name text; do printf '  make %-15s %s\n' "$$name" "$$text"; done

demo: .venv/.package  ## install, release the clusters of a made-up shop, say which page to open
	$(BIN)/huemeans demo

test: .venv/.dev lint  ## lint, check types, run every test but the slow ones
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not slow and not engines" -n 2 tests src
	$(ONE_THREAD) $(BIN)/python -m pytest -m "engines" tests

test-all: .venv/.dev lint  ## the same with the slow statistical tests
	$(ONE_THREAD) $(BIN)/python -m pytest -m "not engines" -n 2 tests src
	$(ONE_THREAD) $(BIN)/python -m pytest -m "engines" tests

lint: .venv/.dev  ## ruff and mypy
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: .venv/.dev  ## rewrite the sources in the house format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench-accuracy: .venv/.dev .venv-peers  ## print how accurate PrivateKMeans is beside other methods (hours)
	$(ONE_THREAD) $(BIN)/python benchmarks/accuracy.py

bench: .venv/.dev .venv-peers  ## print the speed figures
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/ellipsoid.py
	$(BIN)/python benchmarks/refits.py
	$(BIN)/python benchmarks/fit.py
	$(BIN)/python benchmarks/passes.py

lock:  ## pin what the registry has today in constraints.txt
	sh scripts/lock

clean:  ## remove the environment and everything made
	rm -rf .venv .venv-peers out dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	sh scripts/venv .venv

.venv-peers:
	sh scripts/peers .venv-peers

.venv/.package: .venv/bin/python pyproject.toml constraints.txt
	$(PIP) --constraint constraints.txt pip
	$(PIP) $(PINS) --editable .
	@touch $@

.venv/.dev: .venv/.package
	$(PIP) $(PINS) --group dev
	@touch $@
