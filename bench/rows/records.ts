import { setTimeout as delay } from "node:timers/promises";
import { sendRequest, timedMs } from "../send-request.ts";
import { requestBytes, runLoad } from "../load.ts";
import {
  putObject,
  callSageMaker,
  benchBucket,
  invokeHeaders,
  sageMakerHeaders,
  startPlatform,
  warmUp,
  type Platform,
} from "../platform.ts";
import { processCpuUs } from "../processes.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { temporaryDirectory } from "../servers.ts";

const atOnce = 32;
const pollMs = 20;
const image = "sagemaker-tritonserver:latest";
const role = "arn:aws:iam::123456789012:role/bench";
const config = "asleep";

const keyOf = (index: number) => `models/${index}.tar.gz`;
const modelOf = (index: number) => `model-${index}`;
const endpointOf = (index: number) => `endpoint-${index}`;

/**
 * An account near its limits: cold serverless endpoints, and models with an object each. One additional endpoint has an
 * instance, which a start of the platform has to start.
 */
export const recordsRow = {
  name: "records",
  async measure(context: BenchContext): Promise<Measure[]> {
    const counts = context.quick ? { models: 300, endpoints: 30 } : { models: 49_999, endpoints: 990 };
    await using data = await temporaryDirectory();
    const filled = await startPlatform(data.path);
    let inServiceMs = 0;
    try {
      await warmUp(filled);
      inServiceMs = await fill(filled, counts, context.log);
    } finally {
      await filled[Symbol.asyncDispose]();
    }
    const calls = callsOf(counts);
    const perCall = calls.map((): number[] => []);
    const [stopped, killed]: [Starts, Starts] = [newStarts(), newStarts()];
    for (let round = 0; round < Math.min(context.rounds, 3); round++) {
      const afterStop = await started(data.path, stopped);
      try {
        for (const [index, { operation, input }] of calls.entries()) {
          const p50Ms = await p50(afterStop, { operation, input, quick: context.quick });
          perCall[index]?.push(p50Ms);
          context.log(`${operation}: p50 ${p50Ms.toFixed(2)} ms`);
        }
        await write(afterStop, round);
      } finally {
        await afterStop.kill();
      }
      const afterKill = await started(data.path, killed);
      await afterKill[Symbol.asyncDispose]();
      context.log(`first answers: ${[stopped, killed].map(({ firstMs }) => firstMs.at(-1)?.toFixed(0)).join(", ")} ms`);
    }
    const of = `${counts.endpoints + 1} endpoints and ${counts.models + 1} models`;
    return [
      ...calls.map(({ operation }, index) => ({
        what: `${operation} of ${of}, p50`,
        unit: "ms",
        ours: perCall[index] ?? [],
        oracle: [],
        goal: { kind: "at most", of: "ours", value: 5 } as const,
      })),
      ...startMeasures(`with ${of}, stopped in order,`, stopped),
      ...startMeasures("with the same after kill -9", killed),
      {
        what: `from the first CreateEndpoint until ${counts.endpoints} serverless endpoints are in service`,
        unit: "ms",
        ours: [inServiceMs],
        oracle: [],
        goal: null,
      },
    ];
  },
};

interface Counts {
  readonly models: number;
  readonly endpoints: number;
}

/** Start times, from the start of the platform's process to the first response. */
interface Starts {
  readonly firstMs: number[];
  /** Time until the endpoint with an instance is in service. All others are cold, and in service as soon as the platform responds. */
  readonly invokedMs: number[];
  /** CPU time until then, without that of the instance; on a shared machine it is more reliable than wall time. */
  readonly processorMs: number[];
}

const newStarts = (): Starts => ({ firstMs: [], invokedMs: [], processorMs: [] });

function startMeasures(how: string, { firstMs, invokedMs, processorMs }: Starts): Measure[] {
  const measure = (what: string, ours: number[]) => ({ what, unit: "ms", ours, oracle: [], goal: null });
  return [
    {
      ...measure(`from a start of the platform ${how} to its first answer`, firstMs),
      goal: { kind: "at most", of: "ours", value: 2000 },
    },
    measure(`from a start of the platform ${how} until all endpoints are in service`, invokedMs),
    measure(`processor time of the platform from a start ${how} to its first answer`, processorMs),
  ];
}

