#!/usr/bin/env bash
# Makes the environment of the example's model.py and packs it as EXECUTION_ENV_PATH takes it:
#
#     examples/t5/create_hf_env.sh hf_env hf_env.tar.gz
#
# A virtual environment packed by venv-pack: its interpreter is the machine's own, of the same place and version where the archive is used.
# An environment of conda's, packed by conda-pack, brings its interpreter along and is taken as well.
set -euo pipefail
environment=$1
archive=$2
python=${PYTHON:-python3}
requirements=$(dirname "$0")/requirements.txt
if "$python" -c "import ensurepip" 2>/dev/null; then
  "$python" -m venv --clear "$environment"
else
  uv venv --quiet --clear --seed --python "$python" "$environment"
fi
pip() { "$environment/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install --no-deps --only-binary :all: --requirement "$requirements"
pip install venv-pack==0.2.0
"$environment/bin/venv-pack" --quiet --prefix "$environment" --output "$archive" --force --compress-level 1
