# Rekernel on Debian 12. The set-up is the one of ./run and ./test; system packages and pinned wheels are layers of
# their own, which stay until harness/setup/ changes.
#
#   docker build -t rekernel . && docker run --rm --gpus all rekernel
#   docker build -t rekernel-test --target test . && docker run --rm --gpus all rekernel-test
#
# Without `--gpus all`, ./run shows what was recorded and ./test leaves out what needs a GPU. An image is built
# without a GPU, so it holds CUDA 13, for drivers from 580 up; with an older driver, ./run fetches CUDA 12 when it
# starts. Arguments after the image's name replace the command: `docker run rekernel build/rekernel doctor`.
#
# buildah 1.28 built the stage `run` of it, on a Debian 12 made by debootstrap in place of the published image, and ran
# ./run in it, without a GPU. No docker has built it yet, and of the stage `test` the set-up alone was run.

FROM debian:bookworm-slim AS packages
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
WORKDIR /rekernel
# git is for `rekernel verify`.
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates git && \
    rm -rf /var/lib/apt/lists/*
COPY harness/setup harness/setup
RUN source harness/setup/setup.sh && set_up run && rm -rf /var/lib/apt/lists/*

FROM packages AS test
RUN source harness/setup/setup.sh && set_up test && rm -rf /var/lib/apt/lists/*
COPY . .
RUN source harness/setup/setup.sh && build ci
CMD ["./test"]

FROM packages AS run
COPY . .
# With what makes the report's pages, so that ./run needs no network.
RUN source harness/setup/setup.sh && build release rekernel && alone provide_list wheels-report.txt report
CMD ["./run"]
