import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { systemClock } from "@galatea/base";
import { addFramework, removeFramework, type AddOptions } from "./add-framework.ts";
import type { Framework } from "./framework-rows.ts";
import { linkFramework, findFramework } from "./framework-store.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const run = promisify(execFile);

let directory: string;
let wheels: string;

/** Writes a wheel with one module that reports its version. No package index is used. */
const writeWheel = `import sys, zipfile
path, name, version = sys.argv[1:]
info = "%s-%s.dist-info/" % (name, version)
with zipfile.ZipFile(path, "w") as wheel:
    wheel.writestr(name + ".py", "version = %r" % version)
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: %s\\nVersion: %s\\n" % (name, version))
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "%s.py,,\\n%sMETADATA,,\\n%sWHEEL,,\\n%sRECORD,,\\n" % (name, info, info, info))
`;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-frameworks-"));
  wheels = join(directory, "wheels");
  await mkdir(wheels);
  for (const name of ["tiny_base", "tiny_torch"]) await wheel(wheels, name, "1.0");
});

after(() => rm(directory, { recursive: true, force: true }));

async function wheel(where: string, name: string, version: string): Promise<string> {
  const file = join(where, `${name}-${version}-py3-none-any.whl`);
  await run("python3", ["-c", writeWheel, file, name, version]);
  return file;
}

interface Pinned {
  readonly name: string;
  /** Size in bytes according to the lock file. Each package is a group of its own. */
  readonly bytes?: number;
  readonly sha256?: string;
}

/** A framework whose lock file lists the given packages. */
async function framework(name: string, pinned: readonly Pinned[] = [{ name: "tiny_base" }, { name: "tiny_torch" }]) {
  const pins = await Promise.all(
    pinned.map(async (pin) => {
      const file = `${pin.name}-1.0-py3-none-any.whl`;
      const sum = createHash("sha256")
        .update(await readFile(join(wheels, file)))
        .digest("hex");
      const one = { file, bytes: pin.bytes ?? 200 * 2 ** 20, sha256: pin.sha256 ?? sum };
      return { name: pin.name, version: "1.0", marker: "sys_platform == 'linux'", wheels: [one] };
    }),
  );
  const lock = join(directory, `${name}-lock.json`);
  await writeFile(lock, JSON.stringify({ pins }));
  const row: Framework = {
    name,
    about: "for tests",
    python: "3.9",
    packages: ["tiny_torch==1.0"],
    lock: pathToFileURL(lock),
    diskBytes: 2 ** 20,
    imports: ["tiny_torch", "galatea_frameworks.tiny"],
  };
  return row;
}

function options(row: Framework, lines: string[], more: Partial<AddOptions> = {}): AddOptions {
  return {
    framework: row,
    directory: join(directory, "frameworks"),
    wheels,
    anyBuild: false,
    pythons: ["python3.11", "python3"],
    env: { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: homedir(), LANG: "C.UTF-8" },
    clock: systemClock,
    onProgress: (line) => lines.push(line),
    signal: AbortSignal.timeout(testTimeoutMs),
    ...more,
  };
}

async function versionIn(python: string, name: string): Promise<string> {
  return (await run(python, ["-c", `import ${name}; print(${name}.version)`])).stdout.trim();
}

test("a framework is rejected for Python versions that have no wheels of it", async () => {
  const row = { ...(await framework("old")), newestPython: "3.10" };
  await assert.rejects(addFramework(options(row, [])), {
    message: /^no Python 3\.9 to 3\.10 was found \(looked for python3\.11, python3\)\. Install it with: /,
  });
});

test("a framework is set up once, from a directory of wheels, and removed", async () => {
  const row = await framework("whole");
  const lines: string[] = [];
  const expected = options(row, lines);
  const [location, same] = await Promise.all([addFramework(expected), addFramework(expected)]);
  assert.deepEqual(location, same);
  assert.equal(await versionIn(location.python, "tiny_torch"), "1.0");
  assert.deepEqual(
    lines.filter((line) => / of 2 /.test(line)),
    [
      "1 of 2 (0 MiB of 400 MiB are already downloaded): tiny_base 1.0",
      "2 of 2 (200 MiB of 400 MiB are already downloaded): tiny_torch 1.0",
    ],
  );
  assert.deepEqual(await findFramework([expected.directory], row), location);
  assert.equal(await removeFramework(expected), true);
  assert.equal(await findFramework([expected.directory], row), null);
  assert.equal(await stat(location.directory).catch(() => null), null);
  assert.equal(await removeFramework(expected), false);
});

