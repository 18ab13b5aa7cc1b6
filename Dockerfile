# syntax=docker/dockerfile:1
# Two stages; the second has only the binary and its debug information. Each RUN also works by hand on a Debian machine
# with rustup. `make pgo` loads the component llvm-tools.

FROM rust:1.95-slim-trixie AS build
RUN apt-get update && apt-get install -y --no-install-recommends build-essential python3 && rm -rf /var/lib/apt/lists/*
WORKDIR /build
COPY . .
# It takes three times as long as `cargo build --release`. The server answers about a fifth more checks a second.
RUN make pgo

FROM debian:trixie-slim
RUN useradd --system --uid 10001 --create-home --home-dir /var/lib/hapax hapax
COPY --from=build /build/target/pgo/hapax /usr/local/bin/hapax
COPY --from=build /build/target/pgo/hapax.dwp /usr/local/bin/hapax.dwp
USER 10001
VOLUME /var/lib/hapax
EXPOSE 8080
# On an address that other machines can reach, hapax does not start without an API key. User 10001 must be able to read
# the file with the key: `chown 10001 key`.
#   docker run -p 8080:8080 -v hapax:/var/lib/hapax -v ./key:/run/secrets/key:ro \
#     -e HAPAX__AUTH__API_KEY_FILE=/run/secrets/key hapax
ENV HAPAX__SERVER__LISTEN=0.0.0.0:8080 HAPAX__DATA__DIR=/var/lib/hapax/data \
    HAPAX__BACKUP__DIR=/var/lib/hapax/backups
# A stop waits up to server.drain_timeout_ms (20 s) for requests in progress. Docker kills the process after 10 s, unless
# it is stopped with `docker stop --time 30`.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=10m CMD ["hapax", "health"]
ENTRYPOINT ["hapax"]
CMD ["serve"]
