import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  InvokeEndpointCommand,
  InvokeEndpointWithResponseStreamCommand,
  SageMakerRuntimeClient,
  type InvokeEndpointCommandOutput,
  type InvokeEndpointWithResponseStreamCommandOutput,
} from "@aws-sdk/client-sagemaker-runtime";
import { createGateway } from "@galatea/aws";
import { runtimeService } from "@galatea/aws/services/sagemaker-runtime";
import { ByteBudget, silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore } from "@galatea/hosting/objects";
import type { Hosting, InvocationLimits } from "@galatea/hosting";
import { DocumentMemory } from "@galatea/hosting/records/contracts";
import { imaged, openHosting, owner, type HostingFixture } from "../../hosting/test/hosting-fixture.ts";
import { createPlatformServer, listenOn, platformServerLimits, type PlatformServer } from "@galatea/aws/http-server";

/**
 * A container that responds in chunks as its request says: `status` at once; `segments`, each in its chunk; then it
 * `holds` until its process gets SIGUSR2; then `more` segments; then it ends, or does as `ends` says. It prints how each
 * response ended. `tiny` and `endless` are responses of a million chunks of one byte, and of one without an end.
 */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave no containers.
const [name, socketPath] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(0));
const held = new Set();
process.on("SIGUSR2", () => { for (const go of held) go(); held.clear(); });
const drained = (response) => new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
const server = createServer(async (request, response) => {
  if (request.url === "/ping") return response.end();
  let body = "";
  for await (const piece of request) body += piece;
  const { status = 200, segments = [], holds, more = [], ends, tiny, endless, opens, closes, length } = JSON.parse(body);
  let sent = 0;
  response.on("close", () => console.log((response.writableFinished ? "whole " : "cut ") + sent));
  response.writeHead(status, {
    "content-type": "text/x-" + name,
    "x-amzn-sagemaker-custom-attributes": String(process.pid),
    ...(length ? { "content-length": length } : {}),
    ...(opens ? { "x-amzn-sagemaker-new-session-id": opens } : {}),
    ...(closes ? { "x-amzn-sagemaker-closed-session-id": closes } : {}),
  });
  response.flushHeaders();
  const go = async (each) => { for (const part of each) response.write(part), sent += part.length; };
  if (tiny) {
    const chunks = Buffer.from("1\\r\\nx\\r\\n".repeat(1000));
    for (let left = 1000; left > 0; left -= 1) if (!response.socket.write(chunks)) await drained(response.socket);
    return response.end();
  }
  if (endless) {
    const piece = Buffer.alloc(65536, "e");
    while (!response.destroyed) {
      sent += piece.length;
      if (response.write(piece)) continue;
      const waits = setTimeout(() => console.log("held up"), 500);
      await drained(response);
      clearTimeout(waits);
    }
    return;
  }
  await go(segments);
  console.log("holds");
  if (holds) await new Promise((resolve) => held.add(resolve));
  await go(more);
  if (ends === "dies") return setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
  if (ends === "breaks") return setTimeout(() => response.destroy(), 20);
  response.end();
});
server.listen(socketPath);
`;

export interface TestStream {
  readonly status?: number;
  readonly segments?: readonly string[];
  readonly holds?: boolean;
  readonly more?: readonly string[];
  readonly ends?: "dies" | "breaks";
  readonly tiny?: boolean;
  readonly endless?: boolean;
  /** Values of the headers for stateful sessions. */
  readonly opens?: string;
  readonly closes?: string;
  /** The length that it states. By default it states none. */
  readonly length?: number;
}

/** The platform's port over containers that respond in chunks, and the JavaScript SDK as its client. */
export class StreamFixture implements AsyncDisposable {
  readonly hosting: Hosting;
  readonly platform: PlatformServer;
  readonly url: string;
  readonly client: SageMakerRuntimeClient;
  /** Values by metric. */
  readonly samples: ReadonlyMap<string, readonly number[]>;
  readonly #logs: ReadonlyMap<string, string>;
  readonly #closing: AsyncDisposableStack;

  private constructor(
    parts: Pick<StreamFixture, "hosting" | "platform" | "url" | "client" | "samples">,
    logs: ReadonlyMap<string, string>,
    closing: AsyncDisposableStack,
  ) {
    this.hosting = parts.hosting;
    this.platform = parts.platform;
    this.url = parts.url;
    this.client = parts.client;
    this.samples = parts.samples;
    this.#logs = logs;
    this.#closing = closing;
  }

  static async open(limits: Partial<InvocationLimits> = {}, stallTimeoutMs = 120_000): Promise<StreamFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "gal-streams-"));
    opening.defer(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "container.mjs");
    await writeFile(path, program);
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    const samples = new Map<string, number[]>();
    const logs = new Map<string, string>();
    const { hosting }: HostingFixture = opening.use(
      await openHosting({
        directory,
        store,
        documents: new DocumentMemory(),
        argumentsFor: ({ NAME = "" }, socketPath) => [path, NAME, socketPath],
        onSample: () => {},
        openSeries: ({ metricName, dimensions }) => ({
          record: (value) => {
            if (dimensions.length === 2) samples.set(metricName, [...(samples.get(metricName) ?? []), value]);
          },
        }),
        logs,
        limits,
      }),
    );
    const requestMemory = new ByteBudget(64 * 2 ** 20);
    const platform = createPlatformServer({ ...platformServerLimits, stallTimeoutMs });
    const gateway = createGateway({
      services: [
        runtimeService({ hosting, requestBytesMax: 6_291_456, streamAbort: platform.streamAbort, clock: systemClock }),
      ],
      credentials: null,
      regionDefault: owner.region,
      accountIdDefault: owner.accountId,
      requestMemory,
      logger: silentLogger,
    });
    gateway.attach(platform.server);
    const url = await listenOn(platform.server, { host: "127.0.0.1", port: 0 });
    opening.defer(() => platform.close(0));
    const credentials = { accessKeyId: "k", secretAccessKey: "s" };
    const client = new SageMakerRuntimeClient({ endpoint: url, region: owner.region, credentials, maxAttempts: 1 });
    opening.defer(() => client.destroy());
    return new StreamFixture({ hosting, platform, url, client, samples }, logs, opening.move());
  }

  /** Creates an endpoint whose containers have these names; resolves when it is in service. */
  async deploy(name: string, ...containers: readonly string[]): Promise<void> {
    await this.deployMany(name, 1, ...containers);
  }

  /** Creates an endpoint with several instances. */
  async deployMany(name: string, instanceCount: number, ...containers: readonly string[]): Promise<void> {
    await this.configure(name, instanceCount, ...containers);
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: new AbortController().signal });
  }

  async configure(name: string, instanceCount: number, ...containers: readonly string[]): Promise<void> {
    const shared = { name, owner, request: {}, tags: [] };
    const named = containers.map((NAME) => ({ Environment: { NAME } }));
    await this.hosting.catalog.createModel({ ...shared, containers: imaged(named), executionMode: "Serial" });
    const variant = {
      VariantName: "all",
      ModelName: name,
      InitialInstanceCount: instanceCount,
      InstanceType: "ml.m5.large",
      InitialVariantWeight: 1,
    };
    await this.hosting.catalog.createConfig({ ...shared, variants: [variant] });
  }

  /** Opens a stream; rejects with an error that occurs before the first chunk. */
  async call(name: string, requested: TestStream, more: object = {}): Promise<OpenStream> {
    const command = new InvokeEndpointWithResponseStreamCommand({
      EndpointName: name,
      Body: Buffer.from(JSON.stringify(requested)),
      ...more,
    });
    const left = new AbortController();
    return new OpenStream(await this.client.send(command, { abortSignal: left.signal }), () => left.abort());
  }

  /** Calls InvokeEndpoint, whose response is complete. */
  async invoke(name: string, requested: TestStream, more: object = {}): Promise<InvokeEndpointCommandOutput> {
    const Body = Buffer.from(JSON.stringify(requested));
    return await this.client.send(new InvokeEndpointCommand({ EndpointName: name, Body, ...more }));
  }

  get printed(): string {
    return [...this.#logs.values()].join("");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}

/** An event stream, as its client reads it. */
export class OpenStream {
  readonly output: InvokeEndpointWithResponseStreamCommandOutput;
  readonly disconnect: () => void;
  readonly #events;

  constructor(output: InvokeEndpointWithResponseStreamCommandOutput, disconnect: () => void) {
    this.output = output;
    this.disconnect = disconnect;
    this.#events = output.Body?.[Symbol.asyncIterator]();
  }

  /** Process id of the responding container. */
  get pid(): number {
    return Number(this.output.CustomAttributes);
  }

  /** Lets a container continue that holds its response. */
  release(): void {
    process.kill(this.pid, "SIGUSR2");
  }

  /** Resolves with the next chunk; null at the end. Rejects with an exception among the events. */
  async next(): Promise<string | null> {
    const next = await this.#events?.next();
    if (next === undefined || next.done === true) return null;
    return Buffer.from(next.value.PayloadPart?.Bytes ?? []).toString();
  }

  /** Resolves with the remaining chunks. */
  async rest(): Promise<readonly string[]> {
    const segments: string[] = [];
    for (let segment = await this.next(); segment !== null; segment = await this.next()) segments.push(segment);
    return segments;
  }
}