test("an interrupted installation continues, and a half-installed package is installed again", async () => {
  const row = await framework("resumed");
  const stopping = new AbortController();
  const stopped = options(row, [], {
    signal: stopping.signal,
    onProgress: (line) => line.startsWith("2 of 2") && stopping.abort(new Error("stopped here")),
  });
  await assert.rejects(addFramework(stopped), /stopped here/);
  assert.equal(await findFramework([stopped.directory], row), null);
  const [entry] = (await readdir(stopped.directory)).filter((one) => one.startsWith("resumed-"));
  const python = join(stopped.directory, entry!, "bin", "python");
  const packages = (await run(python, ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])).stdout.trim();
  const info = join(packages, "tiny_torch-1.0.dist-info");
  await mkdir(info, { recursive: true });
  await writeFile(join(info, "METADATA"), "Metadata-Version: 2.1\nName: tiny_torch\nVersion: 1.0\n");
  const lines: string[] = [];
  const location = await addFramework(options(row, lines));
  assert.deepEqual(
    lines.filter((line) => / of 2 /.test(line)),
    ["2 of 2 (200 MiB of 400 MiB are already downloaded): tiny_torch 1.0"],
  );
  assert.deepEqual(await Promise.all(["tiny_base", "tiny_torch"].map((name) => versionIn(location.python, name))), [
    "1.0",
    "1.0",
  ]);
});

test("a wheel that differs from the lock is rejected, and accepted where any build is allowed", async () => {
  const row = await framework("sums", [{ name: "tiny_torch", sha256: "0".repeat(64) }]);
  await assert.rejects(addFramework(options(row, [])), /making the Python environment failed: .*pip install/s);
  assert.equal(await findFramework([join(directory, "frameworks")], row), null);
  const location = await addFramework(options(row, [], { anyBuild: true }));
  assert.equal(await versionIn(location.python, "tiny_torch"), "1.0");
});

test("an environment that cannot be imported is not set up", async () => {
  const row = { ...(await framework("broken", [{ name: "tiny_base" }])), imports: ["tiny_torch"] };
  await assert.rejects(addFramework(options(row, [])), /No module named 'tiny_torch'/);
  assert.equal(await findFramework([join(directory, "frameworks")], row), null);
});

test("too little disk space is reported before any download", async () => {
  const row = { ...(await framework("large")), diskBytes: 2 ** 60 };
  const lines: string[] = [];
  await assert.rejects(
    addFramework(options(row, lines)),
    /large takes up to \d+ MiB, and '.*' has \d+ MiB left; --data /,
  );
  assert.deepEqual(lines, []);
});

test("the environment of an earlier lock is removed once its successor exists", async () => {
  const row = await framework("renewed", [{ name: "tiny_torch" }]);
  const former = join(directory, "frameworks", "renewed-000000000000");
  const others = join(directory, "frameworks", "renewed-else");
  for (const one of [former, others]) await mkdir(one, { recursive: true });
  await addFramework(options(row, []));
  assert.equal(await stat(former).catch(() => null), null);
  assert.ok(await stat(others));
});

test("an environment below a data directory is found through the machine-wide link, and a dangling link is replaced", async () => {
  const row = await framework("linked");
  const machine = join(directory, "machine");
  const [first, second] = [join(directory, "first/frameworks"), join(directory, "second/frameworks")];
  const location = await addFramework(options(row, [], { directory: first }));
  assert.equal(await findFramework([second, machine], row), null);
  await linkFramework(machine, row, location);
  const found = await findFramework([second, machine], row);
  assert.equal(await versionIn(found!.python, "tiny_torch"), "1.0");
  await rm(first, { recursive: true });
  assert.equal(await findFramework([second, machine], row), null);
  await linkFramework(machine, row, await addFramework(options(row, [], { directory: second })));
  assert.notEqual(await findFramework([machine], row), null);
  // Removing the framework from the machine's directory removes only the link.
  assert.equal(await removeFramework(options(row, [], { directory: machine })), true);
  assert.notEqual(await findFramework([second], row), null);
  assert.deepEqual(
    (await readdir(machine)).filter((name) => name.startsWith("linked")),
    [],
  );
});
