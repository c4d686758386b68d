#!/usr/bin/env bash
# Searches against servers that others wrote: LitServe, whose pinned wheels are installed into folder $2, and
# LiteLLM's proxy where it is installed. $1: the program. Exit status 77: no server can be installed.
set -euo pipefail
program=$1 folder=$2
pins=$(dirname "${BASH_SOURCE[0]}")/servers_requirements.txt

site=$folder/site
if ! cmp -s "$pins" "$site/ready"; then
  rm -rf "$site"
  { python3 -m pip install -q --disable-pip-version-check --retries 1 --timeout 10 --require-hashes --no-deps \
      --only-binary=:all: --target "$site" --requirement "$pins" && cp "$pins" "$site/ready"; } >"$folder.log" 2>&1 || {
    echo "skipped: LitServe cannot be installed: $(tail -n 1 "$folder.log")"
    exit 77
  }
fi

work=$(mktemp -d)
servers=()
# shellcheck disable=SC2154  # it is the loop's
trap 'for id in "${servers[@]}"; do kill -9 -- "-$id" 2>/dev/null || true; done; rm -rf "$work"' EXIT
mkdir -p "$work/project/generated" "$work/project/results"

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

answers() {
  python3 - "$1" 2>/dev/null <<'PYTHON'
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=5)
PYTHON
}

# start PORT PATH COMMAND...: a server that answers at PATH within a minute.
start() {
  local port=$1 path=$2
  shift 2
  # A session of its own: servers start workers, which outlive them.
  setsid "$@" >"$work/server.log" 2>&1 &
  servers+=($!)
  for _ in $(seq 600); do
    answers "http://127.0.0.1:$port$path" && return 0
    kill -0 "${servers[-1]}" 2>/dev/null || break
    sleep 0.1
  done
  echo "$1 did not start:" && tail "$work/server.log" && exit 1
}

# expect_search NAME STATUS PATTERN OPTIONS...: a search of one round, without a GPU since the fixed reply
# is of ideas alone, ends with the status, says what the pattern says, and replays.
expect_search() {
  local name=$1 expected=$2 pattern=$3 status=0 output
  shift 3
  output=$(cd "$work/project" && XDG_CONFIG_HOME=$work "$program" search "$name" --problem softmax \
    --rounds 1 --branches 1 --tries 1 --without-gpu --replies openai --model fixed --reply-tokens 500 "$@" 2>&1) ||
    status=$?
  if [[ $status -ne $expected || ! $output =~ $pattern ]]; then
    printf '%s: expected status %s and "%s", got %s and\n%s\n' "$name" "$expected" "$pattern" "$status" "$output"
    exit 1
  fi
  [[ $expected -eq 2 ]] || (cd "$work/project" && "$program" replay "$name" --table >/dev/null)
  if grep -qs "$key" "$work/project/trajectories/$name.jsonl"; then echo "$name: the key is recorded" && exit 1; fi
}

key=sk-0123456789-test
export TEST_KEY=$key

cat >"$work/litserve_server.py" <<'PYTHON'
import sys
import litserve

REPLY = '```json\n["Wider loads", "Fewer passes"]\n```'

class Fixed(litserve.LitAPI):
    def setup(self, device):
        pass

    def predict(self, prompt):
        for at in range(0, len(REPLY), 7):
            yield REPLY[at:at + 7]

if __name__ == "__main__":
    server = litserve.LitServer(Fixed(spec=litserve.OpenAISpec()), accelerator="cpu")
    server.run(host="127.0.0.1", port=int(sys.argv[1]), generate_client_file=False, log_level="error")
PYTHON
port=$(free_port)
start "$port" /health env PYTHONPATH="$site" python3 "$work/litserve_server.py" "$port"
address=http://127.0.0.1:$port/v1
no_kernel='got nothing: none of 2 replies held a kernel'
expect_search litserve 1 "$no_kernel" --base-url "$address" --key-variable TEST_KEY
expect_search litserve-stream 1 "$no_kernel" --base-url "$address" --stream --header 'X-A: b'
expect_search litserve-address 2 'most end in /v1' --base-url "http://127.0.0.1:$port/v2"
# It counts no tokens, and says 0.
grep -q '"tokens":"estimated"' "$work/project/trajectories/litserve.jsonl"
echo "LitServe $(sed -n "s/^litserve==\([^ ]*\).*/\1/p" "$pins"): good"

litellm=$(command -v litellm || true)
if [[ -z $litellm ]]; then
  echo 'LiteLLM is not installed: left out'
  exit 0
fi
cat >"$work/litellm.yaml" <<YAML
model_list:
  - model_name: fixed
    litellm_params:
      model: openai/fixed
      api_key: none
      mock_response: "\`\`\`json\n[\"Wider loads\", \"Fewer passes\"]\n\`\`\`"
general_settings:
  master_key: $key
YAML
port=$(free_port)
start "$port" /health/liveliness "$litellm" --config "$work/litellm.yaml" --host 127.0.0.1 --port "$port"
address=http://127.0.0.1:$port/v1
expect_search litellm 1 "$no_kernel" --base-url "$address" --key-variable TEST_KEY
expect_search litellm-stream 1 "$no_kernel" --base-url "$address" --key-variable TEST_KEY --stream
expect_search litellm-model 2 'Invalid model name' --base-url "$address" --key-variable TEST_KEY --ask-as none
echo 'LiteLLM: good'
