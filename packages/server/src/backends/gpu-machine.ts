import { access, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** What of a machine TensorRT needs, as far as it is there: the names of libraries as the loader knows them. */
export interface GpuMachine {
  readonly hasGpu: boolean;
  readonly driver: string | null;
  readonly tensorRt: string | null;
}

/** The device that NVIDIA's kernel module makes. */
const device = "dev/nvidiactl";
const loaderCache = "etc/ld.so.cache";
/** Where the loader looks without a cache, and where NVIDIA's containers and packages put libraries. */
const libraryDirectories = [
  "lib64",
  "usr/lib64",
  "usr/lib/x86_64-linux-gnu",
  "usr/lib/aarch64-linux-gnu",
  "usr/local/nvidia/lib64",
  "usr/local/cuda/compat",
  "usr/local/tensorrt/lib",
];

/** Looks, and loads nothing: libraries of gigabytes are not opened to be told of. `root` is the machine's file system. */
export async function lookForGpu(root = "/"): Promise<GpuMachine> {
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

/** What of it is missing, each with the name under which it is looked for; none where TensorRT can run. */
export function missingForTensorRt({ hasGpu, driver, tensorRt }: GpuMachine): readonly string[] {
  return [
    ...(hasGpu ? [] : [`an NVIDIA GPU (/${device})`]),
    ...(driver === null ? ["NVIDIA's driver (libcuda.so.1)"] : []),
    ...(tensorRt === null ? ["TensorRT (libnvinfer.so)"] : []),
  ];
}
