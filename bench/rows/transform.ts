import { mkdir, open } from "node:fs/promises";
import { join } from "node:path";
import { startGalatea } from "../../conformance/environments/index.ts";
import { requestOk } from "../send-request.ts";
import { requestBytes, runLoad } from "../load.ts";
import { onward } from "../models.ts";
import { startPlatform, type Platform } from "../platform.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory, writeModels } from "../servers.ts";
import { runTransform } from "../transform-job.ts";

const environment = { SAGEMAKER_TRITON_INFERENCE_TYPE: "generate", SAGEMAKER_TRITON_DEFAULT_MODEL_NAME: "onward" };
const record = JSON.stringify({ X: Array.from({ length: 16 }, (_, index) => index) });
const contentType = "application/json";

interface Shape {
  readonly what: string;
  readonly concurrency: number;
  readonly goal: Measure["goal"];
}

const shapes: readonly Shape[] = [
  { what: "one at a time", concurrency: 1, goal: { kind: "at least", of: "ratio", value: 0.9 } },
  { what: "four at a time", concurrency: 4, goal: { kind: "at least", of: "ratio", value: 0.9 } },
];

/**
 * Records that a transform job takes through a small container, beside two loops that ask a container of the same kind and do nothing else:
 * a bare one with Node's own HTTP client, which keeps nothing of what it gets, and, for its own sake, the load generator of the other rows,
 * which sends one request over and over and parses next to nothing. A job reads and splits its object, joins the answers and syncs them.
 *
 * Then as many objects of one record each: the job reads each from the store, writes its output durably and records that it is done. Beside it
 * stands the bare loop, and one that writes each answer to a file of its own and syncs it before it asks for the next, as the job's outputs are
 * synced before they count; it reads nothing and records nothing.
 *
 * A job's container has just been started when the first record comes, and its code is compiled while it answers: for a second or two it
 * has half of the rate that it has later. So the bare loop has a container of its own in each round, as new, and takes as many records through it.
 */
export const transformRow = {
  name: "transform",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using data = await temporaryDirectory();
    await using repository = await temporaryDirectory();
    await writeModels(repository.path, onward);
    await using platform = await startPlatform(data.path);
    await platform.putArchive("transform/onward.tar.gz", onward);
    await platform.createModel("onward", "transform/onward.tar.gz", environment);
    const recordCount = context.quick ? 2000 : 20_000;
    await platform.putObject("records/all.jsonl", Buffer.from(`${record}\n`.repeat(recordCount)));
    const measures: Measure[] = [];
    for (const shape of shapes)
      measures.push(...(await measureShape(context, shape, { platform, repository: repository.path, recordCount })));
    const objectCount = context.quick ? 200 : 2000;
    await putObjects(platform, objectCount);
    const small = { platform, repository: repository.path, recordCount: objectCount };
    return [...measures, ...(await measureObjects(context, small, join(data.path, "bare")))];
  },
};

interface Location {
  readonly platform: Platform;
  readonly repository: string;
  readonly recordCount: number;
}

const putAtOnce = 8;

async function putObjects(platform: Platform, count: number): Promise<void> {
  const body = Buffer.from(`${record}\n`);
  const numbers = Array.from({ length: count }, (_, number) => number).values();
  const putNext = async () => {
    for (const number of numbers) await platform.putObject(`objects/${String(number).padStart(6, "0")}.jsonl`, body);
  };
  await Promise.all(Array.from({ length: putAtOnce }, putNext));
}

