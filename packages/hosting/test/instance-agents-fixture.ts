import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { modelCacheLimits } from "../src/model-cache/index.ts";
import type { InstanceAgentSubject } from "../src/contracts/index.ts";
import { LocalInstanceAgent, type AgentContainerSpec } from "../src/instance-agent/index.ts";
import { instanceLimits, type InstanceOwner } from "../src/instances/index.ts";
import { NodeMemory } from "../src/nodes/index.ts";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { openDirectoryStore } from "../src/objects/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { writeContainer } from "./agent-container-fixture.ts";
import { openFleetOptions } from "./hosting-fixture.ts";

const never = new AbortController().signal;
const bucket = "models";
let count = 0;

function archive(text: string): Buffer {
  const body = Buffer.from(text);
  const header = new Header({ path: "model", type: "File", size: body.length, mode: 0o644, mtime: new Date(0) });
  header.encode();
  if (header.block === undefined) throw new Error("a header has a block");
  return gzipSync(Buffer.concat([header.block, body, Buffer.alloc(-body.length & 511), Buffer.alloc(1024)]));
}

interface LocalAgentSubject extends Omit<InstanceAgentSubject, "connect" | "next"> {
  readonly agent: LocalInstanceAgent;
  next(): Promise<LocalInstanceAgent>;
}

const specFor: InstanceAgentSubject["specFor"] = (behaviour, kind = "one") => {
  const id = `i-${process.pid}-${(count += 1)}`;
  const modelDataUrl = `s3://${bucket}/many/`;
  const limits = { ...modelCacheLimits, diskBytesMax: 2 ** 30, memoryBytesMax: 2 ** 29 };
  const container: AgentContainerSpec = {
    name: "primary",
    title: `e/v/${id}`,
    concurrencyMax: null,
    runtime: "tritonserver",
    models: kind === "one" ? { kind, container: {}, bringMsMax: testTimeoutMs } : { kind, modelDataUrl },
    cache: kind === "one" ? null : { limits, guaranteedBytes: 0 },
    environment: { BEHAVIOUR: behaviour },
    modelMemoryBytes: 2 ** 29,
  };
  return {
    id,
    owner: null,
    budget: { vcpuCount: 1, memoryBytes: 2 ** 30 },
    reservedBytes: 2 ** 27,
    containers: [container],
    limits: { ...instanceLimits, startMsMax: testTimeoutMs, pingIntervalMs: 200, restartDelayMsMin: 1 },
    restartWaitMsMax: testTimeoutMs,
  };
};

/** Opens an agent in this process over the real process host. `eventsMax` limits its event log. */
export async function openLocalAgent(eventsMax = 16_384, clock: Clock = systemClock): Promise<LocalAgentSubject> {
  await using opening = new AsyncDisposableStack();
  const directory = await mkdtemp(join(tmpdir(), "gal-agent-"));
  opening.defer(() => rm(directory, { recursive: true, force: true }));
  const program = writeContainer(directory);
  const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
  await store.createBucket(bucket);
  const openAgent = async (desired: readonly InstanceOwner[]) => {
    const running = opened.use(new AsyncDisposableStack());
    const { fleet } = running.use(
      await openFleetOptions({
        directory,
        store,
        documents: new DocumentMemory(),
        argumentsFor: ({ BEHAVIOUR = "" }, socketPath) => [program, socketPath, BEHAVIOUR],
        onSample: () => {},
        logs: new Map(),
      }),
    );
    await fleet.host.resume(desired);
    const memory = new NodeMemory({ bytesMax: node.capacity.memoryBytes, reservedBytes: () => 0 });
    const opening = { ...fleet, clock, node, memory, events: { eventsMax, charsMax: 2 ** 20 } };
    return { agent: running.use(new LocalInstanceAgent(opening)), host: fleet.host, running };
  };
  const node = nodeWith(2 ** 33);
  const opened = opening.use(new AsyncDisposableStack());
  let now = await openAgent([]);
  const closing = opening.move();
  return {
    agent: now.agent,
    next: async () => {
      const { agent, host, running } = now;
      host.detach();
      const { instances } = await agent.state();
      for (const { spec } of instances) await agent.end(spec.id, "shutDown");
      await running.disposeAsync();
      now = await openAgent(instances.flatMap(({ spec: { owner } }) => owner ?? []));
      return now.agent;
    },
    specFor,
    putModel: async (target, text) => {
      const body = Readable.from([text === null ? Buffer.from("no archive") : archive(text)]);
      await store.put(bucket, `many/${target}`, body, { signal: never });
    },
    async [Symbol.asyncDispose]() {
      const { agent } = now;
      for (const { spec } of (await agent.state()).instances) await agent.instance(spec, () => {}).delete();
      await closing.disposeAsync();
    },
  };
}
