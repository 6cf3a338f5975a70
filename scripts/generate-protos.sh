#!/usr/bin/env bash
# Regenerates the protobuf code in server/src/**/gen from packages/server/proto. Needs network once: protoc comes from the Python package
# grpcio-tools in a throw-away environment, the plugin from @bufbuild/protoc-gen-es (same version as @bufbuild/protobuf).
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" --disable-pip-version-check -q install 'grpcio-tools>=1.60'
version=$(node -p 'JSON.parse(require("node:fs").readFileSync("node_modules/@bufbuild/protobuf/package.json")).version')
npm install --silent --no-save --ignore-scripts --prefix "$work" "@bufbuild/protoc-gen-es@$version"
generate() {
  local directory=$1
  shift
  mkdir -p "$directory"
  "$work/venv/bin/python" -m grpc_tools.protoc \
    --plugin=protoc-gen-es="$work/node_modules/.bin/protoc-gen-es" \
    --es_out="$directory" --es_opt=target=js+dts --es_opt=import_extension=js \
    -I packages/server/proto "$@"
}
generate packages/server/src/modelconfig/gen model_config.proto
generate packages/server/src/protocols/kserve-grpc/gen grpc_service.proto health.proto reflection_v1.proto reflection_v1alpha.proto
# The messages of the configuration are generated once, in the module that uses them.
sed -i 's#"./model_config_pb.js"#"../../../modelconfig/gen/model_config_pb.js"#' packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.*
