import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { createLogger, delay, systemClock } from "@galatea/base";
import { Nvml, NvmlError, openNvmlCalls } from "../native/index.ts";
import { visibleReadings, gpuDevices, visibleGpuCount } from "./visible-gpus.ts";
import { GpuWatch } from "./gpu-watch.ts";
import { fakeNvml, fakeGpu } from "./fake-nvml.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const program = fileURLToPath(new URL("fake-gpu-worker.ts", import.meta.url));

async function watch(t: TestContext, does: string, silentMsMax = 60_000, intervalMs = 20) {
  const directory = await mkdtemp(join(tmpdir(), "galatea-gpus-"));
  const driver = join(directory, "driver");
  await writeFile(driver, does);
  const lines: string[] = [];
  const opened = new GpuWatch({
    intervalMs,
    clock: systemClock,
    log: createLogger((_level, message) => lines.push(message)),
    random: () => 0,
    env: { PATH: "/usr/bin:/bin" },
    program: [program, driver],
    restart: { firstMs: 20, maxMs: 100 },
    silentMsMax,
  });
  t.after(async () => {
    await opened[Symbol.asyncDispose]();
    await rm(directory, { recursive: true });
  });
  return { opened, driver, lines };
}

async function until(isSo: () => boolean): Promise<void> {
  const signal = AbortSignal.timeout(testTimeoutMs);
  while (!isSo()) await delay(systemClock, 5, signal);
}

test("the library's structures are decoded to bytes, fractions, watts and joules", () => {
  const [reading] = new Nvml(fakeNvml([fakeGpu])).read();
  assert.deepEqual(reading, {
    index: 0,
    uuid: "GPU-11111111-2222-3333-4444-555555555555",
    memoryTotalBytes: 16_000_000_000,
    memoryUsedBytes: 4_000_000_000,
    utilization: 0.37,
    powerWatts: 70.5,
    powerLimitWatts: 300,
    energyJoules: 5000,
    processes: [{ pid: 4242, memoryBytes: 1_000_000 }],
  });
});

test("values that a GPU does not report are null, and unknown memory of a process is 0", () => {
  const quiet = {
    ...fakeGpu,
    processes: [[7, 0xffff_ffff_ffff_ffffn]] as const,
    statuses: { powerUsage: 3, energy: 3, utilization: 4, powerLimit: 13 },
  };
  const [first, second] = new Nvml(fakeNvml([fakeGpu, quiet])).read();
  assert.equal(first!.powerWatts, 70.5);
  assert.deepEqual(
    [second!.index, second!.powerWatts, second!.energyJoules, second!.utilization, second!.powerLimitWatts],
    [1, null, null, null, null],
  );
  assert.deepEqual(second!.processes, [{ pid: 7, memoryBytes: 0 }]);
});

test("processes over the limit are left out, and a lost GPU is an error with the driver's text", () => {
  const processes = Array.from({ length: 2000 }, (_, position) => [position + 1, 5n] as const);
  const crowded = { ...fakeGpu, processes };
  assert.equal(new Nvml(fakeNvml([crowded])).read()[0]!.processes.length, 0);
  const lost = new Nvml(fakeNvml([{ ...fakeGpu, statuses: { memory: 15 } }]));
  assert.throws(() => lost.read(), new NvmlError("nvmlDeviceGetMemoryInfo", "GPU is lost"));
  assert.throws(() => new Nvml(fakeNvml([], { init: 9 })), /nvmlInit: Driver Not Loaded/);
});

test("a missing library is an error with its name", () => {
  assert.throws(() => openNvmlCalls("libgalatea-has-no-such-library.so.1"), /libgalatea-has-no-such-library/);
});

test("GPUs are read repeatedly in a separate process", async (t) => {
  const { opened, lines } = await watch(t, "answers");
  await until(() => (opened.readings()[0]?.energyJoules ?? 0) >= 5002);
  const [reading] = opened.readings();
  assert.equal(reading!.memoryUsedBytes, 4_000_000_000);
  const energy = opened.energySinceStart(reading!)!;
  assert(energy >= 1 && energy < 1000, `joules since the start, and not since the driver's: ${energy}`);
  assert.notEqual(opened.pid, process.pid);
  assert.deepEqual(lines, []);
});

test("an immediate reading does not wait for the interval", async (t) => {
  const { opened } = await watch(t, "answers", 60_000, 3_600_000);
  assert.equal((await opened.firstReading(60_000)).length, 1);
  const before = opened.readings()[0]!.energyJoules!;
  const now = (await opened.readNow(60_000))[0]!.energyJoules!;
  assert(now >= before + 2, `read again after the question: ${before}, ${now}`);
});

