import { startGalatea } from "../../conformance/environments/index.ts";
import { mustAsk } from "../ask.ts";
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
 * a bare one with Node's own HTTP client, and, for its own sake, the load generator of the other rows, which sends one
 * request over and over and parses next to nothing. A job reads and splits its object, joins the answers and syncs them.
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
    return measures;
  },
};

async function measureShape(
  context: BenchContext,
  { what, concurrency, goal }: Shape,
  {
    platform,
    repository,
    recordCount,
  }: { readonly platform: Platform; readonly repository: string; readonly recordCount: number },
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
      bare.push(await bareLoop(direct.sagemakerPort, concurrency, recordCount));
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

/** Requests a second of clients that each send, wait for the whole answer, and send again, until all records have been answered. */
async function bareLoop(port: number, clients: number, recordCount: number): Promise<number> {
  const body = Buffer.from(record);
  let left = recordCount;
  const client = async () => {
    while (left > 0) {
      left -= 1;
      await mustAsk(port, "POST", "/invocations", body, { "content-type": contentType });
    }
  };
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: clients }, client));
  return (recordCount * 1000) / (performance.now() - startedMs);
}
