import type { NvmlCalls } from "../native/index.ts";

/** A simulated GPU, in the units of NVIDIA's management library. */
export interface FakeGpu {
  readonly uuid: string;
  readonly memory: readonly [total: bigint, free: bigint, used: bigint];
  readonly percents: readonly [gpu: number, memory: number];
  readonly milliwatts: number;
  readonly limitMilliwatts: number;
  readonly millijoules: bigint;
  readonly processes: readonly (readonly [pid: number, bytes: bigint])[];
  /** Statuses to return instead of success, by function. */
  readonly statuses?: Partial<Readonly<Record<keyof NvmlCalls, number>>>;
}

/** Simulates NVIDIA's management library on a machine without GPUs. Like the real library, it writes results to the caller's memory. */
export function fakeNvml(gpus: readonly FakeGpu[], statuses: FakeGpu["statuses"] = {}): NvmlCalls {
  const of = (device: bigint) => gpus[Number(device - 1000n)]!;
  const write =
    (call: keyof NvmlCalls, values: (gpu: FakeGpu) => readonly (number | bigint)[]) =>
    (device: bigint, memory: Uint32Array | BigUint64Array): number => {
      const status = of(device).statuses?.[call] ?? 0;
      if (status === 0) values(of(device)).forEach((value, position) => (memory[position] = value));
      return status;
    };
  return {
    init: () => statuses.init ?? 0,
    errorText: (status) => (status === 15 ? "GPU is lost" : status === 9 ? "Driver Not Loaded" : `status ${status}`),
    deviceCount(count) {
      count[0] = gpus.length;
      return 0;
    },
    deviceByIndex(index, device) {
      device[0] = 1000n + BigInt(index);
      return 0;
    },
    uuid(device, text, byteLength) {
      const bytes = new TextEncoder().encode(`${of(device).uuid}\0`);
      if (bytes.byteLength > byteLength) return 7;
      text.set(bytes);
      return 0;
    },
    memory: write("memory", (gpu) => gpu.memory),
    utilization: write("utilization", (gpu) => gpu.percents),
    powerUsage: write("powerUsage", (gpu) => [gpu.milliwatts]),
    powerLimit: write("powerLimit", (gpu) => [gpu.limitMilliwatts]),
    energy: write("energy", (gpu) => [gpu.millijoules]),
    processes(device, count, infos) {
      const { processes } = of(device);
      const capacity = count[0]!;
      count[0] = processes.length;
      if (processes.length > capacity) return 7;
      // Each entry ends with the ids of a MIG instance, 0xffffffff when there is none.
      infos.set(processes.flatMap(([pid, bytes]) => [BigInt(pid), bytes, 0xffff_ffff_ffff_ffffn]));
      return 0;
    },
  };
}

export const fakeGpu: FakeGpu = {
  uuid: "GPU-11111111-2222-3333-4444-555555555555",
  memory: [16_000_000_000n, 12_000_000_000n, 4_000_000_000n],
  percents: [37, 12],
  milliwatts: 70_500,
  limitMilliwatts: 300_000,
  millijoules: 5_000_000n,
  processes: [[4242, 1_000_000n]],
};
