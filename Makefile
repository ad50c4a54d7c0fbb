# make demo, make test: set up .venv on the first run, reuse it afterwards, then do what they say.

PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready
FAST   := $(wildcard tests/[1-6]?_*)
NATIVE := $(shell find native -type f 2>/dev/null)

.PHONY: demo test test-pythons test-aarch64 check golden bench performance primitives fuzz clean

demo: $(READY)
	$(BIN)/cortex demo

test: $(READY)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

# The versions of Python beside the one of .venv. Torch is not installed there: tests that need it are skipped.
PYTHONS := 3.12 3.13
test-pythons: $(foreach version,$(PYTHONS),.venv-$(version)/.ready)
	for version in $(PYTHONS); do .venv-$$version/bin/python -m pytest -q -n 2 --dist worksteal || exit 1; done

.venv-%/.ready: pyproject.toml CMakeLists.txt $(NATIVE)
	test -x .venv-$*/bin/python || for python in python$* $(HOME)/.pyenv/versions/$*.*/bin/python; do \
	    $$python -m venv .venv-$* 2>/dev/null && break; done
	.venv-$*/bin/python -c 'import tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	    print(*(each for each in extras["dev"] if not each.startswith("torch")), sep="\n")' > .venv-$*/dev.txt
	.venv-$*/bin/pip install --quiet --editable . --requirement .venv-$*/dev.txt
	touch $@

# Packages for AArch64, in an emulator: installs Debian's packages for that where they are missing, which takes root.
test-aarch64: $(READY)
	(command -v qemu-aarch64 && command -v aarch64-linux-gnu-gcc) || apt-get install -y qemu-user gcc-aarch64-linux-gnu
	$(BIN)/python -m pytest -q tests/78_package/test_aarch64.py

# Lint, types, layers and the fast tests: under a minute.
check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -x tests/test_layers.py tests/test_tiny.py $(FAST)

# Rewrite the golden files from what the compiler does now; read the diff before committing it.
golden: $(READY)
	$(BIN)/python -m pytest -q --update-golden --ignore=tests/fuzz
	git --no-pager diff --stat -- tests

# The recursive models against PyTorch and the limit of the machine, as a table.
bench: $(READY)
	$(BIN)/cortex bench --suite recursive

# Measure everything that docs/performance.md and the README state, and write them: about twenty minutes.
performance: $(READY)
	$(BIN)/python benchmarks/performance_page.py

# Measure what docs/primitives.md states of convolutions and matrix products, and write it: about six minutes.
primitives: $(READY)
	$(BIN)/python benchmarks/primitives_page.py

# Many more random models, structures and schedules than `make test` tries, and all combinations of what it tries some of.
fuzz: $(READY)
	CORTEX_FUZZ=long $(BIN)/python -m pytest -q $(sort $(dir $(shell grep -rlE 'CORTEX_FUZZ|breadth|hypothesis' tests/*/ --include='*.py')))

clean:
	rm -rf .venv .venv-* build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Python files are picked up as they are (an editable install); only native sources and dependencies matter here.
$(READY): pyproject.toml CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@
