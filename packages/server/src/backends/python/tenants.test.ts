/** Confinement of tenants' workers on this machine, as the current user: which accesses are denied and which are allowed. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { create } from "tar";
import { createArena } from "../../tensor/index.ts";
import { noNamespaceMetrics } from "../no-namespace-metrics.ts";
import { noBlsClient } from "../no-bls-client.ts";
import type { TenantOptions } from "./confinement-plan.ts";
import { infer, floats, header, oneInOneOut, openFixture, pidOf, until, type PythonFixture } from "./python-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const location = mkdtempSync(join(tmpdir(), "galatea-tenants-"));
after(() => rmSync(location, { recursive: true, force: true }));
const isRoot = process.getuid?.() === 0;
const users = { first: 2_000_000_000, count: 65_536 };
let count = 0;

const tenantOptions = (more: Partial<TenantOptions> = {}): TenantOptions => ({
  users,
  readPaths: [],
  writePaths: [],
  fixedPaths: [],
  tcpPorts: [],
  gpuDevices: () => [],
  opensPort: false,
  memoryBytesMax: null,
  allMemoryBytesMax: 2 ** 31,
  processesMax: 64,
  scratchBytesMax: 16 * 2 ** 20,
  directory: join(location, `${basename(location)}-${(count += 1)}`),
  dataDirectory: null,
  slicesDirectory: join(location, "slices"),
  ...more,
});

/** A model that returns the value of `expression` as text, or the error. */
const reporting = (expression: string) => `${header}import json, os, resource, socket, subprocess, tempfile, time
class TritonPythonModel:
    def execute(self, requests):
        try:
            text = str(${expression})
        except BaseException as error:
            text = type(error).__name__ + ": " + str(error)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], object))]) for _ in requests]
`;
const textConfig = oneInOneOut().replace(/FP32 dims: \[ -1 \] \}\]\n$/, "STRING dims: [ -1 ] }]\n");

async function load(fixture: PythonFixture, expression: string, config = textConfig) {
  return await fixture.load(`m${(count += 1)}`, reporting(expression), config);
}

async function textOf(loaded: Awaited<ReturnType<typeof load>>): Promise<string> {
  const { outputs } = await infer(loaded, [floats("IN", [1])]);
  return Buffer.from(outputs[0]!.data).subarray(4).toString();
}

async function evaluate(fixture: PythonFixture, expression: string): Promise<string> {
  await using loaded = await load(fixture, expression);
  return await textOf(loaded);
}

const attempt = (path: string) => `open(${path}, "w").write("x")`;

test("a tenant's worker writes to its scratch directory and nowhere else", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  for (const path of ["tempfile.mktemp()", 'os.path.expanduser("~/x")', '"beside-me"'])
    assert.equal(await evaluate(fixture, attempt(path)), "1", path);
  const kept = [
    "__file__",
    "np.__file__",
    "pb_utils.__file__",
    '"/usr/bin/x"',
    '"/x"',
    '"/etc/x"',
    '"/proc/self/comm"',
  ];
  for (const path of kept) assert.match(await evaluate(fixture, attempt(path)), /^(PermissionError|OSError)/, path);
});

test("a tenant's worker reads its own model, Python and the system, and no other model", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  for (const path of ["__file__", "np.__file__", "pb_utils.__file__", '"/etc/passwd"', '"/proc/self/status"'])
    assert.notEqual(await evaluate(fixture, `len(open(${path}).read())`), "0", path);
  const secret = join(location, "secret");
  execFileSync("sh", ["-c", `echo secret > ${secret}`]);
  for (const path of [secret, import.meta.filename, "/root"])
    assert.match(
      await evaluate(fixture, `open(${JSON.stringify(path)}).read()`),
      /^(PermissionError|FileNotFoundError)/,
      path,
    );
});

test("a tenant's worker reads and writes the paths that the operator allows", async () => {
  const shared = join(location, "shared");
  execFileSync("sh", ["-c", `mkdir -m 1777 ${shared}; echo known > ${shared}/known; chmod 755 ${location}`]);
  await using fixture = await openFixture({ tenants: tenantOptions({ readPaths: [shared] }) });
  assert.equal(await evaluate(fixture, `open("${shared}/known").read()`), "known\n");
  assert.match(await evaluate(fixture, attempt(`"${shared}/new"`)), /^(PermissionError|OSError)/);
  await using writing = await openFixture({ tenants: tenantOptions({ writePaths: [shared] }) });
  assert.equal(await evaluate(writing, attempt(`"${shared}/new"`)), "1");
  assert.equal(readFileSync(join(shared, "new"), "latin1"), "x");
});

