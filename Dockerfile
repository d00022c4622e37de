# Two images from one wheel: `--target function` and `--target reconciler`. Both run as uid 2000 on a
# read-only root: bytecode is compiled here, and nothing writes at runtime. A release gives both bases by
# digest (docs/packages.md); build and final stage must carry the same Python (Debian 13: 3.13).
ARG BUILD_BASE=debian:13-slim
ARG RUNTIME_BASE=gcr.io/distroless/python3-debian13:nonroot

FROM ${BUILD_BASE} AS wheel
RUN apt-get update && apt-get install --no-install-recommends --yes python3-venv
WORKDIR /src
COPY requirements/dev.txt requirements/
# The build backend and what it needs, with their hashes; a package missing here fails the install.
RUN python3 -m venv /tools \
    && sed -n '/^\(hatchling\|packaging\|pathspec\|pluggy\|tomlkit\|trove-classifiers\)==/,/[^\\]$/p' \
       requirements/dev.txt > /tools/build.txt \
    && /tools/bin/pip install --no-cache-dir --require-hashes --requirement /tools/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY function function
COPY reconciler reconciler
RUN /tools/bin/pip wheel --no-build-isolation --no-deps --wheel-dir /dist .

FROM wheel AS function-venv
COPY requirements/function.txt requirements/
RUN python3 -m venv --without-pip /venv/fn \
    && /tools/bin/pip --python /venv/fn/bin/python install --no-cache-dir --no-compile \
       --require-hashes --requirement requirements/function.txt \
    && /tools/bin/pip --python /venv/fn/bin/python install --no-cache-dir --no-compile \
       --no-deps /dist/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /venv/fn/lib \
    # An import of the reconciler's drivers would fail here.
    && /venv/fn/bin/function --version

FROM wheel AS reconciler-venv
COPY requirements/reconciler.txt requirements/
RUN python3 -m venv --without-pip /venv/broker \
    && /tools/bin/pip --python /venv/broker/bin/python install --no-cache-dir --no-compile \
       --require-hashes --requirement requirements/reconciler.txt \
    && /tools/bin/pip --python /venv/broker/bin/python install --no-cache-dir --no-compile \
       --no-deps /dist/*.whl \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /venv/broker/lib \
    && /venv/broker/bin/broker --version

FROM ${RUNTIME_BASE} AS function
COPY --from=function-venv /venv/fn /venv/fn
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 2000:2000
EXPOSE 9443 8080
ENTRYPOINT ["/venv/fn/bin/function"]

FROM ${RUNTIME_BASE} AS reconciler
COPY --from=reconciler-venv /venv/broker /venv/broker
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 2000:2000
EXPOSE 8443 8444
ENTRYPOINT ["/venv/broker/bin/broker"]
