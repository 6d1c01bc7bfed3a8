# Two commands matter: `make demo` and `make test`. Both need Go and nothing else.

GO      ?= go
BIN     := bin/wasmactors
# The modules that have tests; the other guests are built by the product's.
MODULES := . abi guest-sdk samples/ledger/guest samples/flaky/guest
FUZZTIME ?= 30s

.PHONY: demo test portable check bench fuzz build race fmt generate tidy clean help

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the command into bin/
	@$(GO) build -trimpath -o $(BIN) ./cmd/wasmactors

demo: build ## run the ledger sample on thousands of transactions and check its books
	@./samples/ledger/demo.sh $(BIN)

test: ## run the tests of every module
	@set -e; for m in $(MODULES); do echo "== $$m"; (cd $$m && $(GO) test ./...); done

portable: ## run the tests that touch guest memory as on macOS and Windows
	@$(GO) test -tags portable -short ./internal/... ./host/... ./cmd/...

race: ## run the tests of every module under the race detector
	@set -e; for m in $(MODULES); do echo "== $$m"; (cd $$m && $(GO) test -race -short ./...); done

check: ## format, vet, staticcheck, layers and cross-builds
	@./.ci/check

bench: ## print the benchmark figures, one JSON object a line
	@$(GO) run ./bench

fuzz: ## run every fuzz target for FUZZTIME (30s)
	@./.ci/fuzz $(FUZZTIME)

fmt: ## format every Go file
	@gofmt -l -w $$(git ls-files '*.go')

generate: ## make every generated file again
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) generate ./...); done

tidy: ## bring go.mod and go.sum up to date; the modules of the repository need not be released for it
	@set -e; for m in . guest-sdk; do cd $(CURDIR)/$$m; sdk=github.com/wasmactors/wasmactors; \
		$(GO) mod edit -replace $$sdk/abi=$(CURDIR)/abi -replace $$sdk/guest-sdk=$(CURDIR)/guest-sdk; \
		GOWORK=off $(GO) mod tidy; $(GO) mod edit -dropreplace $$sdk/abi -dropreplace $$sdk/guest-sdk; done

clean: ## remove what the build made
	@rm -rf bin