test("a tenant's worker connects only to allowed ports, and listens on none", async () => {
  const server = createServer((socket) => socket.end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const connect = `socket.create_connection(("127.0.0.1", ${port}), 5).close()`;
  await using closed = await openFixture({ tenants: tenantOptions({ tcpPorts: [443] }) });
  assert.match(await evaluate(closed, connect), /^PermissionError/);
  assert.match(await evaluate(closed, 'socket.create_server(("127.0.0.1", 0))'), /^PermissionError/);
  await using open = await openFixture({ tenants: tenantOptions({ tcpPorts: [port] }) });
  assert.equal(await evaluate(open, connect), "None");
  await using any = await openFixture({ tenants: tenantOptions({ tcpPorts: null }) });
  assert.equal(await evaluate(any, connect), "None");
  assert.match(await evaluate(any, 'socket.create_server(("127.0.0.1", 0))'), /^<socket/);
  server.close();
});

test("each namespace has its own user if the server is root, and the server's user otherwise; its models share it", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  await using first = await load(fixture, "os.getuid()");
  await using second = await load(fixture, "os.getuid()");
  const user = Number(await textOf(first));
  assert.equal(Number(await textOf(second)), user);
  using arena = createArena({ capacityBytes: 2 ** 24 });
  const other = await fixture.source("other", reporting("os.getuid()"), textConfig);
  const context = {
    arena,
    backendConfig: new Map<string, string>(),
    bls: noBlsClient,
    metrics: noNamespaceMetrics,
    onHealth: () => {},
    signal: AbortSignal.timeout(testTimeoutMs),
  };
  await using third = await fixture.backend.load(other.source, other.config, context);
  const otherUser = Number(readFileSync(`/proc/${pidOf(third)}/status`, "latin1").match(/^Uid:\t(\d+)/m)?.[1]);
  if (isRoot) {
    assert.ok(user >= users.first && user < users.first + users.count);
    assert.notEqual(otherUser, user);
  } else assert.deepEqual([user, otherUser], [process.getuid?.(), process.getuid?.()]);
});

test("a tenant's model reaches the other models of its namespace through its given socket", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  assert.equal(await evaluate(fixture, 'pb_utils.is_model_ready("x")'), "False");
  const called = 'pb_utils.InferenceRequest(model_name="x", requested_output_names=[], inputs=[])';
  assert.equal(
    await evaluate(fixture, `${called}.exec().error().message()`),
    "calls to other models are not available while a model is only checked",
  );
  const coroutine = `async def awaited(): return (await ${called}.async_exec()).has_error()`;
  const awaited = `(lambda scope: exec('${coroutine}', scope) or __import__("asyncio").run(scope["awaited"]()))({"pb_utils": pb_utils})`;
  assert.equal(await evaluate(fixture, awaited), "True");
});

test("a tenant's worker has no capability and gains none", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  const status = await evaluate(fixture, "open('/proc/self/status').read()");
  assert.match(status, /^NoNewPrivs:\t1$/m);
  const names = isRoot ? ["Inh", "Prm", "Eff", "Bnd", "Amb"] : ["Inh", "Prm", "Eff", "Amb"];
  for (const name of names) assert.match(status, new RegExp(`^Cap${name}:\t0+$`, "m"));
});

test("models of a tenant can use subprocesses, threads, locks, temporary files and shared memory", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  assert.equal(
    await evaluate(
      fixture,
      'subprocess.run(["sh", "-c", "echo $HOME"], capture_output=True, text=True).stdout.strip() == os.environ["HOME"]',
    ),
    "True",
  );
  assert.equal(await evaluate(fixture, '__import__("getpass").getuser()'), "tenant");
  assert.equal(await evaluate(fixture, 'len(os.listdir("/proc/self/fd")) > 3'), "True");
});

test("locks between processes belong to one tenant if it has its own root directory, and are rejected otherwise", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  const lock = '__import__("multiprocessing").get_context("fork").Lock().acquire()';
  if (isRoot) assert.equal(await evaluate(fixture, lock), "True");
  else assert.match(await evaluate(fixture, lock), /^PermissionError/);
});

