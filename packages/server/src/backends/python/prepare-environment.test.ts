import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "@galatea/base";
import { lockDirectory } from "@galatea/base/processes";
import { preparePythonEnvironment, type PrepareOptions } from "./index.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const run = promisify(execFile);
const systemPath = "/usr/local/bin:/usr/bin:/bin";
const startDirectory = process.cwd();

let directory: string;
/** Directory of the real uv program, from uv's package on PyPI. */
let uvDirectory: string;
/** A package with one module, so that no test needs a package index. */
let wheel: string;

const writeWheel = `import sys, zipfile
info = "probe_wheel-1.0.dist-info/"
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("probe_wheel.py", "")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: probe-wheel\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "probe_wheel.py,,\\n%sMETADATA,,\\n%sWHEEL,,\\n%sRECORD,,\\n" % (info, info, info))
`;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-prepare-"));
  wheel = join(directory, "probe_wheel-1.0-py3-none-any.whl");
  await run("python3", ["-c", writeWheel, wheel]);
  const kept = join(homedir(), ".cache/galatea/python-test");
  uvDirectory = dirname(await preparePythonEnvironment({ ...options([]), dataDirectory: kept, packages: ["uv<1"] }));
});

after(async () => {
  process.chdir(startDirectory);
  await rm(directory, { recursive: true, force: true });
});

function options(lines: string[], env: Readonly<Record<string, string>> = {}): PrepareOptions {
  return {
    dataDirectory: join(directory, "data"),
    packages: [wheel],
    wheelsOnly: false,
    pythons: ["python3.11", "python3"],
    env: { PATH: systemPath, HOME: homedir(), LANG: "C.UTF-8", ...env },
    clock: systemClock,
    onProgress: (line) => lines.push(line),
    signal: AbortSignal.timeout(testTimeoutMs),
  };
}

/** Options with a new data directory, and with uv first in PATH. */
function withUv(name: string, lines: string[], env: Readonly<Record<string, string>> = {}): PrepareOptions {
  const path = `${uvDirectory}:${systemPath}`;
  return { ...options(lines, { PATH: path, ...env }), dataDirectory: join(directory, name) };
}

async function maker(python: string): Promise<"uv" | "venv"> {
  const text = await readFile(join(dirname(python), "..", "pyvenv.cfg"), "utf8");
  return /^uv = /m.test(text) ? "uv" : "venv";
}

test("uv creates the environment if it is installed, whatever project the program was started in", async () => {
  await writeFile(join(directory, "uv.toml"), 'required-version = "<0.1"\n');
  await writeFile(join(directory, "venv.py"), "raise SystemExit('imported from the working directory')\n");
  process.chdir(directory);
  const lines: string[] = [];
  const expected = withUv("with-uv", lines);
  const [python, other] = await Promise.all([preparePythonEnvironment(expected), preparePythonEnvironment(expected)]);
  assert.equal(python, other);
  assert.equal(await maker(python), "uv", lines.join("\n"));
  assert.match(lines.join("\n"), /^making the Python environment with uv and \/\S+$/m);
  assert.ok(lines.includes("waiting for another process that makes the Python environment"), lines.join("\n"));
  const { stdout } = await run(python, ["-c", "import probe_wheel; print(probe_wheel.__cached__)"], { env: {} });
  assert.ok((await stat(stdout.trim())).isFile(), "it was not compiled");
  assert.equal((await readdir(dirname(dirname(dirname(python))))).length, 2, "more than the environment and the lock");
  const again: string[] = [];
  assert.equal(await preparePythonEnvironment({ ...expected, onProgress: (line) => again.push(line) }), python);
  assert.deepEqual(again, []);
});

test("an environment that uv cannot create is created by pip, and both are logged", async () => {
  const lines: string[] = [];
  const python = await preparePythonEnvironment(withUv("no-cache", lines, { UV_CACHE_DIR: "/proc/none" }));
  assert.equal(await maker(python), "venv");
  await run(python, ["-c", "import probe_wheel"], { env: {} });
  assert.match(lines.join("\n"), /^making the Python environment failed: .* \(uv --quiet .*: exit code 2\)$/m);
  assert.ok(lines.includes("uv could not make the Python environment; pip is tried instead"), lines.join("\n"));
});

test("a package index that only pip is configured with is used", async () => {
  const env = { PIP_INDEX_URL: "http://127.0.0.1:1/simple", PIP_RETRIES: "0", PIP_CONFIG_FILE: "/dev/null" };
  const lines: string[] = [];
  await assert.rejects(
    preparePythonEnvironment({ ...withUv("own-index", lines, env), packages: ["six"] }),
    /^Error: making the Python environment failed: No matching distribution found for six; .* \(\S+ -m pip install .* six: exit code 1\)$/,
  );
  assert.match(lines[0] ?? "", /^making the Python environment with \/\S+ -m venv$/);
});

test("an interpreter that is too old or missing is skipped; without any the error says what to install", async () => {
  const lines: string[] = [];
  await assert.rejects(
    preparePythonEnvironment({ ...withUv("none", lines), pythons: ["/bin/false", "python-of-nobody"] }),
    { message: /^no Python 3\.9 or newer was found \(looked for \/bin\/false, python-of-nobody\)\. Install it with: / },
  );
});

test("an incomplete environment is created again, by one of several callers", async () => {
  const one = withUv("cut-short", []);
  const path = await preparePythonEnvironment(one);
  await rm(join(dirname(path), "..", "ready"));
  await writeFile(join(dirname(path), "..", "left-over"), "");
  assert.deepEqual(await Promise.all([one, one, one].map(preparePythonEnvironment)), [path, path, path]);
  await assert.rejects(stat(join(dirname(path), "..", "left-over")), { code: "ENOENT" });
});

test("a lock that cannot be taken is an error with its directory, and waiting for it ends with its signal", async () => {
  const one = { ...options([]), dataDirectory: join(directory, "unreadable") };
  const parent = join(one.dataDirectory, "python");
  // A directory in place of the lock file causes an error. Permissions would not, because root may read any file.
  await mkdir(join(parent, "lock"), { recursive: true });
  await assert.rejects(preparePythonEnvironment(one), {
    message: `the directory ${parent} cannot be locked: unable to open database file`,
  });
  await rm(join(parent, "lock"), { recursive: true });
  using _held = lockDirectory(parent);
  await assert.rejects(preparePythonEnvironment({ ...one, signal: AbortSignal.timeout(50) }), { name: "TimeoutError" });
});

test("installers import no module from PYTHONPATH or the user's site directory", async () => {
  const mark = join(directory, "ran");
  const run = (which: string) => `open(${JSON.stringify(`${mark}-${which}`)}, "w")`;
  const path = join(directory, "modules");
  await mkdir(path);
  await writeFile(join(path, "sitecustomize.py"), run("sitecustomize"));
  const home = join(directory, "home");
  const versions = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"];
  for (const version of versions) {
    const site = join(home, ".local", "lib", `python${version}`, "site-packages");
    await mkdir(site, { recursive: true });
    await writeFile(join(site, "any.pth"), `import sys; ${run("pth")}\n`);
  }
  const env = { PYTHONPATH: path, HOME: home };
  await preparePythonEnvironment({ ...options([], env), dataDirectory: join(directory, "foreign") });
  assert.deepEqual(
    (await readdir(directory)).filter((name) => name.startsWith("ran-")),
    [],
  );
});
