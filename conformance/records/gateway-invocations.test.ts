/** Gateways that invoke instances on two agents themselves, while the leader, the database, an agent or a gateway is killed. */
import assert from "node:assert/strict";
import { after, before, test, type TestContext } from "node:test";
import { CloudWatchClient, GetMetricStatisticsCommand } from "@aws-sdk/client-cloudwatch";
import {
  CreateEndpointConfigCommand,
  UpdateEndpointCommand,
  UpdateEndpointWeightsAndCapacitiesCommand,
} from "@aws-sdk/client-sagemaker";
import { InvokeEndpointWithResponseStreamCommand } from "@aws-sdk/client-sagemaker-runtime";
import { faultyRequest } from "../faults/http-client.ts";
import {
  bucket,
  createEndpoint,
  credentials,
  endpointIs,
  errorOfInvocation,
  invoke,
  prefix,
} from "../faults/platform.ts";
import { processesMarked } from "../faults/processes.ts";
import { until } from "../faults/until.ts";
import { RunningGateway } from "./gateway-fixture.ts";
import { leads, target, TwoPlatforms } from "./two-platforms-fixture.ts";

const modelDataUrl = `s3://${bucket}/${prefix}${target}`;
/** The endpoints, with the target of their invocations. */
const endpoints = [
  ["many", target],
  ["single", null],
] as const;

let platforms: TwoPlatforms;
let gateways: readonly [RunningGateway, RunningGateway];

const openGateway = () => {
  const { workspace, server, agentFlags } = platforms;
  return RunningGateway.open({ workspace, records: server.url("records"), flags: agentFlags });
};

before(async () => {
  platforms = await TwoPlatforms.open();
  for (const replica of platforms.replicas) replica.start();
  gateways = [await openGateway(), await openGateway()];
  const { leader } = await platforms.settled();
  await createEndpoint(leader, { name: "many", instanceCount: 2 });
  await createEndpoint(leader, { name: "single", instanceCount: 2, modelDataUrl });
  for (const [name] of endpoints) await endpointIs(leader, name, "InService");
});
after(async () => {
  for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  // Containers of the killed agent live on for a while.
  const [killed] = platforms.agents;
  for (const { pid } of processesMarked(`TMPDIR=${killed?.root}\0`)) process.kill(pid, "SIGKILL");
  await platforms[Symbol.asyncDispose]();
});

interface Call {
  readonly endpoint: string;
  readonly sentMs: number;
  readonly endedMs: number;
  readonly error: string | null;
}

/** Invokes endpoints through a gateway, each in two loops, until `stop`. */
function load(gateway: RunningGateway, invoked: readonly (readonly [name: string, of: string | null])[] = endpoints) {
  const calls: Call[] = [];
  const stopping = new AbortController();
  const loop = async ([endpoint, of]: readonly [string, string | null]) => {
    while (!stopping.signal.aborted) {
      const sentMs = performance.now();
      const error = await invoke(gateway, endpoint, of, faultyRequest("echo")).then(
        () => null,
        (failure: Error) => `${failure.name}: ${failure.message}`,
      );
      calls.push({ endpoint, sentMs, endedMs: performance.now(), error });
    }
  };
  const ended = Promise.all([...invoked, ...invoked].map(loop));
  const stop = async () => {
    stopping.abort();
    await ended;
  };
  /** Waits for further calls that have succeeded. */
  const succeed = async (count: number) => {
    const sinceMs = performance.now();
    await until(`${count} more calls succeed`, () => {
      return calls.filter(({ sentMs, error }) => sentMs > sinceMs && error === null).length >= count;
    });
  };
  const failed = () => calls.filter(({ error }) => error !== null);
  return { calls, failed, stop, succeed };
}

function report(t: TestContext, { calls, failed }: ReturnType<typeof load>) {
  const longest = Math.max(...calls.map(({ sentMs, endedMs }) => endedMs - sentMs));
  t.diagnostic(`${calls.length} calls, ${failed().length} failed, the longest took ${longest.toFixed(0)} ms`);
}

