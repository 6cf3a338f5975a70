import { koffi } from "@galatea/base/system";

/** The handle of a GPU, an address. */
export type NvmlDevice = bigint;

/**
 * Functions of NVIDIA's management library (NVML). Each returns a status, 0 for success, and writes its result to the given memory. A call
 * may block in the driver for any time.
 */
export interface NvmlCalls {
  init(): number;
  errorText(status: number): string;
  /** Writes the number of GPUs. */
  deviceCount(count: Uint32Array): number;
  /** Writes the handle of a GPU. */
  deviceByIndex(index: number, device: BigUint64Array): number;
  /** Writes the UUID as a zero-terminated text. */
  uuid(device: NvmlDevice, text: Uint8Array, byteLength: number): number;
  /** Writes an nvmlMemory_t: total, free and used bytes. */
  memory(device: NvmlDevice, bytes: BigUint64Array): number;
  /** Writes an nvmlUtilization_t: percent of the time in which kernels ran, and in which memory was read or written. */
  utilization(device: NvmlDevice, percents: Uint32Array): number;
  /** Writes the power draw in milliwatts. */
  powerUsage(device: NvmlDevice, milliwatts: Uint32Array): number;
  powerLimit(device: NvmlDevice, milliwatts: Uint32Array): number;
  /** Writes the consumed energy in millijoules since the driver was loaded. */
  energy(device: NvmlDevice, millijoules: BigUint64Array): number;
  /** Writes an nvmlProcessInfo_t for each process, and their number to `count`, which contains the capacity before the call. */
  processes(device: NvmlDevice, count: Uint32Array, infos: BigUint64Array): number;
}

/** File name of the library, as the driver installs it. */
const nvmlLibrary = "libnvidia-ml.so.1";

/** Loads the library. Throws when it cannot be loaded, or is too old to have one of these functions. */
export function openNvmlCalls(library: string = nvmlLibrary): NvmlCalls {
  const nvml = load(library);
  const errorString = nvml.func("const char *nvmlErrorString(int status)");
  return {
    init: nvml.func("int nvmlInit_v2()") as NvmlCalls["init"],
    errorText: (status) => String(errorString(status)),
    deviceCount: nvml.func("int nvmlDeviceGetCount_v2(void *count)") as NvmlCalls["deviceCount"],
    deviceByIndex: nvml.func(
      "int nvmlDeviceGetHandleByIndex_v2(uint32_t index, void *device)",
    ) as NvmlCalls["deviceByIndex"],
    uuid: nvml.func("int nvmlDeviceGetUUID(void *device, void *text, uint32_t length)") as NvmlCalls["uuid"],
    memory: nvml.func("int nvmlDeviceGetMemoryInfo(void *device, void *memory)") as NvmlCalls["memory"],
    utilization: nvml.func(
      "int nvmlDeviceGetUtilizationRates(void *device, void *utilization)",
    ) as NvmlCalls["utilization"],
    powerUsage: nvml.func("int nvmlDeviceGetPowerUsage(void *device, void *power)") as NvmlCalls["powerUsage"],
    powerLimit: nvml.func(
      "int nvmlDeviceGetPowerManagementLimit(void *device, void *limit)",
    ) as NvmlCalls["powerLimit"],
    energy: nvml.func("int nvmlDeviceGetTotalEnergyConsumption(void *device, void *energy)") as NvmlCalls["energy"],
    processes: nvml.func(
      "int nvmlDeviceGetComputeRunningProcesses_v3(void *device, void *count, void *infos)",
    ) as NvmlCalls["processes"],
  };
}

function load(library: string): ReturnType<typeof koffi.load> {
  try {
    return koffi.load(library);
  } catch (error) {
    throw new Error(`${library}: ${(error as Error).message}`, { cause: error });
  }
}
