#!/bin/bash
# offline-image.sh FOLDER: makes the image of Dockerfile without a container engine, as root, from Debian's packages: a root file system
# FOLDER/root, in which install.sh has run, and FOLDER/galatea.tar, which `docker load` and `podman load` read. Needs mmdebstrap.
# `npm run build` comes before.
set -euo pipefail
repository=$(dirname "$(dirname "$(readlink -f "$0")")")
mkdir -p "$1"
folder=$(readlink -f "$1")
root=$folder/root
mmdebstrap --variant=minbase --include=usr-is-merged bookworm "$root"
mkdir "$root/dist"
cp "$repository"/dist/galatea-*.whl "$repository/packaging/install.sh" "$root/dist"
# This machine's settings of pip and TLS, with which its package index is reached.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/dist"
[ ! -e /etc/pip.conf ] || cp /etc/pip.conf "$root/dist"
mount --bind /proc "$root/proc"
trap 'umount "$root/proc"' EXIT
authorities=/dist/ca-certificates.crt
REQUESTS_CA_BUNDLE=$authorities CURL_CA_BUNDLE=$authorities PIP_CERT=$authorities PIP_CONFIG_FILE=/dist/pip.conf chroot "$root" /bin/sh -c 'exec sh /dist/install.sh /dist/galatea-*.whl'
trap - EXIT
umount "$root/proc"
rm -r "$root/dist"
python3 - "$repository/packaging/Dockerfile" "$root" "$folder/galatea.tar" "$(chroot "$root" galatea --version)" <<'PYTHON'
import hashlib, io, json, re, subprocess, sys

dockerfile, root, target, printed = sys.argv[1:]
version = printed.split()[-1]
import tarfile

text = open(dockerfile).read().replace("\\\n", "")
words = {name: json.loads(value) for name, value in re.findall(r"^(ENTRYPOINT|CMD) (\[.*\])$", text, re.M)}
check = json.loads(re.search(r"^HEALTHCHECK .*?CMD (\[.*\])$", text, re.M)[1])
subprocess.run(["tar", "--sort=name", "-C", root, "-cf", f"{target}.layer", "."], check=True)
with open(f"{target}.layer", "rb") as layer:
    digest = hashlib.file_digest(layer, "sha256").hexdigest()
config = {
    "User": "galatea",
    "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "GALATEA_DATA=/data"],
    "Volumes": {"/data": {}},
    "ExposedPorts": {"8770/tcp": {}},
    "Healthcheck": {"Test": ["CMD", *check], "StartPeriod": 20_000_000_000},
    "Entrypoint": words["ENTRYPOINT"],
    "Cmd": words["CMD"],
}
image = json.dumps(
    {"architecture": "amd64", "os": "linux", "config": config, "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}
).encode()
name = f"{hashlib.sha256(image).hexdigest()}.json"
manifest = json.dumps([{"Config": name, "RepoTags": ["galatea:latest", f"galatea:{version}"], "Layers": ["layer.tar"]}]).encode()
with tarfile.open(target, "w") as archive:
    for each, content in ((name, image), ("manifest.json", manifest)):
        entry = tarfile.TarInfo(each)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    archive.add(f"{target}.layer", "layer.tar")
subprocess.run(["rm", f"{target}.layer"], check=True)
PYTHON
echo "$folder/galatea.tar"
