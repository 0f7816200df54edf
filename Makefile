# For newcomers: `make demo` and `make test` do everything. The build itself is meson.build.

FUZZ_SECONDS ?= 60
comma = ,
# compiled several times with different contents, which gcovr cannot merge
TEMPLATES = simd.h map_rows.h
# Warnings are errors where a change is judged, but not in folders of sanitizers, where gcc also warns of
# what cannot happen.
WERROR = $(if $(CI),$(if $(findstring sanitize,$1),,-Dwerror=true))
# -O1 compiles in two thirds of the time of -O2; the kernels keep -O2 (src/lane/meson.build)
SANITIZE = --buildtype=debugoptimized -Doptimization=1 -Db_lundef=false

TIDY = src/*/*.c cli/*.c # what is given to clang-tidy
FORMATTED = $(wildcard include/*.h include/*/*.h src/*/*.[ch] cli/*.[ch] tests/*/*.[ch] bench/*.c \
	examples/*.c)

.PHONY: help all demo serve-demo platform install python test test-asan test-tsan test-kill test-install coverage clang fuzz \
	format format-check tidy abi clean bench-lane bench-deep bench-value bench-external bench-accuracy \
	bench-money bench-explain bench-factor bench-baselines bench-tangent bench-mislabelled bench-audit bench-trust \
	bench-paper bench-growth bench-anchor bench-serve bench-privacy bench-scale bench-ranks results

help:
	@echo "First steps"
	@echo "  make demo          build, fetch MNIST, fit a run for 100 digits, explain and pay for ten"
	@echo "  make serve-demo    the same as a service: a customer, eight clinics, a ledger, and the page"
	@echo "  make platform      all 60,000 digits of 100 providers: fitted by parts, sold, paid, audited"
	@echo "  make test          build and run all tests, or those of ROOMS='base|utility'"
	@echo "  make all           build only: build/cli/fds, build/src/libfds.so"
	@echo "  make install       install the command, the library, its headers and fds.pc (DESTDIR, PREFIX)"
	@echo "  make python        build the Python package, install it into build/python, test it"
	@echo "  make clean         remove all build folders"
	@echo
	@echo "Before a change lands (.ci/run does all of these)"
	@echo "  make format        clang-format over the tree; format-check only reports differences"
	@echo "  make abi           record the stable header anew, after a change that is meant"
	@echo "  make test-asan     all tests under the address and undefined-behaviour sanitizers"
	@echo "  make test-tsan     all tests under the thread sanitizer (.ci/run: base, utility, explain)"
	@echo "  make test-install  install into an empty folder; compile and run the examples against it"
	@echo "  make clang         build everything by clang"
	@echo "  make fuzz          fuzz every reader for FUZZ_SECONDS (60) seconds"
	@echo
	@echo "More checks"
	@echo "  make test-kill     fds value killed at every system call that writes, and 100 times at"
	@echo "                     random; fds fit 20 times, in all of its stages; fds serve at every"
	@echo "                     write and sync of its ledger, and 200 times at random"
	@echo "  make coverage      all tests, and which lines they reach"
	@echo "  make tidy          clang-tidy over src and cli: four minutes"
	@echo
	@echo "Benchmarks"
	@echo "  make bench-lane         the engine for small networks against PyTorch"
	@echo "  make bench-deep         the engine for large networks against PyTorch"
	@echo "  make bench-tangent      the tangent kernel against PyTorch: speed and accuracy"
	@echo "  make bench-value        speed and memory of fds value against the engine's own rate"
	@echo "  make bench-external     what asking a program of the user's costs per evaluation"
	@echo "  make bench-accuracy     the tables of docs/accuracy.md: values against the truth"
	@echo "  make bench-money        accuracy where the money goes: GAMES='mnist hospitals'"
	@echo "  make bench-factor       factors of many players against full heads, and new players: twenty minutes"
	@echo "  make bench-explain      the four methods end to end, against the truth: an hour (QUICK=--quick)"
	@echo "  make bench-baselines    baselines: sub-models, seconds, and TMC against PyTorch"
	@echo "  make bench-mislabelled  how well each method's lowest values find wrong labels"
	@echo "  make bench-audit        how well fds data audit finds wrong labels in tables"
	@echo "  make bench-trust        how soon fds audit finds cheating and drift, and its false alarms"
	@echo "  make bench-paper        the paper's tables on its two data sets, with a report: over an hour"
	@echo "  make results            the same, and write its tables and findings to docs/results.md"
	@echo "  make bench-serve        fds serve under load against FastAPI, PyTorch and sqlite3"
	@echo "  make bench-privacy      private statements: speed, accuracy, an audit of neighbouring ledgers"
	@echo "  make bench-growth       how cost and error grow with players and coalitions"
	@echo "  make bench-anchor       Banzhaf values of 10,000 digits: a time that users of opendataval report"
	@echo "  make bench-scale        thousands of players: cost, accuracy, estimates, answers, Ctrl-C: an hour"
	@echo "  make bench-ranks        what dividing the work among the processes of an MPI job costs"

# A build folder, made on first use: $(call folder,NAME,OPTIONS). For ROOMS, tests/run builds what
# their tests need.
define folder
@scripts/deps build test
@[ -f $1/build.ninja ] || meson setup $(call WERROR,$2) $1 $2
$(if $(ROOMS),,ninja -C $1)
endef

# The tests of ROOMS, as in ROOMS='base|utility/table', or all; without those of EXCEPT.
chosen = $(if $(ROOMS)$(EXCEPT),$$(meson test -C $1 --list | grep -E '^($(or $(ROOMS),[a-z0-9_]+))(/|$$)' \
    | grep -vE '^($(or $(EXCEPT),-))(/|$$)'))

all:
	$(call folder,build)

install: all
	$(if $(PREFIX),meson configure build -Dprefix=$(PREFIX))
	meson install -C build $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))

demo: all
	@scripts/demo

serve-demo: all
	@scripts/serve-demo

platform: all
	@examples/platform/run

test: all
	@tests/run build $(call chosen,build)

# On Debian's own Python, whatever comes first on the PATH; PYTEST='-k result' chooses tests.
python: all
	@scripts/deps python
	@python/check build $(PYTEST)

# Into an empty folder, and programs outside this tree against it.
test-install:
	rm -rf build/installed
	@$(MAKE) --no-print-directory install DESTDIR=build/installed
	@python3 -B tests/surface/test_install.py build/installed examples tests/data/mnist

test-asan:
	$(call folder,build-asan,$(SANITIZE) -Db_sanitize=address$(comma)undefined)
	@tests/run build-asan --timeout-multiplier 5 $(call chosen,build-asan)

test-tsan:
	$(call folder,build-tsan,$(SANITIZE) -Db_sanitize=thread)
	@tests/run build-tsan --timeout-multiplier 20 $(call chosen,build-tsan)

test-kill: all
	@python3 -B tests/utility/kill.py --kills 100 --load 2 --same v.csv --same v.csv.table -- \
		build/cli/fds value $(CURDIR)/tests/data/mnist --players 20 --test 20 --coalitions 100 \
		--model mlp --threads '{threads}' --quiet -o v.csv
	@python3 -B tests/utility/kill.py --kills 20 --random-only --same run/explainer.safetensors \
		--same run/errors.safetensors --same run/utilities -- build/cli/fds fit \
		$(CURDIR)/tests/data/mnist --players 30 --inputs 200 --coalitions 600 --explainer cnn \
		--explainer-epochs 20 --patience 0 --threads 2 --quiet -o run
	@FDS_TEST_DATA=$(CURDIR)/tests/data python3 -B tests/serve/test_kill.py build/cli/fds --step 1 --random 200
	@FDS_TEST_DATA=$(CURDIR)/tests/data python3 -B tests/cli/test_update_faults.py build/cli/fds --step 1

coverage:
	@scripts/deps coverage
	$(call folder,build-coverage,--buildtype=debug -Db_coverage=true)
	@tests/run build-coverage --timeout-multiplier 10
	gcovr --root . --filter src/ --filter cli/ $(addprefix --exclude src/lane/,$(TEMPLATES)) \
		build-coverage

# The whole tree, for its warnings, and the fuzz targets, which have flags of their own.
clang:
	@scripts/deps fuzz
	$(call folder,build-fuzz,--buildtype=debug -Db_lundef=false -Dfuzz=true --native-file=tests/fuzz/clang.ini)

fuzz: clang
	@tests/fuzz/run build-fuzz $(FUZZ_SECONDS)

bench-lane:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/lane.py build-bench

bench-deep:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/deep.py build-bench

bench-privacy:
	$(call folder,build-bench)
	@build-bench/bench/bench-privacy

bench-value:
	$(call folder,build-bench)
	@bench/value.py build-bench

bench-external:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/external.py build-bench
	@bench/external.py build-bench --python

bench-accuracy:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/accuracy.py build-bench small
	@bench/accuracy.py build-bench large --svg build-bench/accuracy.svg
	@bench/until.py build-bench --draws 10

bench-money:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/money.py build-bench $(GAMES)

bench-explain:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/explain.py build-bench $(QUICK)

bench-factor:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/factor.py build-bench

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

bench-audit: bench-trust
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/audit.py build-bench --least 0.8

bench-trust:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/trust.py build-bench --svg docs
	@bench/copies.py build-bench --svg docs
	@bench/trust.py build-bench --speed

bench-paper:
	@scripts/deps bench
	$(call folder,build-bench)
	build-bench/cli/fds bench mnist cifar10 --test 100 -o build-bench/paper.report
	@bench/results.py build-bench/paper.report

# What bench-paper has finished is not computed again.
results: bench-paper
	@bench/results.py build-bench/paper.report --write docs/results.md

bench-serve:
	@scripts/deps serve-bench
	$(call folder,build-bench)
	@bench/serve.py build-bench --crowd --soak 600

bench-growth:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/growth.py build-bench

bench-anchor:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/anchor.py build-bench

bench-scale:
	@scripts/deps bench
	$(call folder,build-bench)
	@bench/scale.py build-bench --model logistic
	@bench/planner.py build-bench
	@bench/columns.py build-bench
	@bench/answers.py build-bench
	@bench/cancel.py build-bench

bench-ranks:
	@scripts/deps bench mpi
	$(call folder,build-bench)
	@bench/ranks.py build-bench

# After a change of the stable header that is meant.
abi: all
	python3 -B tests/surface/headers.py tests/surface/abi.txt cc -Ibuild/include

format:
	@scripts/deps lint
	@clang-format -i $(FORMATTED)

format-check:
	@scripts/deps lint
	@clang-format --dry-run -Werror $(FORMATTED)

# Headers are seen through the files that include them.
tidy: all
	@scripts/deps lint
	@echo $(TIDY) | xargs -n 8 -P $$(nproc) clang-tidy --quiet -p build

clean:
	rm -rf build build-*
