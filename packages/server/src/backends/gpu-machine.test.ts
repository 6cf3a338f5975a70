import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findGpuLibraries, missingTensorRtPrerequisites } from "./gpu-machine.ts";

test("TensorRT's libraries are found by their loader names, and missing ones are named", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "galatea-gpu-"));
  t.after(() => rm(root, { recursive: true }));
  const bare = await findGpuLibraries(root);
  assert.deepEqual(bare, { hasGpu: false, driver: null, tensorRt: null });
  assert.deepEqual(missingTensorRtPrerequisites(bare), [
    "an NVIDIA GPU (/dev/nvidiactl)",
    "NVIDIA's driver (libcuda.so.1)",
    "TensorRT (libnvinfer.so)",
  ]);
  for (const directory of ["dev", "etc", "usr/lib/x86_64-linux-gnu"])
    await mkdir(join(root, directory), { recursive: true });
  await writeFile(join(root, "dev/nvidiactl"), "");
  await writeFile(join(root, "etc/ld.so.cache"), "glibc-ld.so.cache1.1\0libcuda.so.1\0/usr/lib/libcuda.so.1\0");
  assert.deepEqual(missingTensorRtPrerequisites(await findGpuLibraries(root)), ["TensorRT (libnvinfer.so)"]);
  await writeFile(join(root, "usr/lib/x86_64-linux-gnu/libnvinfer.so.10"), "");
  const complete = await findGpuLibraries(root);
  assert.deepEqual(complete, { hasGpu: true, driver: "libcuda.so.1", tensorRt: "libnvinfer.so.10" });
  assert.deepEqual(missingTensorRtPrerequisites(complete), []);
});
