import type { NvmlCalls, NvmlDevice } from "./nvml-calls.ts";

/** The readings of one GPU at one time. A null value is not available for this kind of GPU, or for this user. */
export interface GpuReading {
  /** Number of the GPU in the order CUDA_DEVICE_ORDER=PCI_BUS_ID. */
  readonly index: number;
  readonly uuid: string;
  readonly memoryTotalBytes: number | null;
  readonly memoryUsedBytes: number | null;
  /** Fraction of the driver's last sampling period in which a kernel ran, from 0 to 1. */
  readonly utilization: number | null;
  readonly powerWatts: number | null;
  readonly powerLimitWatts: number | null;
  /** Consumed energy in joules since the driver was loaded. */
  readonly energyJoules: number | null;
  /** GPU memory in bytes of each process that computes on this GPU; 0 when unknown. Process ids are in the caller's pid namespace. */
  readonly processes: readonly { readonly pid: number; readonly memoryBytes: number }[];
}

/** A failed call: the driver was unloaded (all GPUs are affected), or a GPU is lost. */
export class NvmlError extends Error {
  constructor(call: string, text: string) {
    super(`${call}: ${text}`);
    this.name = "NvmlError";
  }
}

const success = 0;
/**
 * Statuses that mean that a value is not available for this GPU or user: NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, INSUFFICIENT_SIZE (more
 * processes than the buffer can hold), FUNCTION_NOT_FOUND, NO_DATA.
 */
const unanswered: ReadonlySet<number> = new Set([3, 4, 6, 7, 13, 21]);
const uuidBytes = 96;
/** Maximum number of processes per GPU. A GPU with more processes reports none. */
const processesMax = 1024;
/** Number of 64-bit words of an nvmlProcessInfo_t: the process id, the bytes, and two 32-bit numbers. */
const processWords = 3;
const unknownBytes = 0xffff_ffff_ffff_ffffn;

/** Reads all GPUs that are visible to this process through NVIDIA's management library. Each call waits for the driver. */
export class Nvml {
  readonly #calls: NvmlCalls;
  readonly #devices: readonly { readonly device: NvmlDevice; readonly uuid: string; readonly index: number }[];

  /** Throws NvmlError when the driver fails. */
  constructor(calls: NvmlCalls) {
    this.#calls = calls;
    this.#check("nvmlInit", calls.init());
    const count = new Uint32Array(1);
    this.#check("nvmlDeviceGetCount", calls.deviceCount(count));
    this.#devices = Array.from({ length: count[0]! }, (_, index) => {
      const device = new BigUint64Array(1);
      this.#check("nvmlDeviceGetHandleByIndex", calls.deviceByIndex(index, device));
      const text = new Uint8Array(uuidBytes);
      this.#check("nvmlDeviceGetUUID", calls.uuid(device[0]!, text, text.byteLength));
      const uuid = new TextDecoder().decode(text.subarray(0, text.indexOf(0)));
      return { device: device[0]!, uuid, index };
    });
  }

  /** Reads all GPUs. Throws NvmlError. */
  read(): readonly GpuReading[] {
    const calls = this.#calls;
    return this.#devices.map(({ device, uuid, index }) => {
      const memory = this.#query("nvmlDeviceGetMemoryInfo", new BigUint64Array(3), (to) => calls.memory(device, to));
      const rates = this.#query("nvmlDeviceGetUtilizationRates", new Uint32Array(2), (to) =>
        calls.utilization(device, to),
      );
      const power = this.#query("nvmlDeviceGetPowerUsage", new Uint32Array(1), (to) => calls.powerUsage(device, to));
      const limit = this.#query("nvmlDeviceGetPowerManagementLimit", new Uint32Array(1), (to) =>
        calls.powerLimit(device, to),
      );
      const energy = this.#query("nvmlDeviceGetTotalEnergyConsumption", new BigUint64Array(1), (to) =>
        calls.energy(device, to),
      );
      return {
        index,
        uuid,
        memoryTotalBytes: memory === null ? null : Number(memory[0]),
        memoryUsedBytes: memory === null ? null : Number(memory[2]),
        utilization: rates === null ? null : rates[0]! / 100,
        powerWatts: power === null ? null : power[0]! / 1000,
        powerLimitWatts: limit === null ? null : limit[0]! / 1000,
        energyJoules: energy === null ? null : Number(energy[0]) / 1000,
        processes: this.#processes(device),
      };
    });
  }

  #processes(device: NvmlDevice): GpuReading["processes"] {
    const count = new Uint32Array([processesMax]);
    const infos = this.#query(
      "nvmlDeviceGetComputeRunningProcesses",
      new BigUint64Array(processesMax * processWords),
      (to) => this.#calls.processes(device, count, to),
    );
    if (infos === null) return [];
    return Array.from({ length: count[0]! }, (_, position) => {
      const bytes = infos[position * processWords + 1]!;
      return {
        pid: Number(infos[position * processWords]! & 0xffff_ffffn),
        memoryBytes: bytes === unknownBytes ? 0 : Number(bytes),
      };
    });
  }

  #query<Memory>(call: string, memory: Memory, request: (memory: Memory) => number): Memory | null {
    const status = request(memory);
    if (unanswered.has(status)) return null;
    this.#check(call, status);
    return memory;
  }

  #check(call: string, status: number): void {
    if (status !== success) throw new NvmlError(call, this.#calls.errorText(status));
  }
}
