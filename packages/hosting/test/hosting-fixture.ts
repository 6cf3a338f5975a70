import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { ByteBudget, silentLogger, systemClock, type Logger } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { ArchiveUnpacker, archiveLimits, unpackerDefaults, type BucketStore } from "../src/objects/index.ts";
import { InstanceKeys } from "../src/instance-keys/index.ts";
import type { NodeDescription } from "../src/nodes/index.ts";
import { nodeWith } from "../src/nodes/node-fixture.ts";
import { ProcessHost } from "../src/process-host/index.ts";
import {
  Hosting,
  hostingLimits,
  instanceLimits,
  invocationLimits,
  type ContainerDefinition,
  type ModelContainers,
  type FleetOptions,
  type HostingLimits,
  type HostingOptions,
  type InstanceLimits,
  type InstanceSpec,
  type InvocationLimits,
  type ModelHost,
} from "../src/index.ts";
import { MemoryDocuments, type DocumentMemory } from "../src/records/contracts/index.ts";

export const owner = { accountId: "000000000000", region: "us-east-1" };

export interface HostingFixtureOptions {
  /** Directory of the fixture. The test creates and removes it. */
  readonly directory: string;
  readonly store: BucketStore;
  readonly documents: DocumentMemory;
  /** Returns the arguments of the Node process for a container. The container must listen on the Unix socket. */
  readonly argumentsFor: (
    environment: Readonly<Record<string, string>>,
    socketPath: string,
    mlRoot: string,
  ) => string[];
  readonly onSample: (metric: string, value: number, container: string | undefined) => void;
  /** Output of the containers, by log stream. */
  readonly logs: Map<string, string>;
  readonly limits?: Partial<InvocationLimits>;
  readonly instances?: Partial<InstanceLimits>;
  readonly hosting?: Partial<HostingLimits>;
  /** Nodes of the platform. By default, one node with enough resources for all tests. */
  readonly nodes?: readonly NodeDescription[];
  /** Called with the spec of each instance that the host opens. */
  readonly onOpen?: (spec: InstanceSpec) => void;
  /** True if disposal leaves instances running, for the next fixture with the same directory and documents. */
  readonly isDetached?: boolean;
  /** Memory for requests and jobs in flight. */
  readonly memory?: ByteBudget;
  /** Used instead of `onSample` by tests that check the dimensions of metrics. */
  readonly openSeries?: FleetOptions["openSeries"];
  /** Returns the state of an alarm. By default, there are no alarms. */
  readonly alarmState?: HostingOptions["alarmState"];
  /** Outbox and limits of asynchronous inference. */
  readonly queues?: Pick<HostingOptions, "outbox" | "asyncLimits">;
  readonly mirroring?: NonNullable<HostingOptions["mirroring"]>;
  readonly logger?: Logger;
}

/** Adds an image name to each container, because models require one. The test's host ignores it. */
export function imaged(containers: readonly ContainerDefinition[]): ModelContainers {
  return containers.map((each) => ({ Image: "sagemaker-tritonserver:test", ...each })) as unknown as ModelContainers;
}

export interface HostingFixture extends AsyncDisposable {
  readonly hosting: Hosting;
}

/** Opens a host that runs a test's own programs as containers, and the other options that all fleets share. */
export async function openFleetOptions(
  options: HostingFixtureOptions,
): Promise<{ readonly fleet: HostingOptions["fleet"] & { readonly host: ModelHost } } & AsyncDisposable> {
  const { directory, store, logs, argumentsFor, onSample } = options;
  await using opening = new AsyncDisposableStack();
  const contentDirectory = join(directory, "content");
  const unpacker = opening.use(new ArchiveUnpacker({ ...unpackerDefaults, contentDirectory, limits: archiveLimits }));
  const host = opening.use(
    new ProcessHost({
      commandFor: ({ spec, socketPath, mlRoot }) => ({
        command: process.execPath,
        args: argumentsFor(spec.environment, socketPath, mlRoot),
        env: {},
      }),
      socketsDirectory: join(directory, "s"),
      instancesDirectory: join(directory, "i"),
      store,
      unpacker,
      clock: systemClock,
      logger: silentLogger,
    }),
  );
  const open = host.open.bind(host);
  host.open = (spec) => {
    options.onOpen?.(spec);
    return open(spec);
  };
  const documents = new MemoryDocuments(options.documents);
  const closing = opening.move();
  return {
    fleet: {
      host,
      store,
      openSeries:
        options.openSeries ??
        (({ metricName, dimensions }) => {
          const container = dimensions.find(({ name }) => name === "ContainerName")?.value;
          return { record: (value) => onSample(metricName, value, container) };
        }),
      openLog: (_group, stream) => (chunk) => {
        logs.set(stream, (logs.get(stream) ?? "") + Buffer.from(chunk).toString());
      },
      logsLink: (group) => `http://here${group}`,
      credentials: await InstanceKeys.open({ documents, platformUrl: "", randomBytes, logger: silentLogger }),
      requestMemory: options.memory ?? new ByteBudget(2 ** 30),
      instanceLimits: {
        ...instanceLimits,
        startMsMax: testTimeoutMs,
        pingIntervalMs: 200,
        restartDelayMsMin: 1,
        ...options.instances,
      },
      invocationLimits: { ...invocationLimits, ...options.limits },
      clock: systemClock,
      logger: options.logger ?? silentLogger,
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  };
}

/** Opens hosting over such a host. It resumes the endpoints and jobs in the documents. */
export async function openHosting(options: HostingFixtureOptions): Promise<HostingFixture> {
  await using opening = new AsyncDisposableStack();
  const { fleet } = opening.use(await openFleetOptions(options));
  const hosting = opening.use(
    await Hosting.open({
      documents: new MemoryDocuments(options.documents),
      limits: { ...hostingLimits, ...options.hosting },
      nodes: options.nodes ?? [nodeWith()],
      random: Math.random,
      alarmState: options.alarmState ?? (() => null),
      ...options.queues,
      mirroring: { againMs: 50, ...options.mirroring },
      fleet,
    }),
  );
  if (options.isDetached === true) opening.defer(() => fleet.host.detach());
  await hosting.resume();
  const closing = opening.move();
  return { hosting, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}
