/**
 * kill -9 of the leader of two platforms during concurrent operations. The kind of the commit chooses the commit to the
 * records at which the leader dies. Each next leader has everything that was acknowledged, and continues operations in
 * progress with the instances that run on the agents.
 */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client } from "pg";
import {
  DeleteEndpointCommand,
  DeleteInferenceComponentCommand,
  ListEndpointsCommand,
  ListInferenceComponentsCommand,
} from "@aws-sdk/client-sagemaker";
import { clientsOf, type Workload } from "../crashes/clients.ts";
import { ComponentWorkload, EndpointWorkload, MultiModelWorkload } from "../crashes/hosting-workloads.ts";
import { models, operate, prepare } from "../crashes/prepared-records.ts";
import { AsyncInferenceWorkload } from "../crashes/stored-workloads.ts";
import { TransformWorkload } from "../crashes/transform-workload.ts";
import { until } from "../faults/until.ts";
import { leads, TwoPlatforms } from "./two-platforms-fixture.ts";

/** The commit at which the leader is killed: the n-th one from now on that changes a document of the kind. */
type KillPoint = readonly [kind: string, commitCount: number];

const killPoints: readonly KillPoint[] = [
  ["endpoint", 1],
  ["transform-progress", 1],
  ["endpoint", 3],
  ["async-invocation", 2],
  ["endpoint", 5],
  ["transform-job", 1],
  ["inference-component", 2],
  ["transform-job", 2],
  ["instance-key", 1],
  ["endpoint", 8],
];

const canary = {
  BlueGreenUpdatePolicy: {
    TrafficRoutingConfiguration: {
      Type: "CANARY" as const,
      WaitIntervalInSeconds: 1,
      CanarySize: { Type: "INSTANCE_COUNT" as const, Value: 1 },
    },
    TerminationWaitInSeconds: 0,
  },
};

let platforms: TwoPlatforms;

before(async () => {
  platforms = await TwoPlatforms.open(["--open"]);
  for (const replica of platforms.replicas) replica.start();
});
after(() => platforms[Symbol.asyncDispose]());

const writesSql = `SELECT version FROM galatea.document WHERE version > $1 AND kind = $2
  UNION SELECT version FROM galatea.document_gone WHERE version > $1 AND kind = $2`;

/** Resolves when the commits that the point requires have been made from now on. */
async function written([kind, commitCount]: KillPoint): Promise<void> {
  const client = new Client({ connectionString: platforms.server.url("records") });
  await client.connect();
  try {
    const { rows } = await client.query<{ version: string }>("SELECT version FROM galatea.document_feed");
    const versions = new Set<number>();
    let last = Number(rows[0]?.version);
    // `document` has only the last version of a document: the versions are collected while they are committed.
    await until(`the leader has written ${commitCount} times a document of the kind ${kind}`, async () => {
      const found = await client.query<{ version: string }>(writesSql, [last, kind]);
      for (const { version } of found.rows) versions.add(Number(version));
      last = Math.max(last, ...versions);
      return versions.size >= commitCount;
    });
  } finally {
    await client.end();
  }
}

test("a leader that is killed after the n-th write of each kind loses nothing that it acknowledged, and the next one completes what is in progress", async (t) => {
  const first = await platforms.settled();
  await prepare(clientsOf(first.leader.url));
  const queued = new AsyncInferenceWorkload("queued");
  const workloads: readonly Workload[] = [
    new EndpointWorkload("moving", ["first", "second"]),
    new EndpointWorkload("canary", ["third", "fourth"], { count: 2, DeploymentConfig: canary }),
    new ComponentWorkload("shared", "one"),
    new MultiModelWorkload("many", models),
    queued,
    new TransformWorkload("one"),
  ];
  for (const point of killPoints) {
    const { leader, standby } = await platforms.settled();
    const clients = clientsOf(leader.url);
    const dead = written(point).then(() => leader.kill());
    await Promise.all(workloads.map((workload) => operate(workload, clients, dead)));
    const killedMs = performance.now();
    await leads(standby);
    t.diagnostic(
      `${point.join(" ")}: another platform leads after ${((performance.now() - killedMs) / 1000).toFixed(1)} s`,
    );
    leader.start();
  }
  const { leader } = await platforms.settled();
  const clients = clientsOf(leader.url);
  await Promise.all(workloads.map((workload) => workload.check(clients)));
  assert.ok(queued.count > 0);
  assert.doesNotMatch(leader.log(), /damaged record skipped|unexpectedly|bug:/);
  const { InferenceComponents = [] } = await clients.sagemaker.send(new ListInferenceComponentsCommand({}));
  for (const { InferenceComponentName } of InferenceComponents)
    await clients.sagemaker.send(new DeleteInferenceComponentCommand({ InferenceComponentName }));
  await until("the components are deleted", async () => {
    const listed = await clients.sagemaker.send(new ListInferenceComponentsCommand({}));
    return listed.InferenceComponents?.length === 0;
  });
  const { Endpoints = [] } = await clients.sagemaker.send(new ListEndpointsCommand({}));
  for (const { EndpointName } of Endpoints) await clients.sagemaker.send(new DeleteEndpointCommand({ EndpointName }));
  await until("no instance is left on an agent", () => platforms.servers().flat().length === 0);
});
