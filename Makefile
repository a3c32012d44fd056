# Lacuna. `make help` lists the targets; `make run` and `make test` need
# nothing but Go, gcc, Python and, for what is missing, apt.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test race fleet decoder build install deb image wheel sbom release vulns vulndb models lint checks vet formatted fmt bench cuts chaos soak trial fuzz fuzzers tryfuzz pytest clean system python onnxruntime openvino parts vulnfiles

CACHE := $(CURDIR)/.cache
VENV := $(CACHE)/venv
ORT_DIR := $(CACHE)/onnxruntime
# Newer versions of the linter do not install: a dependency of theirs is refused.
GOLANGCI_VERSION := v2.14.0
GOLANGCI := $(CACHE)/bin/golangci-lint-$(GOLANGCI_VERSION)

export LACUNA_PYTHON ?= $(VENV)/bin/python
export LACUNA_AXE ?= $(CACHE)/axe
export LACUNA_TEST_OPENVINO ?= $(CACHE)/openvino/libonnxruntime.so
# A libonnxruntime named by the environment wins over the one in the cache.
ifeq ($(origin LACUNA_ONNXRUNTIME),undefined)
export LACUNA_ONNXRUNTIME := $(ORT_DIR)/libonnxruntime.so
OWN_ORT := yes
endif
# The number of the version is in daemon/version/version.go. A build of its tag is the
# release; any other names its commit. Without git both are empty.
TAG := $(shell git describe --exact-match --tags --match 'v[0-9]*' --dirty 2>/dev/null)
COMMIT := $(shell git describe --always --exclude '*' --abbrev=7 --dirty=.dirty 2>/dev/null)
# The compiler spends a sixth of its time on collecting its garbage, which it need not:
# with this it takes up to 1 GB for a package in place of 0.75. What is compiled is the
# same, and is found again by a go command without it.
TOOLS := -toolexec 'env GOGC=400'
LDFLAGS := -X lacuna/daemon/version.buildTag=$(TAG) -X lacuna/daemon/version.buildCommit=$(COMMIT)

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: build onnxruntime ## the daemon on a simulated live feed; state in var/, stop with Ctrl-C
	@exec ./bin/lacuna run --config ops/demo/lacuna.yaml --log console

build: decoder ## the program, bin/lacuna
	@go build $(TOOLS) $(BUILDFLAGS) -tags decoder -ldflags '$(LDFLAGS)' -o bin/lacuna ./daemon/cmd/lacuna

# The part that decodes granules, a process for each: the program carries it, and under
# make test it decodes for the tests. go build gives a program that has not changed a
# new date, and then every test that decodes would be run again: so it is copied, where
# it has changed. Folders have dates too, and tests that load a library look at all of
# those above it: none of them may get a file while, or after, tests are run.
DECODER := daemon/cmd/lacuna/decoder
decoder: system
	@mkdir -p bin $(CACHE)/build
	@go build $(TOOLS) $(BUILDFLAGS) -ldflags '-s -w' -o $(CACHE)/build/decoder ./pipeline/ingest/cmd/decoder
	@cmp -s $(CACHE)/build/decoder $(DECODER) || cp -f $(CACHE)/build/decoder $(DECODER)

# What is handed on does not depend on the folder that it was built in. For what
# stays here the paths are kept: so go test compiles nothing a second time.
deb image wheel: export BUILDFLAGS := -trimpath

