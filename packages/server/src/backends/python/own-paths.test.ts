/** Links that a worker adds to its own view of the root directory if the server is not root. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const workers = fileURLToPath(new URL("../../../python", import.meta.url));

/** Reports what a user without privileges sees before and after the links are added. */
const program = `
import json, os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from galatea_worker import own_paths
from galatea_worker.system_calls import call
from galatea_worker.tenant import Tenancy

os.chdir("/")
root, model = sys.argv[2] + "/root", sys.argv[2] + "/model"
for path in (root, model, sys.argv[2]):
    os.makedirs(path, exist_ok=True)
    os.chmod(path, 0o755)
with open(model + "/weights", "w") as file:
    file.write("own")
tenancy = Tenancy([])
if os.geteuid() == 0:
    os.chown(root, 65534, 65534)
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    # Its own files in /proc are root's otherwise.
    call("prctl", 4, 1, 0, 0, 0)
said = {"user": os.getuid(), "possible": own_paths.is_possible(root)}
said["namespaces"] = subprocess.run(["unshare", "-U", "-r", "-m", "true"], capture_output=True).returncode == 0
said["left"] = os.listdir(root)
if said["possible"]:
    before = sorted(os.listdir("/"))
    own_paths.enter(root, [("/opt/ml/model", model), ("/usr", model)])
    tenancy._drop(None, [])
    with open("/opt/ml/model/weights") as file:
        said["read"] = file.read()
    said["same"] = sorted(set(before) | {"opt"}) == sorted(os.listdir("/"))
    said["usr"] = os.path.isdir("/usr/bin")
    said["now"] = os.getuid()
    with open("/proc/self/status") as status:
        said["capabilities"] = [line.split()[1] for line in status if line[:6] in ("CapEff", "CapPrm", "CapBnd")]
    try:
        call("mount", b"tmpfs", b"/opt", b"tmpfs", 0, None)
        said["mounts"] = True
    except OSError as error:
        said["mounts"] = error.errno
print(json.dumps(said))
`;

test("a process without root gets its own mounts where the kernel allows user namespaces, and no other privilege", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "galatea-own-paths-"));
  t.after(() => rm(directory, { recursive: true }));
  const { stdout } = await promisify(execFile)("python3", ["-c", program, workers, directory]);
  const said = JSON.parse(stdout) as Record<string, unknown>;
  assert.notEqual(said["user"], 0);
  assert.deepEqual([said["possible"], said["left"]], [said["namespaces"], []], stdout);
  if (said["possible"] !== true) return;
  const { read, same, usr, now, capabilities, mounts } = said;
  assert.deepEqual([read, same, usr, now], ["own", true, true, said["user"]], stdout);
  assert.deepEqual([capabilities, mounts], [Array.from({ length: 3 }, () => "0000000000000000"), 1], stdout);
});