test("an environment that a model brings runs under the tenant's confinement, its activation script included", async () => {
  await using fixture = await openFixture({ tenants: tenantOptions() });
  const secret = join(location, "activation-secret");
  execFileSync("sh", ["-c", `echo secret > ${secret}`]);
  const { source } = await fixture.source("packed", "");
  const environment = join(location, "packed");
  const python = await interpreter(fixture);
  const activate = `export FOUND="$(cat ${secret} 2>&1)" WROTE="$(echo x > ${fixture.directory}/activated 2>&1)" WHO=$(id -u)
export PYTHONPATH=${python.packages}
(setsid sleep 600 &)
`;
  execFileSync("sh", ["-c", `mkdir -p ${environment}/bin; cp ${python.executable} ${environment}/bin/python`]);
  execFileSync(
    "sh",
    ["-c", `cat > ${environment}/bin/activate; echo home = ${python.home} > ${environment}/pyvenv.cfg`],
    {
      input: activate,
    },
  );
  await create({ gzip: true, cwd: environment, file: join(source.modelDirectory, "env.tar.gz") }, [
    "bin",
    "pyvenv.cfg",
  ]);
  const setting = (path: string) =>
    `${textConfig}parameters { key: "EXECUTION_ENV_PATH" value: { string_value: "${path}" } }`;
  let user = "";
  {
    const reported = '"|".join([os.environ[n] for n in ("FOUND", "WROTE", "WHO")] + [str(os.getuid()), sys.prefix])';
    await using loaded = await fixture.load("packed", `import sys\n${reporting(reported)}`, setting("env.tar.gz"));
    const [found, wrote, who, own, prefix] = (await textOf(loaded)).split("|");
    user = own!;
    assert.match(found!, /No such file|Permission denied/);
    assert.notEqual(wrote, undefined);
    assert.ok(!readdirSync(fixture.directory).includes("activated"));
    assert.equal(who, user);
    assert.equal(Number(user) === process.getuid?.(), !isRoot);
    assert.match(prefix!, /environments\/[0-9a-f]{64}\/files$/);
    if (isRoot) assert.notEqual(processesOf(Number(user)).length, 0);
    if (isRoot) assert.equal(statSync(join(prefix!, "bin", "python")).uid, 0);
  }
  if (isRoot) await until(() => processesOf(Number(user)).length === 0);
  for (const path of [join(environment), "../../packed", `${location}/packed`])
    await assert.rejects(fixture.load("packed", reporting("1"), setting(path)), {
      message: /is outside the model's archive|does not exist/,
    });
});

const statusOf = (pid: string) => {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1");
  } catch {
    return "";
  }
};
const processesOf = (user: number) => readdirSync("/proc").filter((pid) => statusOf(pid).includes(`\nUid:\t${user}\t`));
/** Returns the base interpreter of the test environment, and the directory of that environment's packages. */
async function interpreter(fixture: PythonFixture) {
  const text = await evaluate(
    fixture,
    '"|".join([__import__("sys")._base_executable, __import__("sys").base_prefix, np.__path__[0]])',
  );
  const [executable, prefix, numpy] = text.split("|");
  return { executable: executable!, home: join(prefix!, "bin"), packages: join(numpy!, "..") };
}

test("only workers of models that may use GPUs have the GPU devices", async () => {
  const devices = join(location, "devices");
  const created = ["nvidia0", "nvidia1", "nvidiactl", "nvidia-caps/nvidia-cap1"];
  mkdirSync(join(devices, "nvidia-caps"), { recursive: true });
  const make = (name: string) => {
    writeFileSync(join(devices, name), "");
    chmodSync(join(devices, name), 0o666);
  };
  for (const name of created) make(name);
  const gpuDevices = () => readdirSync(devices).map((name) => join(devices, name));
  await using fixture = await openFixture({ tenants: tenantOptions({ gpuDevices }), gpuCount: 2 });
  const uses = (name: string) => `open(${JSON.stringify(join(devices, name))}, "r+").write("x")`;
  const on = (groups: string) => textConfig.replace(/instance_group[^\n]*/g, "") + `\ninstance_group [ ${groups} ]`;
  const told = async (name: string, groups: string) => {
    await using loaded = await load(fixture, uses(name), on(groups));
    return await textOf(loaded);
  };
  for (const name of created) {
    assert.equal(await told(name, "{ kind: KIND_GPU gpus: [ 0 ] }"), "1", name);
    assert.match(await told(name, "{ kind: KIND_CPU }"), /^(FileNotFound|Permission)Error/, name);
  }
  assert.equal(await told("nvidia1", "{ kind: KIND_MODEL }"), "1");
  // The driver creates this file when a program first uses a GPU.
  make("nvidia-uvm");
  assert.equal(await told("nvidia-uvm", "{ kind: KIND_GPU }"), "1");
});