# What the tests need is fetched beside the checks: the one waits for the network,
# the other computes. The linter runs every check of go vet, on tests too, so
# no part of go vet is run again in go test. OWN_ORT is
# handed on: the make below finds the library's name in its environment, as if a
# person had given it.
test: export LACUNA_TEST_DECODER := $(CURDIR)/$(DECODER)
# The processors are shared by several tests at a time. A second thread of ONNX Runtime
# waits in a loop for the first, in the time of the others.
test: export OMP_NUM_THREADS := 1
test: decoder ## every test, formatting, and lint where make lint has installed the linter, else go vet
	@$(MAKE) --no-print-directory OWN_ORT=$(OWN_ORT) python onnxruntime parts vulnfiles & \
	  status=0; $(MAKE) --no-print-directory checks || status=$$?; wait $$! || exit; exit $$status
	@go test $(TESTFLAGS) $(LONGEST) ./...
	@$(MAKE) --no-print-directory OWN_ORT=$(OWN_ORT) pytest & \
	  status=0; $(MAKE) --no-print-directory OWN_ORT=$(OWN_ORT) race tryfuzz FUZZTIME=10000x || status=$$?; wait $$! || exit; exit $$status

# make runs a line that names it even when it is only to print (make -n): so what takes
# long stands in targets of its own.
race:
	@GORACE=atexit_sleep_ms=20 go test $(TESTFLAGS) -race $(UNRACED) -short -run '$(SHARED)' $(ARITHMETIC:%=./%)
	@GORACE=atexit_sleep_ms=20 go test $(TESTFLAGS) -race $(UNRACED) $(UNRACEDBELOW) -short $$($(CONCURRENT) | grep -vxF $(ARITHMETIC:%=-e lacuna/%))

# A test waits half of its time, for a process, a broker or a moment: with twice
# as many packages as processors none of those is idle. go test begins with what
# is named first; those that wait or take longest would end alone otherwise.
TESTFLAGS := $(TOOLS) -vet=off -timeout 50m -p $(shell echo $$((2 * $$(nproc))))
LONGEST := ./publish/kafka/consumer ./pipeline/version ./daemon ./daemon/cmd/lacuna ./daemon/fleet ./daemon/... ./pipeline/lab/...

# The race detector sees what happens at the same time, in a package and in all
# that it calls. So it runs where code or tests start a goroutine, or have a
# channel, a lock or an atomic; where there is none it would repeat arithmetic,
# many times as slowly. Not with the tests of the program and of measurements,
# which start a process for every granule, nor with trainings as a whole, which
# are long: the packages that they call are tested here. A test process that has
# ended need not wait a second for a race, as the detector otherwise does.
CONCURRENT = go list -f '{{.ImportPath}} {{.Dir}}' ./... | grep -vE '/cmd/lacuna |/cli/measure |/pipeline/version |/lab/' | while read -r name dir; do \
	  if grep -qsE '^\s*(defer )?go (func|[A-Za-z_.]+)\(|\bchan\b|"sync"|"sync/atomic"|/errgroup"|\.Parallel\(\)' "$$dir"/*.go; then echo "$$name"; fi; done
# SQLite is C that was translated into Go: watched at every access it takes many
# times as long, and its own accesses are not ours to judge. Locks, and what we
# hand it and take from it, are watched as ever.
UNRACED := -gcflags='modernc.org/...=-race=false'
# The arithmetic of optimal interpolation and of simulated seas is watched in those of
# their own tests in which several goroutines share it, which have one of these words in
# their names; elsewhere it would take ten times as long and find nothing new.
ARITHMETIC := pipeline/classical pipeline/simulate
SHARED := Workers|Cancelled|FillAll|InParallel
# No package that uses sync.Map or another generic type of sync may be here: the linker
# would take its copy of that type, and the detector would see races where there are none.
UNRACEDBELOW := -gcflags='lacuna/pipeline/classical=-race=false' -gcflags='lacuna/pipeline/noise=-race=false'

pytest: build python onnxruntime ## the tests of the Python package
	@cd python && PYTHONPATH=. $(LACUNA_PYTHON) -m pytest -q -p no:cacheprovider

# A number of inputs (10000x) is exact; with a time (60s) a program now and then reports
# its own deadline as a failure. The folder of programs runs on a machine without Go too.
FUZZTIME ?= 1000000x
FUZZERS := $(CURDIR)/bin/fuzzers
fuzz: fuzzers ## fuzz every target with FUZZTIME inputs (1000000x), or for a time (60s)
	@SOURCES=$(CURDIR) $(FUZZERS)/run.sh $(FUZZTIME) $$(nproc)

fuzzers: system ## the fuzz targets as programs in bin/fuzzers, to be run elsewhere: run.sh TIME PARALLEL [TARGET...]
	@ops/setup/fuzzers.sh $(FUZZERS)

# Inputs that follow the code which they reach need a third build of everything, in
# which that is counted, and a program for each target. A few thousand inputs reach
# little by it: make test makes them from the seeds alone, with the programs of its tests.
tryfuzz: system
	@programs=$$(mktemp -d); trap 'rm -rf "$$programs"' EXIT; \
	  dirs=$$(grep -rlE --include='*_test.go' '^func Fuzz' daemon fetch internal ledger modelstore ops pipeline publish | xargs -r -n1 dirname | sort -u); \
	  go test $(TOOLS) -vet=off -ldflags '-s -w' -c -o "$$programs/" $$(printf './%s ' $$dirs); \
	  for dir in $$dirs; do for target in $$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$$dir"/*_test.go | cut -c6-); do \
	    echo "fuzz $$dir $$target"; \
	    (cd "$$dir" && "$$programs/$${dir##*/}.test" -test.run '^$$' -test.fuzz "^$$target$$" -test.fuzztime $(FUZZTIME) -test.fuzzminimizetime 10x -test.fuzzcachedir "$$programs/cache/$$dir") \
	      >"$$programs/said" 2>&1 || { cat "$$programs/said"; exit 1; }; \
	  done; done

