# syntax=docker/dockerfile:1

FROM rust:1.95-bookworm AS build
WORKDIR /src
# aws-lc-sys compiles C.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake clang \
    && rm -rf /var/lib/apt/lists/*
COPY . .
# jemalloc is built for one page size; kernels of arm64 have pages of up to 64 KB.
# Line tables go into a file of their own, which the binary names; debuggers and backtraces look for it beside it.
RUN if [ "$(uname -m)" = aarch64 ]; then export JEMALLOC_SYS_WITH_LG_PAGE=16; fi \
    && CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_LTO=thin CARGO_PROFILE_RELEASE_CODEGEN_UNITS=1 \
       cargo build --release --locked --package intentd \
    && install -D target/release/intentd /out/intentd \
    && cd /out \
    && objcopy --only-keep-debug intentd intentd.debug \
    && strip --strip-debug intentd \
    && objcopy --add-gnu-debuglink=intentd.debug intentd \
    && test "$(stat --format=%s intentd)" -lt 60000000

# `docker build --target symbols --output . .`
FROM scratch AS symbols
COPY --from=build /out/intentd.debug /

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 10001 --home-dir /var/lib/intentd --create-home intentd
COPY --from=build /out/intentd /usr/local/bin/intentd
USER intentd
WORKDIR /var/lib/intentd
ENV DATA_DIR=/var/lib/intentd/data
VOLUME /var/lib/intentd
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s CMD ["intentd", "health"]
ENTRYPOINT ["intentd"]
CMD ["serve"]