async function started(dataDirectory: string, { firstMs, invokedMs, processorMs }: Starts): Promise<Platform> {
  const startMs = performance.now();
  const platform = await startPlatform(dataDirectory);
  try {
    firstMs.push(platform.upMs + (await timedMs(() => callSageMaker(platform.port, "ListEndpoints", {}))));
    processorMs.push((await processCpuUs(platform.pid)) / 1000);
    await untilInvoked(platform);
    invokedMs.push(performance.now() - startMs);
    return platform;
  } catch (error) {
    await platform.kill();
    throw error;
  }
}

/** Rewrites some records and objects, so that a kill can interrupt writes. */
async function write({ port }: Platform, round: number): Promise<void> {
  for (let index = 0; index < 20; index++) {
    await putObject(port, keyOf(index), Buffer.from(`archive ${index} of round ${round}`));
    const arn = `arn:aws:sagemaker:us-east-1:000000000000:model/${modelOf(index)}`;
    await callSageMaker(port, "AddTags", { ResourceArn: arn, Tags: [{ Key: "round", Value: String(round) }] });
  }
}

/** The described endpoints are in the middle of the listing. */
const callsOf = ({ models, endpoints }: Counts) => [
  { operation: "ListEndpoints", input: {} },
  { operation: "ListModels", input: {} },
  { operation: "DescribeEndpoint", input: { EndpointName: endpointOf(Math.floor(endpoints / 2)) } },
  { operation: "DescribeModel", input: { ModelName: modelOf(Math.floor(models / 2)) } },
];

/** Returns the time until the endpoints were in service. */
async function fill({ port }: Platform, counts: Counts, log: BenchContext["log"]): Promise<number> {
  const objectsMs = await timedMs(() =>
    many(counts.models, (index) => putObject(port, keyOf(index), Buffer.from(`archive ${index}`))),
  );
  log(`${counts.models} objects put in ${(objectsMs / 1000).toFixed(1)} s`);
  const modelsMs = await timedMs(() =>
    many(counts.models, async (index) => {
      const container = { Image: image, ModelDataUrl: `s3://${benchBucket}/${keyOf(index)}` };
      const model = { ModelName: modelOf(index), ExecutionRoleArn: role, PrimaryContainer: container };
      await callSageMaker(port, "CreateModel", model);
    }),
  );
  log(`${counts.models} models created in ${(modelsMs / 1000).toFixed(1)} s`);
  const variant = {
    VariantName: "AllTraffic",
    ModelName: modelOf(0),
    ServerlessConfig: { MemorySizeInMB: 1024, MaxConcurrency: 1 },
  };
  await callSageMaker(port, "CreateEndpointConfig", { EndpointConfigName: config, ProductionVariants: [variant] });
  return timedMs(async () => {
    await many(counts.endpoints, async (index) => {
      await callSageMaker(port, "CreateEndpoint", { EndpointName: endpointOf(index), EndpointConfigName: config });
    });
    await untilAllInService(port);
  });
}

/** Describes several endpoints concurrently, and keeps their order. */
async function many(count: number, act: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await act(next++);
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

async function untilAllInService(port: number): Promise<void> {
  const countOf = async (status: string) => {
    const response = await callSageMaker(port, "ListEndpoints", { StatusEquals: status, MaxResults: 1 });
    return (JSON.parse(response.toString()) as { readonly Endpoints: readonly unknown[] }).Endpoints.length;
  };
  while ((await countOf("Creating")) > 0) await delay(pollMs);
  if ((await countOf("Failed")) > 0) throw new Error("an endpoint of the bench has failed");
}

/** An endpoint whose instance is not running yet rejects requests. */
async function untilInvoked({ port }: Platform): Promise<void> {
  const headers = invokeHeaders("add_sub.tar.gz");
  const deadlineMs = performance.now() + 60_000;
  for (;;) {
    const { status, body } = await sendRequest(port, "POST", "/endpoints/warm/invocations", addSubBody, headers);
    if (status === 200) return;
    if (performance.now() > deadlineMs)
      throw new Error(`the endpoint with an instance is not back: ${body.toString()}`);
    await delay(pollMs);
  }
}

async function p50(
  { port }: Platform,
  { operation, input, quick }: { readonly operation: string; readonly input: object; readonly quick: boolean },
): Promise<number> {
  const request = requestBytes("/", Buffer.from(JSON.stringify(input)), sageMakerHeaders(operation));
  const timing = { durationMs: quick ? 300 : 2000, warmUpMs: quick ? 100 : 500 };
  return (await runLoad({ port, request, clients: 1, ...timing })).p50Us / 1000;
}
