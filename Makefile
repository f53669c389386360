# ttmon: `make run` shows the boards of this machine, or a simulated host;
# `make test` is what a commit needs, `make test-all` everything that CI checks.
# `make help` lists the rest.

GO      ?= go
PREFIX  ?= /usr/local
DESTDIR ?=
BIN     ?= bin
SHARE    = $(DESTDIR)$(PREFIX)/share
T       ?= 1m
LDFLAGS = $(shell tools/version -x)
BOARDS  ?= n300,p150a,p150a
DEMO_BOARDS ?= n300

# tools/setup puts programs there that the machine does not have.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/ttmon
# Under sudo, those of the user who called it serve as well.
SUDO_CACHE := $(if $(SUDO_USER),$(shell getent passwd '$(SUDO_USER)' | cut -d: -f6)/.cache/ttmon)
export PATH := $(CACHE)/bin:$(if $(SUDO_CACHE),$(SUDO_CACHE)/bin:)$(PATH)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## build ttmon, ttmond, ttmon-server and ttmon-sim into bin/
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: lib
lib: ## rebuild libttmon.so for both architectures, after a change below lib/
	tools/libttmon

.PHONY: web
web: ## rebuild the page's bundle after a change below web/ (needs npm)
	cd web && npm ci --silent
	$(GO) run -C tools/web .

.PHONY: web-check
web-check: ## check the types of the page, and that its bundle is made from its sources (needs npm)
	cd web && npm ci --silent && npx --no-install tsc -p .
	$(GO) run -C tools/web . check

.PHONY: test-web
test-web: web-check ## the page in a browser: all views, widths and colours, axe-core, the real ttnn (minutes; needs npm)
	@tools/setup all
	$(GO) test -tags web -timeout 30m -v ./internal/lab/e2e/web

.PHONY: run
run: ## show this machine's boards; where there are none, start a simulated host
	@tools/setup run
	@$(MAKE) --no-print-directory build
	@BOARDS='$(BOARDS)' tools/run

.PHONY: demo
demo: ## the real ttnn on simulated boards, next to ttmon (installs ttnn into ~/.cache/ttmon)
	@tools/setup demo
	@$(MAKE) --no-print-directory build
	@BOARDS='$(DEMO_BOARDS)' tools/demo/run

# Tests have a /tmp of their own; what builds them does not need the machine's,
# which may be full. Many packages wait more than they work, so more of them run
# at a time than there are cores; skipped ones are named at the end. Lint has vetted
# them already. -trimpath lets every clone of the tree use the same build cache. With
# RERUN=1 up to six failed tests are run once more and named as flaky.
GOTESTSUM = $(GO) tool -modfile=tools/lint/go.mod gotestsum --format pkgname
FLAKY = $(CACHE)/tmp/flaky.txt
RERUN_FLAGS = $(if $(RERUN),--rerun-fails=1 --rerun-fails-max-failures=6 --rerun-fails-run-root-test --rerun-fails-abort-on-data-race --rerun-fails-report=$(FLAKY) --packages=./...)
GO_TEST = @rm -f $(FLAKY); tools/unchanged $(GOTESTSUM) $(RERUN_FLAGS) $(1) -- -vet=off -trimpath -p $$((2 * $$(nproc))) -timeout 60m $(2) $(if $(RERUN),,./...); \
  code=$$?; if [ -s $(FLAKY) ]; then echo "flaky: these tests failed once and passed when run again:"; cat $(FLAKY); fi; exit $$code

.PHONY: test
test: export TMPDIR := $(CACHE)/tmp
test: ## what a commit needs: lint, and all tests that are quick (5 minutes on two cores)
	@tools/setup test
	@$(MAKE) --no-print-directory build lint
	$(call GO_TEST,--hide-summary=skipped,-short)

.PHONY: test-all
test-all: export TMPDIR := $(CACHE)/tmp
test-all: ## all tests, with the race detector, every release of ttnn, the whole page, arm64 (20 minutes on two cores)
	@tools/setup all
	@$(MAKE) --no-print-directory build lint
	tools/bpf/check
	$(call GO_TEST,,-race)
	@$(MAKE) --no-print-directory arm64

