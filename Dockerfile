# All services and the `todoke` command in one image (docs/guides/docker.md).
#
#   docker build -t todoke .
#   docker run --rm todoke help
#
# The same JavaScript as in the npm packages (docs/adr/0067), with the dependencies of the lock file. The embedded PostgreSQL,
# the second Node and every development tool stay in the first stage (docs/adr/0071).

FROM node:26.10.0-bookworm-slim AS build
# `npm run pack` asks git which files belong to a package.
RUN apt-get update && apt-get install -y --no-install-recommends git
WORKDIR /src
COPY . .
RUN npm ci --ignore-scripts && git init --quiet && npm run pack
# The lock file again, without optional packages: they bring PostgreSQL and Node.
RUN npm ci --ignore-scripts --omit=dev --omit=optional && rm -r node_modules/@todoke node_modules/.bin \
  && for tarball in dist/packages/*.tgz; do \
       tar -xzf "$tarball" -C dist package/package.json \
       && name=node_modules/$(node -p 'require("/src/dist/package/package.json").name') \
       && mkdir -p "$name" && tar -xzf "$tarball" -C "$name" --strip-components 1 --no-same-owner || exit 1; \
     done \
  && find node_modules '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' ')' -delete

FROM debian:12.15-slim
# Node needs it, and Debian's base does not have it.
RUN apt-get update && apt-get install -y --no-install-recommends libatomic1 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /src/node_modules /app/node_modules
COPY deploy/docker/healthcheck.js /app/healthcheck.js
RUN ln -s /app/node_modules/@todoke/cli/todoke.js /usr/local/bin/todoke
# No compile cache, because it would write to the disk: the root file system may be read-only. Listeners can be reached from outside the container.
ENV NODE_ENV=production NODE_DISABLE_COMPILE_CACHE=1 TODOKE_HOST=0.0.0.0
WORKDIR /app
USER 65532:65532
# The command is process 1 and handles SIGTERM itself: it drains. A stop may take 30 s.
ENTRYPOINT ["todoke"]
CMD ["help"]
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=30s --retries=3 CMD ["node", "/app/healthcheck.js"]
