#!/bin/sh
# install.sh WHEEL: the steps of the image, run as root in its root file system. Dockerfile and offline-image.sh both run them.
set -eu
wheel=$1
apt-get update
apt-get install --yes --no-install-recommends ca-certificates python3 python3-venv
rm -rf /var/lib/apt/lists/*
useradd --uid 10001 --create-home galatea
install --directory --owner=galatea --group=galatea --mode=700 /data
python3 -m venv /opt/galatea
# Packages for models without their own environment, so that the first one loads without a package index.
/opt/galatea/bin/pip install --no-cache-dir "$wheel" numpy tokenizers
ln -s /opt/galatea/bin/galatea /usr/local/bin/galatea
