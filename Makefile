.PHONY: setup test check format bench docs demo clean
PYTHON ?= python3
BIN := .venv/bin
export SFUMATO_DATA ?= $(abspath $(wildcard ../shared/data))

setup: .venv/ready
.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv && $(BIN)/python -m pip install -q -U 'pip>=25.1' && $(BIN)/python -m pip install -q -c constraints.txt -e . --group dev && touch $@
test: setup
	$(BIN)/python -m pytest -n auto --dist loadgroup
check: setup
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
format: setup
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .
demo: setup
	$(BIN)/python -m sfumato.demo
bench: setup
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[bench]' && $(BIN)/python -m benchmarks
docs: setup
	$(BIN)/python -m pip install -q -c constraints.txt --group docs && $(BIN)/sphinx-build -W -q -b html docs docs/_build && echo "docs/_build/index.html"
clean:
	rm -rf .venv .venv-* build dist docs/_build demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
