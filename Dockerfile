# The image holds the agent, which is static, and its licence. It needs nothing
# else: the service account brings the API server's certificate, the log is in
# UTC, and no user is looked up. `make image` has the arguments.
#
# Where no registry is in reach, BUILD_IMAGE may be any image that has Go and a
# shell (test/kubelet).
ARG BUILD_IMAGE=golang:1.26
ARG BASE_IMAGE=scratch

# Compiling for another platform is faster than emulating it.
FROM --platform=$BUILDPLATFORM ${BUILD_IMAGE} AS build
WORKDIR /src
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION
ARG SOURCE_DATE_EPOCH=0
# The same sources make the same image, whoever builds it: nothing of the
# builder's paths, repository, umask or time gets in. Dependencies are compiled
# without inlining: they are large and run seldom. Of the two HTTP/2s, net/http's
# and x/net's, only that which client-go uses is linked.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=${TARGETOS} GOARCH=${TARGETARCH} go build -trimpath -buildvcs=false \
        -tags=nethttpomithttp2 -gcflags=all=-l -gcflags=std= -gcflags=github.com/taintlet/taintlet/...= \
        -ldflags="-s -w -X github.com/taintlet/taintlet/cmd/command.version=${VERSION}" -o /image/ ./cmd/taintlet && \
    cp LICENSE /image/ && \
    chmod 0755 /image/taintlet && chmod 0644 /image/LICENSE && \
    touch -d "@${SOURCE_DATE_EPOCH}" /image/taintlet /image/LICENSE

FROM ${BASE_IMAGE}
COPY --from=build /image/taintlet /image/LICENSE /
# Of a name, the kubelet could not tell that it is not root's (runAsNonRoot).
USER 65532:65532
ENTRYPOINT ["/taintlet"]
ARG VERSION
ARG REVISION
# SOURCE_DATE_EPOCH as RFC 3339 has it.
ARG CREATED
LABEL org.opencontainers.image.title="taintlet" \
      org.opencontainers.image.description="Watches the health of the host it runs on and keeps the right taints on its own Kubernetes Node" \
      org.opencontainers.image.source="https://github.com/taintlet/taintlet" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}"
