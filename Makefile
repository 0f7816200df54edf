# For newcomers: `make demo` and `make test` do everything. The build itself is meson.build.

MESON_TEST = meson test --no-rebuild --print-errorlogs
SANITIZE = --buildtype=debugoptimized -Db_lundef=false
FUZZ_SECONDS ?= 60
# warnings are errors where a change is judged
SETUP = meson setup $(if $(CI),-Dwerror=true)

.PHONY: help all demo test test-asan test-tsan coverage fuzz bench-lane format install clean

help:
	@echo "make demo         build, fetch MNIST, train LeNet-5 on 100 digits, show the result"
	@echo "make test         build and run all tests"
	@echo "make all          build only: build/cli/fds, build/src/libfds.so"
	@echo "make install      install the command, the library and the header"
	@echo "make test-asan    all tests under the address and undefined-behaviour sanitizers"
	@echo "make test-tsan    all tests under the thread sanitizer"
	@echo "make coverage     all tests, and which lines they reach"
	@echo "make fuzz         every reader fuzzed for FUZZ_SECONDS (60) seconds"
	@echo "make bench-lane   speed of the network engine against PyTorch"
	@echo "make format       clang-format over the tree"

build/build.ninja:
	@scripts/deps build test
	$(SETUP) build

all: build/build.ninja
	ninja -C build

install: all
	meson install -C build

demo: all
	@scripts/demo

test: all
	@$(MESON_TEST) -C build > build/test.log 2>&1 || cat build/test.log
	@tests/summary.py build

test-asan:
	@scripts/deps build test
	@[ -d build-asan ] || $(SETUP) build-asan $(SANITIZE) -Db_sanitize=address,undefined
	ninja -C build-asan
	@$(MESON_TEST) -C build-asan --timeout-multiplier 5 > build-asan/test.log 2>&1 || \
		cat build-asan/test.log
	@tests/summary.py build-asan

test-tsan:
	@scripts/deps build test
	@[ -d build-tsan ] || meson setup build-tsan $(SANITIZE) -Db_sanitize=thread
	ninja -C build-tsan
	@$(MESON_TEST) -C build-tsan --timeout-multiplier 20 > build-tsan/test.log 2>&1 || \
		cat build-tsan/test.log
	@tests/summary.py build-tsan

coverage:
	@scripts/deps build test coverage
	@[ -d build-coverage ] || meson setup build-coverage --buildtype=debug -Db_coverage=true
	ninja -C build-coverage
	-@$(MESON_TEST) -C build-coverage --timeout-multiplier 10 > build-coverage/test.log 2>&1
	@tests/summary.py build-coverage
	gcovr --root . --filter src/ --filter cli/ build-coverage

fuzz:
	@scripts/deps build test fuzz
	@[ -d build-fuzz ] || CC=clang meson setup build-fuzz $(SANITIZE) -Dfuzz=true
	ninja -C build-fuzz
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

bench-lane:
	@scripts/deps build test bench
	@[ -d build-bench ] || meson setup build-bench
	ninja -C build-bench
	@bench/lane.py build-bench

format:
	clang-format -i include/*.h src/*/*.[ch] cli/*.[ch] tests/*/*.[ch] bench/*.c

clean:
	rm -rf build build-*
