# Builds Carteiro from its hashed lock: docker build -t carteiro .
# docs/how-to/deploy.md tells how to run it.
ARG PYTHON=python:3.13.7-slim-bookworm

FROM ${PYTHON} AS build
WORKDIR /src
RUN python3 -m venv /opt/carteiro
COPY requirements.lock ./
RUN /opt/carteiro/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY . .
RUN /opt/carteiro/bin/pip install --no-cache-dir --no-deps --no-build-isolation . \
 && /opt/carteiro/bin/pip uninstall --yes setuptools pip

FROM ${PYTHON}
COPY --from=build /opt/carteiro /opt/carteiro
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin carteiro \
 && install --directory --owner carteiro --group carteiro --mode 0700 /data
ENV PATH=/opt/carteiro/bin:$PATH \
    CARTEIRO_SERVER__HOST=0.0.0.0 \
    CARTEIRO_DATABASE__URL=sqlite:////data/carteiro.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8080
# Every command of Carteiro by its words: docker run … carteiro user add ana@example.com --name Ana
ENTRYPOINT ["carteiro"]
CMD ["serve"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python3", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:%s/readyz' % os.environ.get('CARTEIRO_SERVER__PORT', 8080))"]