# A number of cuts of the power, the service started again after RESTARTS of them,
# and the planted bugs built into the program. A thousand restarts take half an
# hour and more.
CUTS ?= 1000
RESTARTS ?= $(CUTS)
SEED ?= 0
cuts: system ## cut the power of a service CUTS times (1000) as SEED (0) says, and catch planted bugs
	@LACUNA_CUTS=$(CUTS) LACUNA_RESTARTS=$(RESTARTS) LACUNA_SEED=$(SEED) go test -vet=off -timeout 6h -v -count 1 ./internal/powercut ./daemon/cuts

# A whole service against what goes wrong around it, for MINUTES or a number of
# EVENTS; without a SEED one is made up and printed. A part of the names of nemeses as
# ONLY tries those alone.
MINUTES ?= $(if $(EVENTS),0,20)
chaos: system onnxruntime parts ## set nemeses on a service with a real broker for MINUTES (20), or EVENTS, as SEED says
	@LACUNA_CHAOS_MINUTES=$(MINUTES) LACUNA_CHAOS_EVENTS=$(or $(EVENTS),0) LACUNA_CHAOS_ONLY='$(ONLY)' $(if $(filter command line,$(origin SEED)),LACUNA_SEED=$(SEED)) go test -vet=off -timeout 24h -v -count 1 -run 'Chaos$$|Checker' ./daemon/chaos

WALKS ?= student operator modeller
trial: wheel parts ## three people try it, each on a bare Debian (root only): WALKS; PAGE=docs/trial.md writes down what they saw
	@PAGE='$(PAGE)' ops/trial/trial.sh bin/lacuna-*.whl $(CACHE)/kafka $(WALKS)

HOURS ?= 2
soak: system onnxruntime parts ## a granule a second for HOURS (2): what a service holds on to stays flat; picture in bin/soak.svg
	@mkdir -p bin && LACUNA_SOAK_HOURS=$(HOURS) LACUNA_SOAK_PLOT=$(CURDIR)/bin/soak.svg go test -vet=off -timeout 48h -v -count 1 -run 'Soak|Curve' ./daemon/chaos

bench: system python onnxruntime parts ## benchmarks, with xarray timed in the same run, and how far the machine is from its limits
	@ops/setup/python.sh $(VENV) ops/setup/requirements-bench.txt
	@go test -run '^$$' -bench . -benchtime 3x -timeout 120m ./...
	@go run ./daemon/cmd/lacuna lab roofline