# The packages whose tests are run for arm64 need no process but their own:
# the emulator runs programs, not hosts.
ARM64_TESTS = ./internal/board ./internal/hostfs ./internal/field/metric ./internal/model ./internal/field/words ./internal/field/wire
.PHONY: arm64
arm64: ## compile everything for arm64, tests too, and run some of them where qemu-user is
	CGO_ENABLED=0 GOARCH=arm64 $(GO) build -trimpath ./...
	CGO_ENABLED=0 GOARCH=arm64 $(GO) vet -trimpath ./...
	@if command -v qemu-aarch64-static >/dev/null; then set -x; \
	  CGO_ENABLED=0 GOARCH=arm64 $(GO) test -vet=off -trimpath -exec qemu-aarch64-static -skip TestExitDoesNotWait $(ARM64_TESTS); \
	else echo "qemu-aarch64-static is not installed: nothing is run for arm64"; fi

.PHONY: fresh
fresh: ## do what README says on a bare Debian 12 and a bare Ubuntu 24.04, as root and as a user, under load too (root, hours)
	@$(MAKE) --no-print-directory release
	@tools/fresh all

.PHONY: test-thanos
test-thanos: ## ttmon fleet and remote write with a real Thanos (builds it once: minutes)
	@tools/setup all
	$(GO) test -tags thanos -timeout 3h -v ./internal/lab/e2e/thanos

# Where no function may have a cognitive complexity above 20.
SIMPLE = cmd $(addprefix internal/,base/exit base/when book/callsite cli/console cli/doctor cli/host cli/mem cli/plot cli/repeat cli/replay \
  cli/run cli/selection cli/session cli/stale model/apitype node past/fleet/query)

.PHONY: lint
lint: export CGO_ENABLED := 0
lint: ## gofumpt, vet, staticcheck and gocognit
	@out=$$($(GO) tool -modfile=tools/lint/go.mod gofumpt -l cmd internal lib tools); \
	  if [ -n "$$out" ]; then echo "not formatted (run gofumpt -w):"; echo "$$out"; exit 1; fi
	$(GO) vet -trimpath ./...
	GOFLAGS="$$($(GO) env GOFLAGS) -trimpath" $(GO) tool -modfile=tools/lint/go.mod staticcheck ./...
	$(GO) tool -modfile=tools/lint/go.mod gocognit -over 20 -ignore '_test' $(SIMPLE)

.PHONY: fmt
fmt: ## format all Go code
	$(GO) tool -modfile=tools/lint/go.mod gofumpt -w cmd internal lib tools

.PHONY: fuzz
fuzz: ## run every fuzz test for T each (make fuzz T=10m)
	@tools/fuzz $(T)

.PHONY: soak
soak: ## attack a ttmond at random for T (make soak T=10m)
	@tools/setup all
	TTMOND_SOAK=$(T) $(GO) test ./cmd/ttmond -run 'TestSoak' -count=1 -v -timeout 0

# In its own directory go test prints what a test prints.
.PHONY: truth
truth: export TMPDIR := $(CACHE)/tmp
truth: ## hold every figure against the truth, with the real ttnn; COMPOSE=200 on so many random hosts, from SEED on
	@tools/setup truth
ifdef COMPOSE
	@cd internal/lab/e2e/truth && $(GO) test -count=1 -timeout 2h -run TestCompose -args -compose $(COMPOSE) $(if $(SEED),-compose.from $(SEED))
else
	@cd internal/lab/e2e/truth && $(GO) test -count=1 -timeout 40m -args -all
	@TTMON_TEST_ALL=1 $(GO) test -count=1 -timeout 40m ./internal/lab/e2e -run 'TestFailureIsSeen|TestFatalFailure'
endif

.PHONY: bench
bench: ## measure what the docs quote, next to floors and peers; ONLY=Takeover measures only that
	@tools/setup all
	@$(GO) test -timeout 2h -run '^$$' -bench '$(or $(ONLY),.)' ./internal/lab/e2e/bench
	@$(GO) test -timeout 2h -run '^$$' -bench '$(or $(ONLY),Hits|Pace)' ./internal/source/uprobe

# Every package with golden files imports internal/lab/golden, or clidocs, which does.
GOLDEN = $$($(GO) list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | grep -E ' .*/internal/lab/(golden|clidocs)' | cut -d ' ' -f 1 | grep -v -E '/(golden|clidocs)$$')
.PHONY: update
update: ## write all generated and golden files again: docs, manuals, deps.txt, dashboards, rules, screens. Then read git diff
	$(GO) test -short -vet=off -trimpath $$(echo "$(GOLDEN)" | grep -v -E '/cmd/ttmon(d|-server)$$') -update
	$(GO) test -vet=off -trimpath ./cmd/ttmond ./cmd/ttmon-server -run 'TestManual|TestCompletionFiles' -update

