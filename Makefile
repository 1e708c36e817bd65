# The front door. Every target sets up what it needs; nothing is done twice.

PREFIX ?= /usr/local
BUILD := build/release
PYTHON := .venv/bin/python
SHELL := /bin/bash -o pipefail
CPP_FILES = $$(git ls-files -co --exclude-standard -- 'src/*' 'include/*' 'frontends/*' 'apps/*' 'bench/*' 'tests/*' 'fuzz/*' \
	| grep -E '\.(c|cpp|h|hpp)$$')

# Containers often forbid Python to keep what it has compiled, and thousands of its processes are started here.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup build programs demo demo-python demo-programs check test nightly bench format lint asan tsan tidy fuzz aarch64 docs figures deb install uninstall wheel release clean distclean

help:  ## Show this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup:  ## Install what building and testing need: Debian packages, Python environment
	@tools/setup test

# $(call configure,ON|OFF): ON builds the tests, too.
configure = { mkdir -p build && cmake --preset release -DOFFPATH_TESTS=$(1) >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }; }

# A first demo waits for nothing that it does not show. A tree that was built for more stays so.
demo:  ## Show on this machine what offloading gains (three to six minutes from nothing)
	@tools/setup --debian run
	@$(MAKE) --no-print-directory -j2 demo-python demo-programs
	@./offpath demo

# Beside each other: one waits for the network most of the time.
demo-python:
	@tools/setup run | cat  # lines, not one that is drawn anew: ninja has such a one

demo-programs:
	@test -f $(BUILD)/build.ninja || { echo "looking at this machine (build/configure.log) ..."; $(call configure,OFF); }
	@grep -hE '^-- (Open MPI|MPICH):' build/configure.log || true
	@cmake --build --preset release --target demo

build:  ## Build everything that is installed: front ends, solvers, planner, applications, benchmarks
	@tools/setup build
	@test -f $(BUILD)/build.ninja && grep -q 'OFFPATH_TESTS:BOOL=ON' $(BUILD)/CMakeCache.txt || $(call configure,OFF)
	@cmake --build --preset release

programs: setup
	@$(call configure,ON)
	@cmake --build --preset release

check: setup  ## What a change needs first (under two minutes): unit tests, and lint of what changed
	@$(call configure,ON)
	@tools/check

test: programs  ## Run all tests but the long ones: C++ (ctest), then command line and lab (pytest)
	@tools/test

nightly: programs  ## Run the long ones, too: grids in full, sanitizers, clang-tidy, fuzzing, the Arm DPU (hours)
	@tools/setup nightly
	@tools/setup --programs
	@tools/setup --foreign
	@tools/nightly

bench: build  ## Measure alltoall with and without Offpath in a lab
	@./offpath bench alltoall

format: setup  ## Format C, C++ and Python
	@clang-format-14 -i $(CPP_FILES)
	@$(PYTHON) -m ruff format -q --config python/pyproject.toml python tests tools

lint: setup  ## Check format, dependency arrows, Python style
	@tools/lint

tidy: programs  ## Check with clang-tidy
	@tools/setup nightly
	@run-clang-tidy-14 -quiet -p $(BUILD) '/(src|frontends)/.*\.(c|cpp|cxx)$$' 2>/dev/null

asan: setup  ## Build with address and undefined-behaviour sanitizers, run the C++ tests and fuzz targets
	@cmake --preset asan >/dev/null && cmake --build --preset asan && ctest --preset asan -L 'unit|api|fuzz' -j2 --no-tests=error

tsan: setup  ## Build with the thread sanitizer, run the C++ tests and fuzz targets
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan && ctest --preset tsan -L 'unit|api|fuzz' -j2 --no-tests=error

# Where the tools or the network are missing, setup has said so, and there is nothing to build with.
aarch64:  ## Build the service for an emulated Arm DPU into build/aarch64, run its unit tests
	@tools/setup nightly
	@if [ -f .aarch64/ready ]; then \
		cmake --preset aarch64 >build/configure-aarch64.log || { cat build/configure-aarch64.log; exit 1; }; \
		cmake --build --preset aarch64 && ctest --preset aarch64 -j2 --no-tests=error; \
	fi

docs:  ## Build the documentation site into build/docs: reference from the code, all links checked
	@tools/setup docs
	@tools/docs/build
	@echo "docs: build/docs/index.html"

figures:  ## Make pictures and tables of the documents anew from docs/figures
	@.venv/bin/python tools/docs/figures.py

deb:  ## Make a Debian package into build/deb (Debian 12 and 13)
	@tools/deb

install: build  ## Install under PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX) >/dev/null
	@echo "installed: $(PREFIX)/bin/offpath"

uninstall:  ## Remove what `make install` put under PREFIX
	@tools/uninstall $(PREFIX)

wheel:  ## Make a Python wheel of command line, Python interface, service and front ends for glibc 2.27: build/wheel
	@tools/setup nightly
	@tools/wheel

release:  ## Make an archive of the last commit's sources, its bill of materials and their sums: build/archive
	@tools/release

clean:  ## Remove everything that was built
	@rm -rf build

distclean: clean  ## Remove the Python environment, libraries for other machines and the lab's kernel too
	@rm -rf .venv .aarch64 .machines .portable
