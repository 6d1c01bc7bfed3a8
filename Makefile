# Two commands matter: `make demo` and `make test`. Both need Go and nothing else.

GO      ?= go
# Vetting is a part of check.
GOTEST  ?= $(GO) test -vet=off
# Some tests wait, for servers and processes: one package more than there are processors runs at a time.
AT_ONCE = -p=$(shell echo $$(($$(getconf _NPROCESSORS_ONLN || echo 1) + 1)))
BIN     := bin/wasmactors
BROWSER := host/admin/dashboard/browsertest
# The modules that have tests; the other guests are built by the product's.
MODULES := . abi guest-sdk tools bench samples/ledger/guest samples/flaky/guest samples/chat/guest samples/crawler/guest samples/webhooks/guest samples/redis/guest docs/examples/checkout/guest $(BROWSER)
FUZZTIME ?= 30s

.PHONY: demo test slow slow-processes slow-seeds thorough tools portable check bench bench-quick browser pictures guard fuzz mutants stalls cluster-sim shard-sim journal-sim cluster-faults cluster-release build race fmt generate tidy clean help demo-simulate demo-cluster simulate planted crashes kills recordings arm64 race-core race-rest

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without -trimpath the build shares what the tests have compiled.
BUILDFLAGS ?= -trimpath
build: ## build the command into bin/
	@echo "building $(BIN); the first time that takes a minute or more" >&2
	@(while sleep 5 >/dev/null 2>&1; do printf . >&2; done) & dots=$$!; trap 'kill $$dots 2>/dev/null' EXIT; $(GO) build $(BUILDFLAGS) -ldflags=-w -o $(BIN) ./cmd/wasmactors

demo: build ## run the ledger sample on thousands of transactions and check its books
	@./samples/ledger/demo.sh $(BIN)

demo-cluster: build ## spread the ledger over three nodes, kill one every ten seconds for FOR (2m), and check its books
	@FOR=$(or $(FOR),2m) ./samples/ledger/demo.sh --cluster $(BIN)

demo-simulate: build ## find a rare mistake of a ledger by simulation, and make the case smaller (30 s)
	@dir=$$(mktemp -d) && trap 'rm -rf "$$dir"' EXIT && \
	if $(BIN) simulate samples/ledger --bug --cases "$$dir"; then echo "nothing was found" >&2; exit 1; fi; \
	echo stack | $(BIN) replay --step --script - "$$dir"/*-checked-*.wacrash

# The seeds that `make simulate` tries of each scenario of the samples.
SEEDS ?= 200
FROM ?= 1
simulate: build ## run the samples under faults, SEEDS (200) seeds of each scenario from FROM (1) on
	@failed=; for b in samples/*/bundle.yaml samples/ledger/durable.yaml; do $(BIN) simulate $$b --env OPENING=1000000 --seeds $(SEEDS) --from $(FROM) --shrink --cases bin || failed="$$failed $$b"; done; \
	if [ -n "$$failed" ]; then echo "simulations have failed in:$$failed" >&2; exit 1; fi

crashes: ## crash a system with a store after every change of its disk, flip every byte of it, and have every call fail (a minute)
	@WASMACTORS_THOROUGH=1 $(GO) test -count=1 -v -timeout 60m -run '^TestEvery' ./host/durable

KILLS ?= 100
kills: ## kill the ledger KILLS (100) times under load and in upgrades, and audit it after each (2 s for each)
	@KILLS=$(KILLS) $(GOTEST) -count=1 -v -timeout 0 -run '^TestKilledLedger$$' ./host/bundle

N ?= 100
recordings: ## record N (100) runs of the samples under load, on all workers, and repeat each on one (5 minutes)
	@RECORDINGS=$(N) $(GOTEST) -count=1 -v -timeout 30m -run '^TestRecordingsOfSamples$$' ./host/bundle

planted: ## print in which of 1000 seeds each planted mistake is found (5 minutes)
	@SIMULATE_PLANTED=1000 $(GOTEST) -count=1 -v -timeout 30m -run 'TestPlanted|TestMutantsOfTheHost|TestMistakesOf' ./host/simulate ./host/scenario

# The benchmarks know their peers, the browser's tests a browser: they are no part of the workspace.
IN = cd $$m && export GOWORK=$$(case $$m in bench|$(BROWSER)) echo off;; esac) &&

# The guard and the browser's tests have targets of their own.
TESTED = $(filter-out $(BROWSER),$(MODULES))
PACKAGES = $$($(GO) list ./... | grep -v /bench/guard$$)

# The compiler of the guests that tests build: go, or tinygo where it is installed.
ifdef COMPILER
export WASMACTORS_COMPILER = $(COMPILER)
endif