/** Waits until a gateway serves both endpoints without the leader, which the test has stopped. */
async function servesAlone(gateway: RunningGateway) {
  for (const [name, of] of endpoints) {
    await until(`the gateway serves ${name} without a leader`, () =>
      // Until the gateway has read the record, it passes invocations to the leader, which does not respond.
      invoke(gateway, name, of, faultyRequest("echo"), AbortSignal.timeout(2000)).then(
        () => true,
        () => false,
      ),
    );
  }
}

test("gateways invoke endpoints while the leader hangs, and stream responses", async () => {
  const { leader, standby } = await platforms.settled();
  standby.signal("SIGSTOP");
  leader.signal("SIGSTOP");
  for (const gateway of gateways) await servesAlone(gateway);
  const streamed = await gateways[0].runtime.send(
    new InvokeEndpointWithResponseStreamCommand({
      EndpointName: "single",
      ContentType: "application/json",
      Body: faultyRequest("echo"),
    }),
  );
  let text = "";
  for await (const { PayloadPart } of streamed.Body ?? []) text += Buffer.from(PayloadPart?.Bytes ?? []).toString();
  assert.match(text, /"OUT"/);
  leader.signal("SIGCONT");
  standby.signal("SIGCONT");
  await until("a platform leads, and the other one waits again", async () => {
    for (const replica of platforms.replicas) if ((await replica.role()) === "none") replica.start();
    return (await Promise.all(platforms.replicas.map((each) => each.role()))).toSorted().join() === "leader,standby";
  });
});

test("a gateway rejects signatures as a platform does, and passes other keys to the leader", async () => {
  const forged = { ...credentials, secretAccessKey: "another" };
  const { InvokeEndpointCommand, SageMakerRuntimeClient } = await import("@aws-sdk/client-sagemaker-runtime");
  for (const [keys, name] of [
    [forged, "InvalidSignatureException"],
    [{ ...credentials, accessKeyId: "unknown" }, "UnrecognizedClientException"],
  ] as const) {
    const client = { endpoint: gateways[0].url, region: "us-east-1", credentials: keys, maxAttempts: 1 };
    const command = new InvokeEndpointCommand({ EndpointName: "single", Body: faultyRequest("echo") });
    const error = await errorOfInvocation(new SageMakerRuntimeClient(client).send(command));
    assert.equal(error.name, name);
  }
});

test("kill -9 of the leader under load: no invocation through a gateway fails until the next leader leads, nor then", async (t) => {
  const { leader, standby } = await platforms.settled();
  const loaded = load(gateways[0]);
  await loaded.succeed(50);
  await leader.kill();
  await leads(standby);
  await loaded.succeed(100);
  await loaded.stop();
  report(t, loaded);
  assert.deepEqual(loaded.failed(), []);
  leader.start();
  await platforms.settled();
});

test("a database that is killed and starts again fails no invocation", async (t) => {
  const loaded = load(gateways[0]);
  await loaded.succeed(50);
  await platforms.server.kill();
  await loaded.succeed(100);
  await platforms.server.start();
  await loaded.succeed(50);
  await loaded.stop();
  report(t, loaded);
  assert.deepEqual(loaded.failed(), []);
  await until("a platform leads, and the other one waits again", async () => {
    for (const replica of platforms.replicas) if ((await replica.role()) === "none") replica.start();
    return (await Promise.all(platforms.replicas.map((each) => each.role()))).toSorted().join() === "leader,standby";
  });
});