fleet: system onnxruntime ## measure workers on a real broker, for half an hour: speed, queue, stalls, EVENTS (500) kills; docs/scaling.md
	LACUNA_LONG=1 go test ./daemon/workers -count=1 -v -timeout 2h -run 'Scale|Queued|Stall'
	LACUNA_LONG=1 LACUNA_FLEET_EVENTS=$(or $(EVENTS),500) go test ./daemon/fleet -count=1 -v -timeout 4h -run 'KilledFleet|KilledTraining|TwoWorkersKeepUp|WorkersMakeTheBytes'

models: build onnxruntime ## train the starter models from ../shared/data
	@ops/setup/models.sh bin/lacuna ../shared/data modelstore/starters/versions

deb: sbom ## a Debian package in bin/, with libonnxruntime
	@ops/setup/deb.sh bin/lacuna $(LACUNA_ONNXRUNTIME) bin/lacuna.licences.txt bin

wheel: sbom ## the Python package with the program and its libraries in bin/, for machines that have Python only
	@ops/setup/python.sh $(VENV) ops/setup/requirements-wheel.txt
	@ops/setup/wheel.sh $(VENV) bin/lacuna $(LACUNA_ONNXRUNTIME) bin/lacuna.licences.txt bin

install: build ## the program, units, manual page and configuration below DESTDIR
	@install -D -m 755 bin/lacuna $(DESTDIR)/usr/bin/lacuna
	@install -D -m 644 -t $(DESTDIR)/usr/lib/systemd/system systemd/lacuna.service systemd/lacuna-once.service systemd/lacuna-once.timer systemd/lacuna-worker@.service
	@install -D -m 644 systemd/lacuna.tmpfiles $(DESTDIR)/usr/lib/tmpfiles.d/lacuna.conf
	@install -d -m 755 $(DESTDIR)/usr/share/man/man1 && bin/lacuna man | gzip -9n >$(DESTDIR)/usr/share/man/man1/lacuna.1.gz
	@[ -e $(DESTDIR)/etc/lacuna/lacuna.yaml ] || install -D -m 644 systemd/lacuna.yaml $(DESTDIR)/etc/lacuna/lacuna.yaml

image: sbom ## an OCI image in bin/, which docker, podman and skopeo load
	@ops/setup/packages.sh "ca-certificates=test -s /etc/ssl/certs/ca-certificates.crt"
	@go run ./ops/image/cmd/image --version "$$(bin/lacuna version | awk '{print $$2}')" --onnxruntime $(LACUNA_ONNXRUNTIME) \
	  --revision "$$(git rev-parse HEAD 2>/dev/null)" --created "$$(git log -1 --format=%ct 2>/dev/null || echo 0)" bin/lacuna

sbom: build onnxruntime ## the bill of materials of bin/lacuna, CycloneDX in JSON, and the texts of all licences, beside it
	@go run ./ops/supply/cmd/supply sbom --version "$$(bin/lacuna version | awk '{print $$2}')" --onnxruntime $(LACUNA_ONNXRUNTIME) \
	  --out bin/lacuna.cdx.json --texts bin/lacuna.licences.txt bin/lacuna

release: ## test, build the release into bin/release/ and tag it; needs a clean tree and its section in CHANGELOG.md
	@ops/setup/release.sh

vulns: build vulnfiles ## known vulnerabilities and retracted versions of what bin/lacuna links
	@go run ./ops/supply/cmd/supply vulns bin/lacuna

vulndb: ## move on to the newest database of known vulnerabilities that the Go proxy has
	@newest=$$(go list -m -f '{{.Version}}' golang.org/x/vulndb@latest) && echo "$$newest" >ops/supply/vulndb.version

# To build the linter and to run it for the first time takes fifteen minutes of a slow
# core: it is installed by who asks for it.
checks: $(if $(wildcard $(GOLANGCI)),lint,vet)