test: ## run the tests of every module (7 minutes on two cores), also after one that fails; with COMPILER=tinygo their guests are TinyGo's
	@command -v "$${WASMACTORS_COMPILER:-$(GO)}" >/dev/null || { echo "COMPILER=$$WASMACTORS_COMPILER: there is no such command in PATH" >&2; exit 1; }
	@failed=; for m in $(TESTED); do echo "== $$m"; ($(IN) $(GOTEST) $(AT_ONCE) $(PACKAGES)) || failed="$$failed $$m"; done; \
	if [ -n "$$failed" ]; then echo "tests have failed in:$$failed" >&2; exit 1; fi

# What tests leave out usually, or try less of, and CI tries: tests that ask package thorough for Slow. Those named here ask it by
# a function of theirs; the others are found by their text.
SLOW_BY_OTHERS := CostOfAttacks|KilledLedger|RecordingsOfSamples|PowerFailure|BadDisk|KillUnderLoad|Simulation.*|Takeovers|ContractOfThreeKeepers|KeysThatAreKept|TheGuide.*|GuidesLoop
SLOW = $$(git grep -hE '^func |thorough\.(S|Checks)' -- '*_test.go' | awk '/^func /{name = $$2; next} name ~ /^Test/ {sub(/\(.*/, "", name); sub(/^Test/, "", name); print name; name = ""}' | grep -vx Scripts | sort -u | paste -s -d '|' -)

WHERE_SLOW = git grep -lE 'thorough\.(S|Checks)' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,'

slow: slow-processes slow-seeds ## run what takes longer than a person waits for: the guides, nodes that are processes, as many seeds as CI has (10 minutes)

slow-processes: ## the part of slow that is about the command: the guides, and nodes that are processes
	@WASMACTORS_SLOW=1 $(GOTEST) -timeout 20m -run="^Test($(SLOW)|$(SLOW_BY_OTHERS))\$$" ./cmd/wasmactors
	@WASMACTORS_SLOW=1 $(GOTEST) -run='^TestScripts$$/^devnodes$$' ./cmd/wasmactors

slow-seeds: ## the other part: more seeds, larger modules, more attacks
	@WASMACTORS_SLOW=1 $(GOTEST) -timeout 20m -run="^Test($(SLOW)|$(SLOW_BY_OTHERS))\$$" $$($(WHERE_SLOW) | grep -v '^./cmd/')

thorough: ## run in full what the tests otherwise try less of (30 minutes): larger modules, more attacks, installing
	@WASMACTORS_THOROUGH=1 $(GO) test -timeout 60m $$(git grep -l '/internal/thorough"' -- '*_test.go' | xargs -n 1 dirname | sort -u | sed 's,^,./,')

tools: ## try the tools that compile everything anew: installing what is released, the stalling runtime
	@WASMACTORS_THOROUGH=1 $(GO) test ./tools/release ./tools/stalls

# What of host depends on how memory is kept.
MEMORY := Resume|Rewind|Snapshot|Sleep|Asleep|Awake|Wake|Restart|Crash|Grow|Image|Memory|Held|Account|Limit|Spawn

portable: ## run the tests that touch guest memory as on macOS and Windows
	@$(GOTEST) -tags=portable -short ./internal/sandbox ./internal/slots ./internal/wasi & pid=$$!; \
	$(GOTEST) -tags=portable -short -run='$(MEMORY)' ./host && wait $$pid

# One goroutine is all that these have; under the race detector they take minutes.
# Of bundle, sandbox and wal only what is concurrent runs there: the rest loads guests, or writes logs, for minutes.
ALONE := /host/bundle$$|/docs/|/samples/|/internal/(sandbox|cddl|rewrite|estimate|wasmgen|wasm|glob|printable|scaffold|plainjson|linked|wal)$$

# What runs actors, with all that lies below it.
CORE := /wasmactors/(host|host/(internal|durable|cluster)(/.*)?|internal/.*|runtime|supervision)$$

race: race-core race-rest ## run the tests of the host under the race detector; guests have one goroutine

race-core: ## the part of race that runs actors
	@$(GO) list ./... | grep -vE '$(ALONE)' | grep -E '$(CORE)' | xargs $(GOTEST) -race -short
	@$(GOTEST) -race -short -skip='Crash|Flip|Failures' ./internal/wal
	@$(GOTEST) -race -short -run='Batch|Kill|Deadline|Interrupted|Workers|Loads|SameModule|TwoEngines|Room|Callers|Close|GiveUp|Pool|Instances' ./internal/sandbox

race-rest: ## the other part: services, tools of operators, bundles
	@$(GO) list ./... | grep -vE '$(ALONE)' | grep -vE '$(CORE)' | xargs $(GOTEST) -race -short
	@$(GOTEST) -race -short -run='Dev|Feed|Change|HTTP|Metrics' ./host/bundle

check: ## format, vet, staticcheck, layers and cross-builds
	@./.ci/check

