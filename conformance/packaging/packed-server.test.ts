/** The package as it is published: built, packed, installed into an empty directory by plain `npm i`, and started there. */
import assert from "node:assert/strict";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { freePorts, inherited, launch } from "../environments/index.ts";
import { runToExit } from "../environments/launch.ts";
import { ask } from "../faults/asking.ts";
import { harmless, writeModel } from "../faults/onnx-models.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const installedBytesMax = 120_000_000;
const commandTimeoutMs = 300_000;

let directory: string;
let packages: string;

before(async () => {
  directory = await mkdtemp(join(tmpdir(), "galatea-packed-"));
  await run(root, [process.execPath, join(root, "scripts/build.ts")]);
  await run(root, ["npm", "pack", "./dist/galatea", "--pack-destination", directory]);
  const [packed, ...others] = await readdir(directory);
  assert.deepEqual(others, []);
  packages = join(directory, "installed");
  await mkdir(packages);
  await run(packages, ["npm", "i", join(directory, packed ?? "")]);
});

after(() => rm(directory, { recursive: true, force: true }));

/** Runs a command to its end in `cwd`, with the user's and the machine's npm settings and without those that `npm run` adds for its scripts: this checkout's own forbids install scripts. */
async function run(cwd: string, command: readonly string[]): Promise<void> {
  const handedOn = /^npm_(?!config_(registry|cache|userconfig|globalconfig)$)/;
  const env = Object.fromEntries(Object.entries(inherited()).filter(([name]) => !handedOn.test(name)));
  const path = [join(root, "node_modules/.bin"), env["PATH"]].join(delimiter);
  const result = await runToExit("env", ["-C", cwd, ...command], { ...env, PATH: path }, commandTimeoutMs);
  assert.equal(result.exitCode, 0, `${command.join(" ")}: ${result.stdout}${result.stderr}`);
}

test("plain `npm i` of the packed server takes less than 120 MB, and runs no install script", async () => {
  const lock = JSON.parse(await readFile(join(packages, "node_modules/.package-lock.json"), "utf8")) as {
    readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>;
  };
  const scripted = Object.entries(lock.packages).filter(([, each]) => each.hasInstallScript === true);
  assert.deepEqual(scripted, []);
  const files = await readdir(join(packages, "node_modules"), { recursive: true, withFileTypes: true });
  const sizes = await Promise.all(
    files.filter((each) => each.isFile()).map(async (each) => (await stat(join(each.parentPath, each.name))).size),
  );
  const installedBytes = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(installedBytes < installedBytesMax, `${installedBytes} bytes installed`);
});

test("the packed server carries the ONNX Runtime library for both platforms, with its license", async () => {
  const carried = join(packages, "node_modules/galatea/node_modules/@galatea/server/src/native/onnxruntime/linux");
  // Bytes 18 and 19 of an ELF file are its machine: 62 is x86-64, 183 is AArch64.
  for (const [arch, machine] of [
    ["x64", 62],
    ["arm64", 183],
  ] as const)
    assert.equal((await readFile(join(carried, arch, "libonnxruntime.so.1"))).readUInt16LE(18), machine);
  assert.match(
    await readFile(
      join(packages, "node_modules/galatea/node_modules/@galatea/server/licenses/onnxruntime.txt"),
      "utf8",
    ),
    /MIT License/,
  );
});

test("the packed server runs an ONNX model", async () => {
  const repository = join(directory, "models");
  await mkdir(join(repository, "negate", "1"), { recursive: true });
  const inputs = [{ name: "x", type: "FLOAT", dims: [2] }] as const;
  await writeModel(join(repository, "negate", "1", "model.onnx"), { ...harmless, inputs });
  await writeFile(join(repository, "negate", "config.pbtxt"), `backend: "onnxruntime"`);
  const [httpPort = 0] = await freePorts(1);
  const server = await launch({
    kind: "galatea",
    command: process.execPath,
    arguments: [
      join(packages, "node_modules/galatea/bin/galatea.js"),
      "serve",
      `--model-repository=${repository}`,
      `--data=${join(directory, "data")}`,
      "--http-address=127.0.0.1",
      `--http-port=${httpPort}`,
      "--allow-grpc=false",
      "--allow-metrics=false",
    ],
    env: inherited(),
    ports: { httpPort, grpcPort: 0, metricsPort: 0, sagemakerPort: 0 },
    readyTexts: [`Started HTTPService at 127.0.0.1:${httpPort}`],
    readyTimeoutMs: 60_000,
    signal: undefined,
    cleanUp: async () => {},
  });
  try {
    const body = JSON.stringify({ inputs: [{ name: "x", datatype: "FP32", shape: [2], data: [1, 2] }] });
    const answer = await ask(httpPort, { path: "/v2/models/negate/infer", body });
    assert.equal(answer.status, 200, answer.body.toString());
    const { outputs } = JSON.parse(answer.body.toString()) as { outputs: { data: number[] }[] };
    assert.deepEqual(outputs[0]?.data, [-1, -2]);
  } finally {
    assert.equal(await server.stop(), 0, server.log());
  }
});
