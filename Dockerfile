FROM python:3.11-slim

# What commands find: git, node, curl. They are confined by Landlock, which needs no package and no
# privilege: bubblewrap's namespaces are what engines forbid.
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates curl git nodejs npm \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --user-group --home-dir /data turnkeeper \
    && install -d -o turnkeeper -g turnkeeper -m 0700 /data

WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY agent_core agent_core
COPY gateway gateway
COPY adapters adapters
COPY cron cron
RUN pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[documents,e2b]' && rm -rf /app/*

USER turnkeeper
WORKDIR /data
VOLUME /data
EXPOSE 8787 8788

# Others can reach 0.0.0.0, so the gateway starts only with TURNKEEPER_TOKEN set.
ENV TURNKEEPER_HOME=/data \
    TURNKEEPER_HOST=0.0.0.0 \
    TURNKEEPER_PORT=8787 \
    PYTHONUNBUFFERED=1

# Running turns get 25 s to end: give the container longer than that to stop.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD \
    ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['TURNKEEPER_PORT'] + '/healthz', timeout=4)"]
CMD ["turnkeeper", "run"]
