import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { frameworkByName } from "./frameworks/framework-rows.ts";
import { frameworkLocation } from "./frameworks/framework-store.ts";
import { frameworkRunners } from "./runners.ts";

test("a framework that is not set up is rejected with the command to set it up; one that is set up has its runner", async (t) => {
  const data = await mkdtemp(join(tmpdir(), "galatea-runners-"));
  t.after(() => rm(data, { recursive: true, force: true }));
  const environments = join(data, "frameworks");
  const machines = join(data, "machine");
  const find = frameworkRunners({ workers: "/workers", environments: [environments, machines], gpuCount: 0 });
  assert.equal(await find("nobodys"), null);
  await assert.rejects(find("pytorch"), {
    code: "UNAVAILABLE",
    message:
      `unable to find backend library for backend 'pytorch': its packages are not set up in '${environments}' or '${machines}'. ` +
      "Do it once with: galatea model add pytorch",
  });
  const { directory } = await frameworkLocation(machines, frameworkByName("pytorch")!);
  await mkdir(directory, { recursive: true });
  // The environment's creation has begun and is not complete, so no model may run in it.
  await assert.rejects(find("pytorch"), { code: "UNAVAILABLE" });
  await writeFile(join(directory, "ready"), "");
  assert.deepEqual(await find("pytorch"), {
    directory: "/workers/galatea_frameworks/pytorch",
    filename: "model.py",
    mapsFiles: true,
    environment: { directory, imports: frameworkByName("pytorch")!.imports },
  });
  // Scripts for PyTorch use the same environment as PyTorch models.
  const scripts = await find("pytorch_script");
  assert.equal(scripts?.directory, "/workers/galatea_frameworks/pytorch_script");
  assert.equal(scripts.environment?.directory, directory);
});

test("with a GPU, TensorFlow models run in the GPU build if it is set up; models without GPU support use the other build", async (t) => {
  const environments = await mkdtemp(join(tmpdir(), "galatea-runners-"));
  t.after(() => rm(environments, { recursive: true, force: true }));
  const make = async (name: string) => {
    const { directory } = await frameworkLocation(environments, frameworkByName(name)!);
    await mkdir(directory);
    await writeFile(join(directory, "ready"), "");
    return directory;
  };
  const requestedEnvironment = async (backend: string, gpuCount: number) =>
    (await frameworkRunners({ workers: "/workers", environments: [environments], gpuCount })(backend))?.environment
      ?.directory;
  const forCpu = await make("tensorflow");
  assert.equal(await requestedEnvironment("tensorflow", 1), forCpu);
  const forGpus = await make("tensorflow-gpu");
  assert.equal(await requestedEnvironment("tensorflow", 1), forGpus);
  assert.equal(await requestedEnvironment("tensorflow", 0), forCpu);
  assert.equal(await requestedEnvironment("tensorflow_serving", 1), forCpu);
});

test("TensorRT's runner exists if there is a GPU, and uses the Python models' environment", async () => {
  const locations = { workers: "/workers", environments: ["/nowhere"] };
  assert.equal(await frameworkRunners({ ...locations, gpuCount: 0 })("tensorrt"), null);
  assert.deepEqual(await frameworkRunners({ ...locations, gpuCount: 1 })("tensorrt"), {
    directory: "/workers/galatea_frameworks/tensorrt",
    filename: "model.py",
    mapsFiles: false,
    environment: null,
  });
});