/** The directory for the loop that stores its responses, on the disk of the platform's objects; null for loops that store nothing. */
async function measureObjects(
  context: BenchContext,
  { platform, repository, recordCount }: Location,
  stores: string,
): Promise<Measure[]> {
  const ours: number[] = [];
  const bare: number[] = [];
  const storing: number[] = [];
  for (let round = 0; round < context.rounds; round++) {
    const job = { name: `objects-${round}`, modelName: "onward", prefix: "objects/", contentType, concurrency: 1 };
    const { elapsedMs } = await runTransform(platform.port, job);
    ours.push((recordCount * 1000) / elapsedMs);
    for (const [figures, folder] of [
      [bare, null],
      [storing, join(stores, String(round))],
    ] as const) {
      if (folder !== null) await mkdir(folder, { recursive: true });
      const direct = await startGalatea({ repositories: [repository], env: environment });
      try {
        figures.push(await bareLoop(direct.sagemakerPort, { clients: 1, recordCount, folder }));
      } finally {
        await direct.stop();
      }
    }
    const [jobRate, bareRate, storingRate] = [ours, bare, storing].map((each) => each.at(-1)?.toFixed(0));
    context.log(`small objects: job ${jobRate} a second, bare loop ${bareRate}, one that stores ${storingRate}`);
  }
  const name = "objects of one record of a transform job, one at a time, beside";
  const goal = { kind: "at least", of: "ratio", value: 0.9 } as const;
  return [
    { what: `${name} a bare loop that stores each answer`, unit: "per s", ours, oracle: storing, goal },
    { what: `${name} a bare loop that keeps nothing`, unit: "per s", ours, oracle: bare, goal: null },
  ];
}

async function measureShape(
  context: BenchContext,
  { what, concurrency, goal }: Shape,
  { platform, repository, recordCount }: Location,
): Promise<Measure[]> {
  const timing = { durationMs: context.quick ? 500 : 3000, warmUpMs: context.quick ? 200 : 500 };
  const bytes = requestBytes("/invocations", Buffer.from(record), { "content-type": contentType });
  const ours: number[] = [];
  const bare: number[] = [];
  const raw: number[] = [];
  for (let round = 0; round < context.rounds; round++) {
    const job = {
      name: `round-${round}-of-${concurrency}`,
      modelName: "onward",
      prefix: "records/",
      contentType,
      concurrency,
    };
    const { elapsedMs } = await runTransform(platform.port, job);
    ours.push((recordCount * 1000) / elapsedMs);
    const direct = await startGalatea({ repositories: [repository], env: environment });
    try {
      bare.push(await bareLoop(direct.sagemakerPort, { clients: concurrency, recordCount, folder: null }));
      const load = await runLoad({ port: direct.sagemakerPort, request: bytes, clients: concurrency, ...timing });
      raw.push(load.perSecond);
    } finally {
      await direct.stop();
    }
    const [jobRate, bareRate, rawRate] = [ours, bare, raw].map((each) => each.at(-1)?.toFixed(0));
    context.log(`${what}: job ${jobRate} records a second, bare loop ${bareRate}, raw sockets ${rawRate}`);
  }
  const name = `records of a transform job, ${what}, beside`;
  return [
    { what: `${name} a bare loop`, unit: "per s", ours, oracle: bare, goal },
    { what: `${name} raw sockets`, unit: "per s", ours, oracle: raw, goal: null },
  ];
}

interface BareLoop {
  readonly clients: number;
  readonly recordCount: number;
  /** Directory in which each response is written and synced before its client sends again; null to write none. */
  readonly folder: string | null;
}

/** Requests per second of clients that each send, read the whole response and send again, until all records have a response. */
async function bareLoop(port: number, { clients, recordCount, folder }: BareLoop): Promise<number> {
  const body = Buffer.from(record);
  let left = recordCount;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      const name = String(left);
      const response = await requestOk(port, "POST", "/invocations", body, { "content-type": contentType });
      if (folder !== null) await store(folder, name, response);
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  return (recordCount * 1000) / (performance.now() - startedMs);
}

async function store(folder: string, name: string, response: Buffer): Promise<void> {
  await using file = await open(join(folder, name), "wx");
  await file.writeFile(response);
  await file.sync();
  await using directory = await open(folder, "r");
  await directory.sync();
}
