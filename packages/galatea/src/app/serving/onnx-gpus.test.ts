import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { createLogger } from "@galatea/base";
import { frameworkByName, frameworkLocation } from "@galatea/server/backends/python";
import { backendsWithoutGpus, findOnnxGpuLibrary } from "./onnx-gpus.ts";

let data: string;

before(async () => {
  data = await mkdtemp(join(tmpdir(), "galatea-onnx-gpus-"));
});

after(() => rm(data, { recursive: true }));

test("the GPU build of ONNX Runtime is found in the installed environment, and LD_LIBRARY_PATH has the CUDA libraries", async () => {
  const frameworks = join(data, "frameworks");
  const directories = { frameworks: [frameworks] };
  const warnings: string[] = [];
  const without = backendsWithoutGpus(
    directories,
    createLogger((level, message) => warnings.push(`${level}: ${message}`)),
  );
  const looked = { directories, env: { PATH: "/bin", LD_LIBRARY_PATH: "/opt/tensorrt/lib" } };
  await assert.rejects(findOnnxGpuLibrary(looked), {
    code: "UNAVAILABLE",
    message: `ONNX Runtime for GPUs is not set up in '${frameworks}'. Do it once with: galatea model add onnxruntime-gpu`,
  });
  assert.deepEqual(
    [[...(await without())], [...(await without())]],
    [
      ["onnxruntime", "tensorflow"],
      ["onnxruntime", "tensorflow"],
    ],
  );
  assert.deepEqual(warnings, [
    "warning: models of backend 'onnxruntime' without KIND_GPU run on the CPU, and on the GPUs after: galatea model add onnxruntime-gpu",
    "warning: models of backend 'tensorflow' without KIND_GPU run on the CPU, and on the GPUs after: galatea model add tensorflow-gpu",
  ]);

  const location = await frameworkLocation(frameworks, frameworkByName("onnxruntime-gpu")!);
  const packages = join(location.directory, "lib", "python3.11", "site-packages");
  await mkdir(packages, { recursive: true });
  await writeFile(join(location.directory, "ready"), "");
  await assert.rejects(findOnnxGpuLibrary(looked), {
    code: "UNAVAILABLE",
    message: /contains no libonnxruntime\.so: /,
  });

  for (const each of ["nvidia/cudnn/lib/libcudnn.so.9", "nvidia/cu13/lib/libcudart.so.13"]) {
    await mkdir(dirname(join(packages, each)), { recursive: true });
    await writeFile(join(packages, each), "");
  }
  const capi = join(packages, "onnxruntime", "capi");
  await mkdir(capi, { recursive: true });
  for (const each of ["libonnxruntime_providers_cuda.so", "libonnxruntime.so.1.30.0"])
    await writeFile(join(capi, each), "");
  assert.deepEqual(await findOnnxGpuLibrary(looked), {
    libraryPath: join(capi, "libonnxruntime.so.1.30.0"),
    processEnv: {
      PATH: "/bin",
      CUDA_DEVICE_ORDER: "PCI_BUS_ID",
      LD_LIBRARY_PATH: [
        capi,
        join(packages, "nvidia/cu13/lib"),
        join(packages, "nvidia/cudnn/lib"),
        "/opt/tensorrt/lib",
      ].join(":"),
    },
  });
  assert.deepEqual([...(await without())], ["tensorflow"]);
});
