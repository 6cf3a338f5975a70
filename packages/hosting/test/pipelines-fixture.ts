import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { ByteBudget, ByteLease, silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore, type BucketStore } from "../src/objects/index.ts";
import type {
  ContainerDefinition,
  EndpointConfigRecord,
  Hosting,
  InstanceLimits,
  InvocationLimits,
  InvocationRequest,
} from "../src/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner } from "./hosting-fixture.ts";

/**
 * A container that implements only the contract. It responds with the JSON list of the request and one more entry: its
 * name and what it received. The custom attributes are JSON that can give a named container another behaviour.
 */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
const [name, socketPath, ping] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(0));
const told = (request) => JSON.parse(request.headers["x-amzn-sagemaker-custom-attributes"] ?? "{}")[name] ?? {};
const server = createServer(async (request, response) => {
  if (request.url === "/ping") return response.writeHead(Number(ping)).end();
  const path = request.url;
  if (path === "/models") return request.resume().on("end", () => response.end("{}"));
  const { status, text, type = "text/x-" + name + "; charset=utf-8", sends, chunked, dies, hangs, endless, deaf, length, trickle, after } = told(request);
  response.on("close", () => console.log("closed " + (response.writableFinished ? "whole" : "cut") + " after " + sent));
  let sent = 0;
  if (deaf) request.pause();
  const pieces = [];
  try {
    if (!deaf) for await (const piece of request) pieces.push(piece);
  } catch {
    return console.log("the request broke off");
  }
  if (hangs) return console.log("hangs");
  if (after) await new Promise((resolve) => setTimeout(resolve, after));
  if (dies === "before") process.kill(process.pid, "SIGKILL");
  if (status) return response.writeHead(status, { "content-type": "text/plain" }).end(text);
  if (type !== null) response.setHeader("content-type", type);
  response.setHeader("x-amzn-sagemaker-custom-attributes", "from " + name);
  if (endless || sends) {
    if (!chunked && sends) response.setHeader("content-length", sends);
    const piece = Buffer.alloc(65536, name);
    for (let left = sends ?? Infinity; left > 0; left -= piece.length) {
      if (dies === "amidst" && sent >= sends / 2) process.kill(process.pid, "SIGKILL");
      const part = left < piece.length ? piece.subarray(0, left) : piece;
      sent += part.length;
      if (!response.write(part)) await new Promise((resolve) => response.once("drain", resolve).once("close", resolve));
      if (response.destroyed) return;
      if (trickle) await new Promise((resolve) => setTimeout(resolve, trickle));
    }
    return response.end();
  }
  const body = Buffer.concat(pieces);
  const { host, connection, ...headers } = request.headers;
  if (length) return response.end(JSON.stringify([{ name, length: body.length, path }]));
  const before = body.length === 0 ? [] : JSON.parse(body);
  response.end(JSON.stringify([...before, { name, path, headers }]));
});
server.listen(socketPath, () => console.log("listens"));
`;

const bucket = "models";

/** Returns a tar archive with one file. */
function tar(path: string, body: Buffer): Buffer {
  const header = new Header({ path, type: "File", size: body.length, mode: 0o644, mtime: new Date(0) });
  header.encode();
  assert.ok(header.block);
  return Buffer.concat([header.block, body, Buffer.alloc(-body.length & 511), Buffer.alloc(1024)]);
}

interface SeriesSample {
  readonly metric: string;
  readonly container: string | undefined;
  readonly value: number;
}

/**
 * Hosting over the containers of `program`. The variable NAME is the container's name, and PING the status of its
 * health check (200 by default).
 */
export class PipelineFixture implements AsyncDisposable {
  readonly hosting: Hosting;
  readonly samples: SeriesSample[] = [];
  /** Output of the containers, by log stream. */
  readonly logs = new Map<string, string>();
  readonly memory = new ByteBudget(64 * 2 ** 20);
  readonly #closing: AsyncDisposableStack;
  readonly store: BucketStore;

  private constructor(
    store: BucketStore,
    hosting: Hosting,
    closing: AsyncDisposableStack,
    parts: Pick<PipelineFixture, "samples" | "logs">,
  ) {
    this.store = store;
    this.hosting = hosting;
    this.#closing = closing;
    this.samples = parts.samples;
    this.logs = parts.logs;
  }

  static async open(
    limits: Partial<InvocationLimits> = {},
    instances: Partial<InstanceLimits> = {},
  ): Promise<PipelineFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "gal-pipe-"));
    opening.defer(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "container.mjs");
    await writeFile(path, program);
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    await store.createBucket(bucket);
    const samples: SeriesSample[] = [];
    const logs = new Map<string, string>();
    const { hosting } = opening.use(
      await openHosting({
        directory,
        store,
        documents: new DocumentMemory(),
        argumentsFor: (environment, socketPath) => [
          path,
          environment["NAME"] ?? "",
          socketPath,
          environment["PING"] ?? "200",
        ],
        onSample: (metric, value, container) => void samples.push({ metric, container, value }),
        logs,
        limits,
        instances,
      }),
    );
    return new PipelineFixture(store, hosting, opening.move(), { samples, logs });
  }

  /** Stores an archive of a multi-model container. Returns the S3 prefix of the archives. */
  async put(key: string): Promise<string> {
    const body = gzipSync(tar("config.pbtxt", Buffer.from("name: 'a'")));
    await this.store.put(bucket, key, Readable.from([body]), { signal: new AbortController().signal });
    return `s3://${bucket}/`;
  }

  /** Creates an endpoint with the given containers. Resolves when its state is stable. */
  async deploy(
    name: string,
    containers: readonly ContainerDefinition[],
    executionMode: "Serial" | "Direct" = "Serial",
    more: Partial<Pick<EndpointConfigRecord, "dataCapture">> = {},
  ): Promise<void> {
    const shared = { name, owner, request: {}, tags: [] };
    await this.hosting.catalog.createModel({ ...shared, containers: imaged(containers), executionMode });
    const variant = {
      VariantName: "all",
      ModelName: name,
      InitialInstanceCount: 1,
      InstanceType: "ml.m5.xlarge",
      InitialVariantWeight: 1,
    };
    await this.hosting.catalog.createConfig({ ...shared, ...more, variants: [variant] });
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: new AbortController().signal });
  }

  /** Invokes an endpoint. Returns the response's text and its other fields. */
  async call(
    name: string,
    more: Partial<Omit<InvocationRequest, "body">> & {
      body?: string | Readable;
      does?: object;
      budget?: ByteBudget;
    } = {},
  ) {
    const { body = "[]", does, headers = {}, budget = this.memory, ...request } = more;
    const attributes = does === undefined ? {} : { "x-amzn-sagemaker-custom-attributes": JSON.stringify(does) };
    using memory = new ByteLease(budget);
    const reply = await this.hosting.invoke(name, owner.accountId, {
      headers: { "content-type": "application/json", ...headers, ...attributes },
      targetModel: null,
      targetVariant: null,
      targetContainer: null,
      isStreamed: false,
      body: () => Promise.resolve(typeof body === "string" ? Buffer.from(body) : body),
      memory,
      receivedNs: systemClock.monotonicNs(),
      signal: new AbortController().signal,
      ...request,
    });
    const chunks: Buffer[] = [];
    try {
      if (Buffer.isBuffer(reply.body)) chunks.push(reply.body);
      else for await (const chunk of reply.body) chunks.push(chunk as Buffer);
    } finally {
      reply.done();
    }
    return { ...reply, text: Buffer.concat(chunks).toString(), heldBytes: memory.bytes };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}
