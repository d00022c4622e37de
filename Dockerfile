# Two images from one wheel: `--target function` and `--target reconciler`. Both run as uid 2000 on a
# read-only root; build and final stage carry the same Python (Debian 13: 3.13).
FROM debian:13-slim AS build
RUN apt-get update && apt-get install --no-install-recommends --yes python3-venv
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY function function
COPY reconciler reconciler
RUN python3 -m venv /wheel && /wheel/bin/pip wheel --no-deps --wheel-dir /dist .

FROM build AS function-venv
COPY requirements/function.txt ./
RUN python3 -m venv /venv/fn \
    && /venv/fn/bin/pip install --no-cache-dir --require-hashes --requirement function.txt \
    && /venv/fn/bin/pip install --no-cache-dir --no-deps /dist/*.whl \
    # An import of the reconciler's drivers would fail here.
    && /venv/fn/bin/function --version

FROM build AS reconciler-venv
COPY requirements/reconciler.txt ./
RUN python3 -m venv /venv/broker \
    && /venv/broker/bin/pip install --no-cache-dir --require-hashes --requirement reconciler.txt \
    && /venv/broker/bin/pip install --no-cache-dir --no-deps /dist/*.whl \
    && /venv/broker/bin/broker --version

FROM gcr.io/distroless/python3-debian13:nonroot AS function
COPY --from=function-venv /venv/fn /venv/fn
USER 2000:2000
EXPOSE 9443
ENTRYPOINT ["/venv/fn/bin/function"]

FROM gcr.io/distroless/python3-debian13:nonroot AS reconciler
COPY --from=reconciler-venv /venv/broker /venv/broker
USER 2000:2000
EXPOSE 8443 8444
ENTRYPOINT ["/venv/broker/bin/broker"]
