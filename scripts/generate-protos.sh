#!/usr/bin/env bash
# Regenerates server/src/modelconfig/gen from server/proto. Needs network once: protoc comes from the Python package
# grpcio-tools in a throw-away environment, the plugin from @bufbuild/protoc-gen-es (same version as @bufbuild/protobuf).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --disable-pip-version-check -q install 'grpcio-tools>=1.60'
version=$(node -p 'JSON.parse(require("node:fs").readFileSync("node_modules/@bufbuild/protobuf/package.json")).version')
npm install --silent --no-save --ignore-scripts --prefix "$work" "@bufbuild/protoc-gen-es@$version"
"$work/venv/bin/python" -m grpc_tools.protoc \
  --plugin=protoc-gen-es="$work/node_modules/.bin/protoc-gen-es" \
  --es_out=server/src/modelconfig/gen --es_opt=target=js+dts --es_opt=import_extension=js \
  -I server/proto server/proto/model_config.proto