# What a part of the run could not measure stands in the tables, and is no reason to lose the rest.
bench: ## run every benchmark (20 minutes), write docs/benchmarks.jsonl, .md and .svg
	@cd bench && GOWORK=off $(GO) build -o ../bin/bench . && { ../bin/bench run -within 18m -o ../bin/benchmarks.jsonl; failed=$$?; cp ../bin/benchmarks.jsonl ../docs/ && ../bin/bench table ../docs/benchmarks.jsonl && exit $$failed; }

bench-quick: ## run a little of every benchmark (4 minutes), of WHO and ONLY match: to see that they work
	@cd bench && GOWORK=off $(GO) build -o ../bin/bench . && ../bin/bench run -quick -who '$(WHO)' -only '$(ONLY)' -o ../bin/quick.jsonl && ../bin/bench table -docs - ../bin/quick.jsonl >/dev/null && ../bin/bench gateway -quick -who '^(net/http|gateway-)'

arm64: ## repeat on an emulated arm64 what amd64 has written, and the reverse (20 minutes; installs qemu-user-static)
	@./.ci/arm64

browser: ## test the dashboard and the chat in Chromium, if there is one (.ci/browser installs it)
	@cd $(BROWSER) && GOWORK=off $(GO) test -count=1 -v .

pictures: ## make the pictures of the dashboard for the docs again
	@cd $(BROWSER) && GOWORK=off $(GO) test -count=1 -v -trimpath -run TestPictures -pictures .

guard: ## count instructions and allocations a message, against bench/guard/limits.json
	@cd bench && GOWORK=off $(GO) test -count=1 -timeout 20m -v -run 'TestCostOfAMessage$(ROWS)|Test[^C]' ./guard

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@./.ci/fuzz $(FUZZTIME)

SEED ?= 1
mutants: ## break the rules in small ways and report what no test notices (15 minutes); SEED draws the sample of host
	-@$(GO) run ./tools/mutants ./supervision ./supervision/backoff ./host/internal/...
	-@$(GO) run ./tools/mutants -sample 300 -seed $(SEED) -longest 1500ms -short ./host

SEEDS ?= 100000
FIRST ?= 1
cluster-sim: ## simulate clusters whose nodes, links and directory fail, SEEDS times from seed FIRST (4 ms each)
	@$(GO) test -count=1 -timeout 0 -run TestSimulation -v ./host/cluster/clustertest -seeds $(SEEDS) -first $(FIRST)

shard-sim: ## simulate keys that move between nodes that fail, SEEDS times from seed FIRST (60 ms each)
	@$(GO) test -count=1 -timeout 0 -run '^TestSimulation(OfBundles)?$$' -v ./host/cluster/shard -seeds $(SEEDS) -first $(FIRST)

journal-sim: ## simulate keys that keep events while nodes and the journal fail, SEEDS times from seed FIRST (0.2 s each)
	@$(GO) test -count=1 -timeout 0 -run 'TestSimulation|TestTakeovers' -v ./host/cluster/journal -seeds $(SEEDS) -first $(FIRST)

FAULTS ?= 100
cluster-faults: ## kill, stop, part and heal real nodes FAULTS times from seed FIRST (12 s each), and check what the keys have answered
	@WASMACTORS_THOROUGH=1 $(GO) test -count=1 -timeout $$(($(FAULTS) * 40 + 300))s -run TestFaults -v ./cmd/wasmactors -faults $(FAULTS) -faults-seed $(or $(FIRST),1)

# The last release whose kinds have one table for all bundles, and the last one that has landed.
RELEASES ?= 0c9f9e64 d3a5097d
cluster-release: ## replace the nodes of each of RELEASES by those of this tree under load, and look for what is lost (10 minutes; builds them)
	@WASMACTORS_RELEASES="$(RELEASES)" $(GO) test -count=1 -timeout 20m -run TestARollFromARelease -v ./cmd/wasmactors

# Nothing waits there.
PATIENT := /internal/(cddl|rewrite|estimate|wasmgen|wasm|glob|printable|scaffold|plainjson)$$
stalls: ## run the tests on a runtime that stalls goroutines (10 minutes); STALLS='-race -short -rounds 3' for more
	@$(GO) list ./... ./abi/... ./guest-sdk/... | grep -vE '$(PATIENT)' | xargs $(GO) run ./tools/stalls $(STALLS)

fmt: ## format every Go file
	@gofmt -l -w $$(git ls-files '*.go')

generate: ## make every generated file again
	@set -e; for m in $(MODULES); do ($(IN) $(GO) generate ./...); done

tidy: ## bring go.mod and go.sum up to date; the modules of the repository need not be released for it
	@set -e; for m in . guest-sdk; do cd $(CURDIR)/$$m; sdk=github.com/wasmactors/wasmactors; \
		$(GO) mod edit -replace $$sdk/abi=$(CURDIR)/abi -replace $$sdk/guest-sdk=$(CURDIR)/guest-sdk; \
		GOWORK=off $(GO) mod tidy; $(GO) mod edit -dropreplace $$sdk/abi -dropreplace $$sdk/guest-sdk; done

clean: ## remove what the build made
	@rm -rf bin