vet: formatted
	@echo 'go vet alone: the linter is not installed, which make lint does'
	@go vet $(TOOLS) ./...

lint: formatted $(GOLANGCI) ## formatting and lint
	@$(GOLANGCI) run ./...

formatted: system
	@unformatted=$$(gofmt -l daemon fetch internal ledger modelstore ops pipeline publish); \
	  [ -z "$$unformatted" ] || { echo "not formatted, run make fmt: $$unformatted" >&2; exit 1; }

fmt: $(GOLANGCI) ## format the code
	@$(GOLANGCI) fmt ./...

clean: ## remove what was built, not what was installed or produced
	@rm -rf bin

# While a machine gets its compiler of C, Go fetches and compiles what needs none of it:
# half of the program, which saves a newcomer some 25 seconds of five and a half minutes.
system:
	@early=; command -v gcc >/dev/null || ! command -v go >/dev/null || \
	  { CGO_ENABLED=1 go build $(TOOLS) $(BUILDFLAGS) -o /dev/null ./daemon/cmd/lacuna >/dev/null 2>&1 & early=$$!; }; \
	status=0; ops/setup/packages.sh \
	  "libnetcdf-dev=pkg-config --exists netcdf" "libdeflate-dev=pkg-config --exists libdeflate" "pkg-config=command -v pkg-config" \
	  "netcdf-bin=command -v ncdump" "gcc=command -v gcc" \
	  "python3-venv=python3 -c 'import ensurepip, venv'" || status=$$?; \
	[ -z "$$early" ] || kill $$early 2>/dev/null || true; exit $$status

python:
	@ops/setup/python.sh $(VENV) ops/setup/requirements-test.txt
	@ops/setup/python.sh $(VENV) ops/setup/requirements-wheel.txt

# What tests talk to: a Kafka broker, kcat, an FTP server, a browser, and the
# tool that checks alert rules.
# Where one cannot be had, the tests that need it say so and are skipped.
parts:
	@ops/setup/packages.sh "openjdk-17-jre-headless=command -v java" "maven=command -v mvn" \
	  "kcat=command -v kcat" "vsftpd=command -v vsftpd" "curl=command -v curl" \
	  "chromium=command -v chromium" "prometheus=command -v promtool" || echo "make: some tests will be skipped" >&2
	@ops/setup/axe.sh $(CACHE)/axe || echo "make: what keeps people from using the pages will be looked for without axe-core" >&2
	@$(MAKE) --no-print-directory openvino >/dev/null || echo "make: networks in bfloat16 on processors will not be tested" >&2
	@ops/setup/kafka/broker.sh $(CACHE)/kafka || echo "make: the tests with a real Kafka broker will be skipped" >&2

# The known vulnerabilities, from the Go proxy into the module cache. Not every
# proxy has them; then, without a LACUNA_VULNDB, their test says so and is skipped.
vulnfiles:
	@[ -n "$${LACUNA_VULNDB:-}" ] || timeout 120 go mod download golang.org/x/vulndb@$$(cat ops/supply/vulndb.version) 2>/dev/null || \
	  echo "make: the Go proxy has no database of known vulnerabilities: they will not be looked up" >&2

onnxruntime: system
	@[ -z "$(OWN_ORT)" ] || { ops/setup/python.sh $(VENV); ops/setup/onnxruntime.sh $(VENV) $(ORT_DIR); }

openvino: system ## libonnxruntime with OpenVINO in .cache/openvino: networks run faster on processors with AMX
	@ops/setup/python.sh $(VENV); ops/setup/onnxruntime.sh $(VENV) $(CACHE)/openvino openvino
	@echo "to use it: export LACUNA_ONNXRUNTIME=$(CACHE)/openvino/libonnxruntime.so"

$(GOLANGCI):
	@echo "installing golangci-lint $(GOLANGCI_VERSION) into .cache/bin"
	@mkdir -p $(CACHE)/bin
	@GOBIN=$(CACHE)/bin GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(CACHE)/bin/golangci-lint $@