.PHONY: film
film: ## record the animation of the README again, from a terminal on a simulated host (needs tmux and FUSE)
	@tools/setup demo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "$$(VERSION=0.1.0 tools/version -x)" -o bin/film/ ./cmd/...
	$(GO) run -trimpath ./tools/picture -film tools/picture/first-look.film -bin bin/film -o docs/pictures/first-look.svg

.PHONY: install
install: ## install below PREFIX; ALIASES=1 also as tt-smi, tt-nvtop and the programs of the prototype
	@tools/setup build
	@$(MAKE) --no-print-directory build
	@$(MAKE) --no-print-directory install-built

# The names of other programs that ttmon answers to: each has a page.
ALIAS_NAMES = $(basename $(notdir $(wildcard docs/man/aliases/*.1)))

# The second half, for programs that are in BIN already.
.PHONY: install-built
install-built:
	install -Dm755 $(BIN)/ttmon $(DESTDIR)$(PREFIX)/bin/ttmon
	install -Dm755 $(BIN)/ttmon-sim $(DESTDIR)$(PREFIX)/bin/ttmon-sim
	install -Dm755 $(BIN)/ttmond $(DESTDIR)$(PREFIX)/bin/ttmond
	install -Dm755 $(BIN)/ttmon-server $(DESTDIR)$(PREFIX)/bin/ttmon-server
	install -Dm755 internal/cli/preload/libttmon-$(shell $(GO) env GOARCH).so $(DESTDIR)$(PREFIX)/lib/libttmon.so.1
	ln -sf libttmon.so.1 $(DESTDIR)$(PREFIX)/lib/libttmon.so
	install -Dm644 -t $(DESTDIR)$(PREFIX)/include lib/include/ttmon.h lib/include/ttmon.hpp lib/include/ttmon_ledger.h
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -d $(SHARE)/man/man8
	install -m644 docs/man/*.1 $(SHARE)/man/man1
	install -m644 docs/man/*.8 $(SHARE)/man/man8
	install -m644 packaging/completion/ttmond.bash $(SHARE)/bash-completion/completions/ttmond
	install -m644 packaging/completion/_ttmond $(SHARE)/zsh/site-functions/_ttmond
	install -m644 packaging/completion/ttmond.fish $(SHARE)/fish/vendor_completions.d/ttmond.fish
	for p in ttmon ttmon-sim ttmon-server; do \
	  $(BIN)/$$p completion bash >$(SHARE)/bash-completion/completions/$$p && \
	  $(BIN)/$$p completion zsh >$(SHARE)/zsh/site-functions/_$$p && \
	  $(BIN)/$$p completion fish >$(SHARE)/fish/vendor_completions.d/$$p.fish || exit 1; done
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	for u in packaging/systemd/*; do \
	  sed 's#/usr/bin/#$(PREFIX)/bin/#' $$u >$(DESTDIR)$(PREFIX)/lib/systemd/system/$${u##*/}; done
	install -d $(SHARE)/ttmon/grafana $(SHARE)/ttmon/prometheus $(SHARE)/ttmon/slurm $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -m644 packaging/grafana/*.json $(SHARE)/ttmon/grafana
	install -m644 packaging/prometheus/ttmon.rules.yml packaging/prometheus/ttmon.sums.yml $(SHARE)/ttmon/prometheus
	install -m755 packaging/slurm/*.sh $(SHARE)/ttmon/slurm
	HOME=/nonexistent $(BIN)/ttmond --check-config --config /dev/null | sed -E 's/^([a-z_]+ = )/#\1/' >$(SHARE)/ttmon/ttmond.toml
	HOME=/nonexistent $(BIN)/ttmon-server --system --check-config --config /dev/null | sed -E 's/^([a-z_]+ = )/#\1/' >$(SHARE)/ttmon/ttmon-server.toml
	printf '%s\n' 'Name: ttmon' 'Description: account of a program'"'"'s Tenstorrent device memory' "Version: $$(tools/version)" \
	  'Libs: -L$(PREFIX)/lib -lttmon' 'Cflags: -I$(PREFIX)/include' >$(DESTDIR)$(PREFIX)/lib/pkgconfig/ttmon.pc
	install -Dm644 packaging/sysusers/ttmon-server.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/ttmon-server.conf
	if [ "$(ALIASES)" = 1 ]; then \
	  install -m644 docs/man/aliases/*.1 $(SHARE)/man/man1; \
	  for a in $(ALIAS_NAMES); do ln -sf ttmon $(DESTDIR)$(PREFIX)/bin/$$a; \
	    [ $$a != allocation_server_poc ] || continue; \
	    $(BIN)/ttmon completion bash --alias $$a >$(SHARE)/bash-completion/completions/$$a && \
	    $(BIN)/ttmon completion zsh --alias $$a >$(SHARE)/zsh/site-functions/_$$a && \
	    $(BIN)/ttmon completion fish --alias $$a >$(SHARE)/fish/vendor_completions.d/$$a.fish || exit 1; done; fi

.PHONY: uninstall
uninstall: ## remove what make install put below PREFIX; configuration and history stay
	for p in ttmon ttmon-sim ttmond ttmon-server; do \
	  rm -f $(DESTDIR)$(PREFIX)/bin/$$p $(SHARE)/man/man[18]/$$p.[18] $(SHARE)/man/man[18]/$$p-*.[18] \
	    $(SHARE)/bash-completion/completions/$$p $(SHARE)/zsh/site-functions/_$$p $(SHARE)/fish/vendor_completions.d/$$p.fish; done
	for a in $(ALIAS_NAMES); do if [ "$$(readlink $(DESTDIR)$(PREFIX)/bin/$$a)" = ttmon ]; then \
	  rm -f $(DESTDIR)$(PREFIX)/bin/$$a $(SHARE)/man/man1/$$a.1 $(SHARE)/bash-completion/completions/$$a \
	    $(SHARE)/zsh/site-functions/_$$a $(SHARE)/fish/vendor_completions.d/$$a.fish; fi; done
	rm -f $(DESTDIR)$(PREFIX)/lib/libttmon.so $(DESTDIR)$(PREFIX)/lib/libttmon.so.1 $(DESTDIR)$(PREFIX)/lib/pkgconfig/ttmon.pc
	cd lib/include && for f in *; do rm -f $(DESTDIR)$(PREFIX)/include/$$f; done
	cd packaging/systemd && for u in *; do rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/$$u; done
	rm -f $(DESTDIR)$(PREFIX)/lib/sysusers.d/ttmon-server.conf
	rm -rf $(SHARE)/ttmon

.PHONY: package
package: ## .deb and .rpm packages and wheels for both architectures, into dist/
	@tools/setup build
	@tools/package/build packages

.PHONY: release
release: ## packages, archives, SBOMs and checksums, into dist/
	@tools/setup release
	@tools/package/build release

.PHONY: image
image: ## the container image as an OCI archive, into dist/
	@tools/setup build
	@tools/package/build image

.PHONY: test-package
test-package: ## install, upgrade under load and purge on a bare Debian 12 with systemd (root, debootstrap, lintian, rpm; minutes)
	@tools/setup release
	cd tools/package && $(GO) test ./...
	$(GO) test -tags packages -count=1 -timeout 90m -v ./internal/lab/e2e/packages

.PHONY: test-container
test-container: ## the image under podman, next to a simulated host (root, podman, runc)
	@for p in podman runc; do command -v $$p >/dev/null || { echo "test-container: $$p is not installed: nothing was tested"; exit 1; }; done
	$(GO) test -tags container -count=1 -timeout 20m -v ./internal/lab/e2e/image

.PHONY: test-kube
test-kube: ## Kubernetes: our objects and our client against its own modules
	cd internal/lab/e2e/kube && GOFLAGS=-mod=mod $(GO) test ./... # its go.mod follows ours

.PHONY: test-grafana
test-grafana: ## the dashboards against the types that Grafana publishes (needs npm)
	tools/grafana/check

.PHONY: test-slurm
test-slurm: ## jobs, prolog and epilog with a real Slurm on a simulated node (root, debootstrap; minutes)
	$(GO) test -tags slurm -count=1 -timeout 40m -v ./internal/lab/e2e/slurm

.PHONY: lab
lab: build ## the real driver on emulated chips in QEMU: KO=tenstorrent.ko KERNEL=vmlinuz that it was built for (minutes)
	@test -n "$(KO)" -a -n "$(KERNEL)" || { echo "usage: make lab KO=/path/to/tenstorrent.ko KERNEL=/boot/vmlinuz-…" >&2; exit 2; }
	cd lab && CGO_ENABLED=0 LAB_BIN=$(abspath bin) LAB_KO=$(abspath $(KO)) LAB_KERNEL=$(abspath $(KERNEL)) $(GO) test -count=1 -timeout 45m -v .

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist
