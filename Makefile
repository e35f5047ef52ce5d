.PHONY: setup system test test-all test-oldest faults fuzz neighbours check format bench docs demo dist clean
PYTHON ?= python3
BIN := .venv/bin
export SFUMATO_DATA ?= $(abspath $(wildcard ../shared/data))

setup: .venv/ready
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv && $(BIN)/python -m pip install -q -U 'pip>=25.1' && $(BIN)/python -m pip install -q -c constraints.txt -e . --group dev && touch $@
# Spark needs Java, and the report is read in a browser. Without apt, or the right to use it, their tests are skipped.
INSTALL = { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq install -y
system:
	@command -v java >/dev/null || $(INSTALL) openjdk-17-jre-headless >/dev/null; } \
	  || echo "Java is missing and could not be installed: tests on Spark are skipped"
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || $(INSTALL) chromium >/dev/null; } \
	  || echo "Chromium is missing and could not be installed: tests of the report in a browser are skipped"
test: setup
	$(BIN)/python -m pytest -n auto --dist worksteal -m 'not slow' --durations=20
# What is slow: full products, Spark, the browser, faults, mutants, tutorials.
test-all: setup system
	$(BIN)/python -m pytest -n auto --dist worksteal -m slow --durations=20
# The same as `test`, with the oldest versions that pyproject.toml allows.
OLDEST_PYTHON ?= python3.11
OLD := .venv-oldest/bin
test-oldest: .venv-oldest/ready
	$(OLD)/python -m pytest -n auto --dist worksteal -m 'not slow'
.venv-oldest/ready: pyproject.toml .ci/oldest.py
	$(OLDEST_PYTHON) -m venv .venv-oldest && $(OLD)/python .ci/oldest.py > .venv-oldest/constraints.txt && $(OLD)/python -m pip install -q -U 'pip>=25.1' && $(OLD)/python -m pip install -q -c .venv-oldest/constraints.txt -e . --group test && touch $@
# Kills KILLS writers of a ledger and KILLS fits, among other faults.
faults: export SFUMATO_KILLS = $(or $(KILLS),500)
faults: setup
	$(BIN)/python -m pytest tests/faults -k 'not killed_fits' && $(BIN)/python -m tests.faults.kills
# Runs CASES cases in all; each test in the suite runs a few, always the same.
fuzz: export SFUMATO_FUZZ_CASES = $(or $(CASES),24000)
fuzz: setup
	$(BIN)/python -m pytest tests/fuzz -n 2 --dist worksteal
# Removes a row or a person from CASES tables in all kinds of files and frames, and fits as many hostile tables.
neighbours: export SFUMATO_CASES = $(or $(CASES),10000)
neighbours: setup
	$(BIN)/python -m pytest tests/contract/test_reading_rows.py tests/contract/test_hostile_tables.py -n auto --dist worksteal
check: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
format: setup
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .
demo: setup
	$(BIN)/sfumato demo
bench: setup
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[bench]' && $(BIN)/python -m benchmarks $(if $(QUICK),--quick)
docs: setup
	$(BIN)/python -m pip install -q -c constraints.txt --group docs && $(BIN)/sphinx-build -W -q -b html docs docs/_build && echo "docs/_build/index.html"
# The files of a release: source and wheel, in dist/.
dist: setup
	$(BIN)/python -m pip install -q build && rm -rf dist && $(BIN)/python -m build -q && ls dist
clean:
	rm -rf .venv .venv-* build dist docs/_build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
