# The front door. Every target sets up what it needs; nothing is done twice.

PREFIX ?= /usr/local
BUILD := build/release
CPP_FILES = $$(git ls-files -co --exclude-standard -- 'src/*' 'include/*' 'frontends/*' 'apps/*' 'bench/*' 'tests/*' \
	| grep -E '\.(c|cpp|h|hpp)$$')

.DEFAULT_GOAL := help
.PHONY: help setup build aarch64 programs demo test bench format lint asan tsan install clean distclean

help:  ## Show this list
	@grep -hE '^[a-z0-9]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup:  ## Install what is missing: Debian packages, Python environment
	@tools/setup

build: setup  ## Build everything into build/release
	@cmake --preset release -DOFFPATH_TESTS=ON >build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build --preset release

# Where the tools or the network are missing, setup has said so, and there is nothing to build with.
aarch64: setup  ## Build the service for an emulated Arm DPU into build/aarch64
	@if [ -f .aarch64/ready ]; then \
		cmake --preset aarch64 >build/configure-aarch64.log || { cat build/configure-aarch64.log; exit 1; }; \
		cmake --build --preset aarch64; \
	fi

# What is needed to run programs; a first demo does not wait for the tests to be built.
programs: setup
	@test -f $(BUILD)/build.ninja || cmake --preset release -DOFFPATH_TESTS=OFF
	@cmake --build --preset release

demo: programs  ## Show on this machine what offloading gains (about a minute or two after the build)
	@./offpath demo

test: build aarch64  ## Run all tests: C++ (ctest), then command line and lab (pytest)
	@status=0; \
	ctest --preset release -j2 --no-tests=error --output-log build/ctest.log || status=1; \
	if [ -f .aarch64/ready ]; then ctest --preset aarch64 -j2 --no-tests=error || status=1; \
	else echo "aarch64 unit tests: skipped (tools/setup-aarch64 says why)"; fi; \
	.venv/bin/python -m pytest -q tests/python || status=1; \
	if [ $$status -ne 0 ]; then sed -n '/tests passed,/,$$p' build/ctest.log; fi; \
	exit $$status

bench: programs  ## Measure alltoall with and without Offpath in a lab
	@./offpath bench alltoall

format:  ## Format C, C++ and Python
	@clang-format-14 -i $(CPP_FILES)
	@! command -v ruff >/dev/null || ruff format -q python tests/python tools

lint: build  ## Check format, clang-tidy, dependency arrows, Python style
	@tools/check_includes.py
	@clang-format-14 --dry-run -Werror $(CPP_FILES)
	@run-clang-tidy-14 -quiet -p $(BUILD) '/(src|frontends)/' 2>/dev/null
	@if command -v ruff >/dev/null; then ruff check -q --config python/pyproject.toml python tests/python tools; \
	 else echo "lint: ruff is not installed, Python style was not checked"; fi

asan: setup  ## Build with address and undefined-behaviour sanitizers, run the unit tests
	@cmake --preset asan >/dev/null && cmake --build --preset asan && ctest --preset asan -L unit -j2

tsan: setup  ## Build with the thread sanitizer, run the unit tests
	@cmake --preset tsan >/dev/null && cmake --build --preset tsan && ctest --preset tsan -L unit -j2

install: programs  ## Install under PREFIX (default /usr/local)
	@cmake --install $(BUILD) --prefix $(PREFIX) >/dev/null
	@mkdir -p $(PREFIX)/libexec/offpath $(PREFIX)/bin
	@tar -cf - --exclude=__pycache__ offpath python | tar -xf - -C $(PREFIX)/libexec/offpath
	@tools/setup --python $(PREFIX)/libexec/offpath
	@ln -sf ../libexec/offpath/offpath $(PREFIX)/bin/offpath
	@echo "installed: $(PREFIX)/bin/offpath"

clean:  ## Remove everything that was built
	@rm -rf build

distclean: clean  ## Remove the Python environment and the arm64 libraries too
	@rm -rf .venv .aarch64
