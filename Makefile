# For newcomers: `make demo` and `make test` do everything. The build itself is meson.build.

FUZZ_SECONDS ?= 60
comma = ,
# compiled several times with different contents, which gcovr cannot merge
TEMPLATES = simd.h map_rows.h
# warnings are errors where a change is judged
SETUP = meson setup $(if $(CI),-Dwerror=true)
SANITIZE = --buildtype=debugoptimized -Db_lundef=false

.PHONY: help all demo test test-asan test-tsan test-kill test-install coverage fuzz bench-lane bench-deep \
	bench-value bench-accuracy bench-explain bench-baselines bench-tangent bench-mislabelled \
	bench-paper bench-growth format abi install clean

help:
	@echo "make demo         build, fetch MNIST, fit a run for 100 digits, explain and pay for ten"
	@echo "make test         build and run all tests"
	@echo "make all          build only: build/cli/fds, build/src/libfds.so"
	@echo "make install      install the command, the library and the header"
	@echo "make test-asan    all tests under the address and undefined-behaviour sanitizers"
	@echo "make test-tsan    all tests under the thread sanitizer"
	@echo "make test-kill    fds value killed at every system call that writes, and 100 times at random;"
	@echo "                  fds fit 20 times, in all of its stages"
	@echo "make coverage     all tests, and which lines they reach"
	@echo "make fuzz         every reader fuzzed for FUZZ_SECONDS (60) seconds"
	@echo "make bench-lane   speed of the network engine against PyTorch"
	@echo "make bench-deep   speed of the engine for large networks against PyTorch"
	@echo "make bench-value  speed and memory of fds value against the engine's own rate"
	@echo "make bench-accuracy  the tables of docs/accuracy.md: values against the truth"
	@echo "make bench-explain  the four methods end to end: seconds, and against the truth (an hour)"
	@echo "make bench-baselines  the methods of others: sub-models, seconds, and TMC against PyTorch"
	@echo "make bench-tangent  the tangent kernel against PyTorch: speed and accuracy"
	@echo "make bench-mislabelled  how well each method's lowest values find wrong labels"
	@echo "make bench-paper   the paper's tables in full, with a report: an hour and a half"
	@echo "make bench-growth  how cost and error grow with players and coalitions"
	@echo "make format       clang-format over the tree"

# A build folder, made on first use: $(call folder,NAME,OPTIONS)
define folder
@scripts/deps build test
@[ -f $1/build.ninja ] || $(SETUP) $1 $2
ninja -C $1
endef

all:
	$(call folder,build)

install: all
	$(if $(PREFIX),meson configure build -Dprefix=$(PREFIX))
	meson install -C build --no-rebuild $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

demo: all
	@scripts/demo

test: all
	@tests/run build

# Into an empty folder, and programs outside this tree against it.
test-install:
	rm -rf build/installed
	@$(MAKE) --no-print-directory install DESTDIR=build/installed
	@python3 -B tests/surface/test_install.py build/installed examples tests/data/mnist

test-asan:
	$(call folder,build-asan,$(SANITIZE) -Db_sanitize=address$(comma)undefined)
	@tests/run build-asan --timeout-multiplier 5

test-tsan:
	$(call folder,build-tsan,$(SANITIZE) -Db_sanitize=thread)
	@tests/run build-tsan --timeout-multiplier 20

test-kill: all
	@python3 -B tests/utility/kill.py --kills 100 --load 2 --same v.csv --same v.csv.table -- \
		build/cli/fds value $(CURDIR)/tests/data/mnist --players 20 --test 20 --coalitions 100 \
		--model mlp --threads '{threads}' --quiet -o v.csv
	@python3 -B tests/utility/kill.py --kills 20 --random-only --same run/explainer.safetensors \
		--same run/errors.safetensors --same run/utilities -- build/cli/fds fit \
		$(CURDIR)/tests/data/mnist --players 30 --inputs 200 --coalitions 600 --explainer cnn \
		--explainer-epochs 20 --patience 0 --threads 2 --quiet -o run

coverage:
	@scripts/deps coverage
	$(call folder,build-coverage,--buildtype=debug -Db_coverage=true)
	@tests/run build-coverage --timeout-multiplier 10
	gcovr --root . --filter src/ --filter cli/ $(addprefix --exclude src/lane/,$(TEMPLATES)) \
		build-coverage

fuzz:
	@scripts/deps fuzz
	$(call folder,build-fuzz,$(SANITIZE) -Dfuzz=true --native-file=tests/fuzz/clang.ini)
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

bench-lane:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/lane.py build-bench

bench-deep:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/deep.py build-bench

bench-value:
	$(call folder,build-bench)
	@bench/value.py build-bench

bench-accuracy:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/accuracy.py build-bench small
	@bench/accuracy.py build-bench large --svg build-bench/accuracy.svg

bench-explain:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/explain.py build-bench

bench-baselines:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/baselines.py build-bench

bench-tangent:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/tangent.py build-bench mnist

bench-mislabelled:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/mislabelled.py build-bench

bench-paper:
	@scripts/deps bench
	$(call folder,build-bench)
	build-bench/cli/fds bench paper -o build-bench/paper.report
	@bench/results.py build-bench/paper.report

bench-growth:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/growth.py build-bench

# After a change of the stable header that is meant.
abi: all
	python3 -B tests/surface/headers.py tests/surface/abi.txt cc -Ibuild/include

format:
	clang-format -i include/*.h src/*/*.[ch] cli/*.[ch] tests/*/*.[ch] bench/*.c examples/*.c

clean:
	rm -rf build build-*
