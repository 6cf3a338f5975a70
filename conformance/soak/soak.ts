import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { writeFaultyModel } from "../faults/faulty-model.ts";
import { openServing, type Workspace } from "../faults/serving.ts";
import { until } from "../faults/until.ts";
import { Chance } from "./chance.ts";
import { SoakClient, type SoakRequest, type SoakModel } from "./client.ts";
import { Disruptions, writeOnnx } from "./disruptions.ts";
import { judgeFlatness, type Verdict } from "./flatness.ts";
import { requestBytes, takeSample, tolerances, type Sample } from "./gauges.ts";
import type { SoakOptions } from "./options.ts";

export interface SoakReport {
  readonly rounds: number;
  readonly seconds: number;
  /** Number of requests by protocol: http, grpc, stream. */
  readonly requested: Readonly<Record<Way, number>>;
  readonly responseCount: number;
  /** Number of errors by cause. */
  readonly errors: Readonly<Record<string, number>>;
  readonly disruptions: Readonly<Record<string, number>>;
  readonly verdicts: readonly Verdict[];
}

type Way = "http" | "grpc" | "stream";

const faulty = { input: "VALUE", output: "OUT", sign: 1, isFaulty: true } as const;
const models: readonly SoakModel[] = [
  { name: "steady", ...faulty },
  { name: "coming", ...faulty },
  { name: "onnx", input: "x", output: "y", sign: -1, isFaulty: false },
];
const clientCount = 8;
const disruptionsPerRound = 12;
/** Number of requests of one stream. With it, 30 % of all requests are sent on streams. */
const streamedTogether = 3;
const streamChance = 0.125;
const valueCounts = [1, 16, 1000, 1000, 60_000];

/**
 * Runs rounds of requests and disruptions until the time is over, and measures the idle server after each round. Throws
 * at the first error.
 */
export async function soak({ minutes, seed }: SoakOptions, log: (line: string) => void): Promise<SoakReport> {
  const startedMs = performance.now();
  const chance = new Chance(seed);
  const asked: Record<Way, number> = { http: 0, grpc: 0, stream: 0 };
  const errors: Record<string, number> = {};
  const samples: Sample[] = [];
  let answered = 0;
  await using serving = await openServing({ write: writeModels, flags: startFlags });
  const { server } = serving;
  const disruptions = new Disruptions(serving, chance);
  while (performance.now() - startedMs < minutes * 60_000 || samples.length < 4) {
    const over = new AbortController();
    const clients = Array.from({ length: clientCount }, (_, index) =>
      askUntil(over.signal, server, new Chance(seed + 1000 * samples.length + index + 1), (way, outcomes) => {
        asked[way] += outcomes.length;
        for (const outcome of outcomes) {
          if (outcome === null) answered += 1;
          else errors[outcome] = (errors[outcome] ?? 0) + 1;
        }
      }),
    );
    const disrupting = (async () => {
      for (let count = 0; count < disruptionsPerRound; count++) {
        const enough = answered + 20 + chance.below(200);
        await disruptions.next();
        // The next disruption starts after this number of responses: then requests of every kind are in flight again.
        await until("requests succeed", () => answered >= enough || over.signal.aborted, 60_000);
      }
    })().finally(() => over.abort());
    // A client that fails ends the round.
    await Promise.all([disrupting, ...clients.map((client) => client.finally(() => over.abort()))]);
    await disruptions.settle();
    await until("nothing is in flight", async () => (await requestBytes(server.metricsPort)) === 0);
    samples.push(await takeSample(server));
    log(
      `round ${samples.length}: ${answered} answered, ${JSON.stringify(errors)}, ${samples
        .at(-1)!
        .map((value) => value.toFixed(0))
        .join(" ")}`,
    );
  }
  const verdicts = tolerances.map((tolerance, column) =>
    judgeFlatness(
      tolerance,
      samples.map((sample) => sample[column]!),
    ),
  );
  const total = Object.values(asked).reduce((sum, count) => sum + count, 0);
  assert.equal(answered + Object.values(errors).reduce((sum, count) => sum + count, 0), total);
  const seconds = (performance.now() - startedMs) / 1000;
  const done = Object.fromEntries(disruptions.counts);
  return {
    rounds: samples.length,
    seconds,
    requested: asked,
    responseCount: answered,
    errors,
    disruptions: done,
    verdicts,
  };
}

const startFlags = ["--model-control-mode=explicit", ...models.map(({ name }) => `--load-model=${name}`)];

async function writeModels({ repository }: Workspace): Promise<void> {
  await writeFaultyModel(repository, "steady", { more: "instance_group [ { count: 2 } ]\n" });
  await writeFaultyModel(repository, "coming");
  await mkdir(join(repository, "onnx", "1"), { recursive: true });
  await writeOnnx(join(repository, "onnx", "1", "model.onnx"), 0);
  const config = `backend: "onnxruntime" max_batch_size: 0
input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 }\n`;
  await writeFile(join(repository, "onnx", "config.pbtxt"), config);
}

type Tell = (way: Way, outcomes: readonly (string | null)[]) => void;

async function askUntil(
  over: AbortSignal,
  ports: { readonly httpPort: number; readonly grpcPort: number },
  chance: Chance,
  report: Tell,
): Promise<void> {
  using client = new SoakClient(ports);
  let count = 0;
  const question = (): SoakRequest => {
    const length = chance.of(valueCounts);
    const first = chance.next() * 1000;
    count += 1;
    return {
      model: chance.of(models),
      id: `q${count}`,
      values: Float32Array.from({ length }, (_, index) => first + index),
    };
  };
  while (!over.aborted) {
    if (chance.next() < streamChance) {
      report("stream", await client.overStream(Array.from({ length: streamedTogether }, question)));
    } else if (chance.next() < 0.5) report("grpc", [await client.overGrpc(question())]);
    else report("http", [await client.overHttp(question())]);
  }
}