test("scaling in and out, and an update to another generation, fail no invocation", async (t) => {
  const { leader } = await platforms.settled();
  // The other tests need their endpoints on both agents, where scaling may not put them again.
  const scaled = [
    ["scaled-many", target],
    ["scaled", null],
  ] as const;
  await createEndpoint(leader, { name: "scaled-many", instanceCount: 2 });
  await createEndpoint(leader, { name: "scaled", instanceCount: 2, modelDataUrl });
  for (const [name] of scaled) await endpointIs(leader, name, "InService");
  const loaded = load(gateways[0], scaled);
  await loaded.succeed(20);
  for (const DesiredInstanceCount of [1, 2]) {
    for (const [EndpointName] of scaled) {
      await leader.sagemaker.send(
        new UpdateEndpointWeightsAndCapacitiesCommand({
          EndpointName,
          DesiredWeightsAndCapacities: [{ VariantName: "all", DesiredInstanceCount }],
        }),
      );
    }
    for (const [name] of scaled) await endpointIs(leader, name, "InService");
    await loaded.succeed(50);
  }
  await leader.sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: "next",
      ProductionVariants: [
        { VariantName: "all", ModelName: "scaled", InitialInstanceCount: 2, InstanceType: "ml.m5.large" },
      ],
    }),
  );
  await leader.sagemaker.send(new UpdateEndpointCommand({ EndpointName: "scaled", EndpointConfigName: "next" }));
  await endpointIs(leader, "scaled", "InService");
  await loaded.succeed(50);
  await loaded.stop();
  report(t, loaded);
  assert.deepEqual(loaded.failed(), []);
});

test("a gateway that is killed fails its own requests only", async (t) => {
  const loaded = load(gateways[0]);
  await loaded.succeed(20);
  const other = load(gateways[1]);
  await other.succeed(20);
  await gateways[1].end("SIGKILL");
  await loaded.succeed(50);
  await Promise.all([loaded.stop(), other.stop()]);
  report(t, loaded);
  assert.deepEqual(loaded.failed(), []);
  assert.ok(other.failed().length > 0);
  await gateways[1][Symbol.asyncDispose]();
  gateways = [gateways[0], await openGateway()];
});

test("the leader's metrics count the invocations of all gateways, each once", async () => {
  const { leader } = await platforms.settled();
  await createEndpoint(leader, { name: "counted", modelDataUrl });
  await endpointIs(leader, "counted", "InService");
  const counts = [30, 50] as const;
  for (const [index, gateway] of gateways.entries()) {
    for (let count = 0; count < counts[index]!; count += 1)
      await invoke(gateway, "counted", null, faultyRequest("echo"));
  }
  const cloudwatch = new CloudWatchClient({ endpoint: gateways[0].url, region: "us-east-1", credentials });
  const sumOf = async (MetricName: string) => {
    const { Datapoints = [] } = await cloudwatch.send(
      new GetMetricStatisticsCommand({
        Namespace: "AWS/SageMaker",
        MetricName,
        Dimensions: [
          { Name: "EndpointName", Value: "counted" },
          { Name: "VariantName", Value: "all" },
        ],
        StartTime: new Date(Date.now() - 600_000),
        EndTime: new Date(Date.now() + 60_000),
        Period: 60,
        Statistics: ["Sum", "SampleCount"],
      }),
    );
    return Datapoints.reduce(
      (sum, { Sum = 0, SampleCount = 0 }) => ({ sum: sum.sum + Sum, count: sum.count + SampleCount }),
      {
        sum: 0,
        count: 0,
      },
    );
  };
  await until("the leader has all invocations", async () => (await sumOf("Invocations")).sum >= 80);
  assert.deepEqual(await sumOf("Invocations"), { sum: 80, count: 80 });
  assert.equal((await sumOf("ModelLatency")).count, 80);
  assert.equal((await sumOf("Invocation5XXErrors")).sum, 0);
});

test("kill -9 of an agent: requests sent afterwards go to the other agent", async (t) => {
  const { leader } = await platforms.settled();
  // Instances are placed by free memory. Of four, each agent gets at least one, although other endpoints are distributed unevenly.
  await createEndpoint(leader, { name: "spread", instanceCount: 4, modelDataUrl });
  await endpointIs(leader, "spread", "InService");
  const loaded = load(gateways[0], [["spread", null]]);
  await loaded.succeed(20);
  await platforms.agents[0]?.end("SIGKILL");
  const killedMs = performance.now();
  await loaded.succeed(100);
  await loaded.stop();
  report(t, loaded);
  const later = loaded.failed().filter(({ sentMs }) => sentMs > killedMs);
  assert.deepEqual(later, []);
});
