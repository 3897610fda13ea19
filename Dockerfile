# The base needs Python 3.11 or newer with its venv module; any Debian or Ubuntu will do.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY systemd systemd
COPY config config
COPY pool pool
COPY proxy proxy
# An environment of its own; what only installs things is taken out again.
RUN python3 -m venv /opt/ocpool \
 && /opt/ocpool/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt . \
 && /opt/ocpool/bin/pip uninstall --yes --quiet --disable-pip-version-check pip setuptools \
 && rm -rf /opt/ocpool/lib/python3*/site-packages/*/tests

FROM ${BASE}
RUN groupadd --gid 8377 ocpool \
 && useradd --uid 8377 --gid 8377 --no-create-home --home-dir /var/lib/ocpool --shell /usr/sbin/nologin ocpool \
 && install -d -o ocpool -g ocpool -m 0700 /var/lib/ocpool
COPY --from=build /opt/ocpool /opt/ocpool

# 127.0.0.1 in a container is reachable for nobody. Beyond loopback a token is required: without OCPOOL_LISTEN__TOKEN
# the container says so and stops. A settings file may be mounted at /etc/ocpool/config.toml.
ENV PATH=/opt/ocpool/bin:$PATH \
    OCPOOL_LISTEN__HOST=0.0.0.0 \
    STATE_DIRECTORY=/var/lib/ocpool \
    XDG_CONFIG_HOME=/etc
USER ocpool
WORKDIR /var/lib/ocpool
VOLUME /var/lib/ocpool
EXPOSE 8377
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --retries=3 \
  CMD ["python", "-c", "import os; from http.client import HTTPConnection; c = HTTPConnection('127.0.0.1', int(os.environ.get('OCPOOL_LISTEN__PORT') or 8377), timeout=4); c.request('GET', '/-/health'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["ocpool"]
CMD ["serve"]
