import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** TensorRT's prerequisites on a machine. Each library is the name under which the dynamic loader finds it; null if absent. */
export interface GpuMachine {
  readonly hasGpu: boolean;
  readonly driver: string | null;
  readonly tensorRt: string | null;
}

/** Path of the device file of NVIDIA's kernel module. */
const device = "dev/nvidiactl";
const loaderCache = "etc/ld.so.cache";
/** The loader's default directories, and those in which NVIDIA's containers and packages install libraries. */
const libraryDirectories = [
  "lib64",
  "usr/lib64",
  "usr/lib/x86_64-linux-gnu",
  "usr/lib/aarch64-linux-gnu",
  "usr/local/nvidia/lib64",
  "usr/local/cuda/compat",
  "usr/local/tensorrt/lib",
];

/** Searches for the libraries without loading them, because they are gigabytes large. `root` is the machine's file system. */
export async function findGpuLibraries(root = "/"): Promise<GpuMachine> {
  const cache = await readFile(join(root, loaderCache), "latin1").catch(() => "");
  const listed = await Promise.all(libraryDirectories.map((each) => readdir(join(root, each)).catch(() => [])));
  const files = listed.flat();
  const library = (name: RegExp) => name.exec(cache)?.[0] ?? files.find((file) => name.test(file)) ?? null;
  const hasGpu = await access(join(root, device)).then(
    () => true,
    () => false,
  );
  return { hasGpu, driver: library(/libcuda\.so\.1/), tensorRt: library(/libnvinfer\.so\.\d+/) };
}

/** Returns the names of the missing prerequisites; none when TensorRT can run. */
export function missingTensorRtPrerequisites({ hasGpu, driver, tensorRt }: GpuMachine): readonly string[] {
  return [
    ...(hasGpu ? [] : [`an NVIDIA GPU (/${device})`]),
    ...(driver === null ? ["NVIDIA's driver (libcuda.so.1)"] : []),
    ...(tensorRt === null ? ["TensorRT (libnvinfer.so)"] : []),
  ];
}