test("a reading of GPUs that do not respond is empty after its time limit", async (t) => {
  const { opened } = await watch(t, "gone");
  assert.deepEqual(await opened.firstReading(60_000), []);
  assert.deepEqual(await opened.readNow(60_000), []);
  const { opened: hung } = await watch(t, "hangs", 60_000);
  assert.equal((await hung.firstReading(60_000)).length, 1);
  await hung.readNow(50);
});

for (const [does, says] of [
  ["gone", /libnvidia-ml\.so\.1: cannot open shared object file/],
  ["unloaded", /nvmlInit: Driver Not Loaded/],
  ["lost", /nvmlDeviceGetMemoryInfo: GPU is lost/],
  ["crashes", /its process has ended: signal SIGSEGV/],
  ["hangs", /the driver has not responded for 3020 ms/],
] as const)
  test(`a driver with the fault '${does}' is logged once, and GPU metrics return when it responds`, async (t) => {
    const { opened, driver, lines } = await watch(t, does, does === "hangs" ? 3000 : undefined);
    await until(() => lines.length > 0);
    assert.match(lines[0]!, says);
    await until(() => opened.readings().length === 0);
    await writeFile(driver, "answers");
    // The driver may fail again before the file is read; the watch then restarts the process.
    await until(() => (opened.readings()[0]?.energyJoules ?? 0) >= 5003);
    const failed = lines.filter((line) => says.test(line)).length;
    const again = lines.filter((line) => line === "GPU metrics are available again").length;
    assert.equal(again, failed, "logged once for each failure that ended");
  });

test("a reading process that hangs in the driver does not delay the server's end", async (t) => {
  const { opened } = await watch(t, "hangs");
  await until(() => opened.pid !== null);
  await opened[Symbol.asyncDispose]();
});

test("models can be placed on GPUs whose devices exist and that CUDA_VISIBLE_DEVICES includes", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "galatea-gpus-"));
  t.after(() => rm(root, { recursive: true }));
  assert.equal(visibleGpuCount(null, root), 0);
  assert.equal(visibleGpuCount("0", root), 0);
  await mkdir(join(root, "dev"));
  for (const name of ["nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"]) await writeFile(join(root, "dev", name), "");
  for (const [visible, count] of [
    [null, 2],
    ["", 0],
    ["1", 1],
    ["1,0", 2],
    ["0,0", 0],
    ["0,-1,1", 1],
    ["0,5,1", 1],
    ["GPU-11111111, GPU-2", 2],
    ["NoDevFiles", 0],
  ] as const)
    assert.equal(visibleGpuCount(visible, root), count, String(visible));
});

test("a GPU program's device files are recognised, and there are none without the driver", async (t) => {
  const root = await mkdtemp(join(tmpdir(), "galatea-devices-"));
  t.after(() => rm(root, { recursive: true }));
  const names = ["nvidia0", "nvidia-uvm", "nvidia-uvm-tools", "nvidiafs", "null", "nvidia1"];
  await mkdir(join(root, "dev", "nvidia-caps"), { recursive: true });
  for (const name of names) await writeFile(join(root, "dev", name), "");
  assert.deepEqual(gpuDevices(root), []);
  await writeFile(join(root, "dev", "nvidiactl"), "");
  const found = ["nvidia-caps", "nvidia-uvm", "nvidia-uvm-tools", "nvidia0", "nvidia1", "nvidiactl"];
  assert.deepEqual(
    gpuDevices(root),
    found.map((name) => join(root, "dev", name)),
  );
});

test("readings cover the GPUs of CUDA_VISIBLE_DEVICES, in its order", () => {
  const gpus = ["GPU-aa", "GPU-bb", "GPU-cc"].map((uuid) => ({ ...fakeGpu, uuid }));
  const readings = new Nvml(fakeNvml(gpus)).read();
  const shown = (visible: string | null) => visibleReadings(readings, visible).map(({ uuid }) => uuid);
  assert.deepEqual(shown(null), ["GPU-aa", "GPU-bb", "GPU-cc"]);
  assert.deepEqual(shown("2,0"), ["GPU-cc", "GPU-aa"]);
  assert.deepEqual(shown("GPU-b,0"), ["GPU-bb", "GPU-aa"]);
  assert.deepEqual(shown(""), []);
});
