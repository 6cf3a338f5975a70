import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { silentLogger } from "@galatea/base";
import { openDirectoryStore, type BucketStore } from "../src/objects/index.ts";
import {
  asyncLimits,
  type AsyncInferenceConfig,
  type AsyncLimits,
  type AsyncRequest,
  type AsyncReceipt,
  type Hosting,
} from "../src/index.ts";
import type { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner } from "./hosting-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

/**
 * A container whose behaviour is the first word of a request: `fail`, `die`, `hang`, `long`, or `hold` until a file
 * exists. Other requests get a response with the body length, the headers, and the maximum number of concurrent
 * requests so far.
 */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
import { existsSync, appendFileSync } from "node:fs";
const [socketPath, directory] = process.argv.slice(2);
process.on("SIGTERM", () => process.exit(0));
let [now, most] = [0, 0];
createServer(async (request, response) => {
  if (request.url === "/ping") return response.end();
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const body = Buffer.concat(pieces);
  const [word, file] = body.subarray(0, 100).toString().split(" ");
  most = Math.max(most, (now += 1));
  appendFileSync(directory + "/runs", word + " " + file + "\\n");
  if (word === "die") process.kill(process.pid, "SIGKILL");
  if (word === "hang") return;
  if (word === "fail") return response.writeHead(500).end("the model is not well");
  while (word === "hold" && !existsSync(directory + "/" + file)) await new Promise((resolve) => setTimeout(resolve, 5));
  now -= 1;
  response.setHeader("content-type", "text/x-said");
  if (word === "long") {
    for (let left = Number(file); left > 0; left -= 65536) response.write(Buffer.alloc(Math.min(left, 65536), "l"));
    return response.end();
  }
  response.end(JSON.stringify({ length: body.length, word, most, headers: request.headers }));
}).listen(socketPath);
`;

export const bucket = "results";

export const paths = { S3OutputPath: `s3://${bucket}/out/`, S3FailurePath: `s3://${bucket}/bad` };

/** Hosting of asynchronous endpoints over the containers of `program`. */
export class AsyncFixture implements AsyncDisposable {
  readonly hosting: Hosting;
  readonly store: BucketStore;
  readonly directory: string;
  /** Sums of metrics. The key consists of the values of the dimensions and the name of the metric. */
  readonly sums: Map<string, number>;
  /** Published messages, in order. */
  readonly messages: { readonly topic: string; readonly message: Record<string, unknown> }[];
  /** Log text by stream. */
  readonly logs: ReadonlyMap<string, string>;
  readonly #closing: AsyncDisposableStack;

  private constructor(
    hosting: Hosting,
    closing: AsyncDisposableStack,
    parts: Pick<AsyncFixture, "store" | "directory" | "sums" | "messages" | "logs">,
  ) {
    this.hosting = hosting;
    this.#closing = closing;
    this.store = parts.store;
    this.directory = parts.directory;
    this.sums = parts.sums;
    this.messages = parts.messages;
    this.logs = parts.logs;
  }

  /** Opens the fixture. By default, in a new temporary directory. */
  static async open(
    options: {
      readonly documents?: DocumentMemory;
      readonly directory?: string;
      /** Content of the bucket by key. */
      readonly objects?: ReadonlyMap<string, string>;
      readonly limits?: Partial<AsyncLimits>;
      readonly series?: InMemoryMetricStore;
    } = {},
  ): Promise<AsyncFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = options.directory ?? (await mkdtemp(join(tmpdir(), "gal-async-")));
    if (options.directory === undefined) opening.defer(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "container.mjs");
    await writeFile(path, program);
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    if (!(await store.buckets()).some((each) => each.bucket === bucket)) await store.createBucket(bucket);
    for (const [key, body] of options.objects ?? []) await putText(store, key, body);
    const sums = new Map<string, number>();
    const messages: AsyncFixture["messages"] = [];
    const logs = new Map<string, string>();
    const { hosting } = opening.use(
      await openHosting({
        directory,
        store,
        documents: options.documents ?? new DocumentMemory(),
        argumentsFor: (_environment, socketPath) => [path, socketPath, directory],
        onSample: () => {},
        openSeries: (key) => {
          const name = `${key.dimensions.map(({ value }) => value).join(" ")} ${key.metricName}`;
          const kept = options.series?.recorder(key);
          return {
            record(value) {
              sums.set(name, (sums.get(name) ?? 0) + value);
              kept?.record(value);
            },
          };
        },
        logs,
        queues: {
          asyncLimits: { ...asyncLimits, pollMs: 20, sampleMs: 20, pauseMsMin: 20, ...options.limits },
          outbox: {
            prepareMessage: async (topic, message) => {
              if (topic.endsWith("absent")) return null;
              const parsed = JSON.parse(message) as Record<string, unknown>;
              const status = (parsed as { readonly invocationStatus: string }).invocationStatus;
              const body = `${topic.slice(topic.lastIndexOf(":") + 1)} ${status}`;
              const change = { do: "put", kind: "told", key: randomUUID(), body, expects: "absent" } as const;
              return { changes: [change], written: () => void messages.push({ topic, message: parsed }) };
            },
          },
        },
      }),
    );
    return new AsyncFixture(hosting, opening.move(), { store, directory, sums, messages, logs });
  }

  /** Creates an endpoint. Resolves when it is in service. */
  async deploy(
    name: string,
    config: AsyncInferenceConfig = { OutputConfig: paths },
    InitialInstanceCount = 1,
  ): Promise<void> {
    const shared = { name, owner, request: {}, tags: [] };
    await this.hosting.catalog.createModel({ ...shared, containers: imaged([{}]), executionMode: "Serial" });
    const variant = {
      VariantName: "v",
      ModelName: name,
      InitialInstanceCount,
      InstanceType: "ml.m5.large",
      InitialVariantWeight: 1,
    };
    await this.hosting.catalog.createConfig({ ...shared, variants: [variant], asyncInference: config });
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.settled(name);
  }

  async resize(name: string, instanceCount: number): Promise<void> {
    await this.hosting.endpoints.resize(name, [{ variantName: "v", instanceCount }], owner);
    await this.settled(name);
  }

  async settled(name: string): Promise<void> {
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: new AbortController().signal });
  }

  /** Sends an asynchronous request. `body` is the input unless `more` has an input URL. */
  async call(name: string, body: string, more: Partial<AsyncRequest> = {}): Promise<AsyncReceipt> {
    return await this.hosting.asyncInferences.accept(name, owner, {
      headers: { "content-type": "text/x-asked", accept: "text/x-said" },
      inferenceId: null,
      inputUrl: null,
      body: more.inputUrl === undefined || more.inputUrl === null ? Buffer.from(body) : null,
      ttlSeconds: null,
      timeLimitSeconds: null,
      extension: null,
      fileName: null,
      ...more,
    });
  }

  async put(key: string, body: string, contentType?: string): Promise<string> {
    await putText(this.store, key, body, contentType);
    return `s3://${bucket}/${key}`;
  }

  /** Returns the current content of the bucket, by key. */
  async objects(): Promise<ReadonlyMap<string, string>> {
    const query = { prefix: "", delimiter: "", startAfter: "", keysMax: 1000 };
    const { objects } = await this.store.list(bucket, query);
    const pending = objects.map(
      async ({ key }) => [key, await text((await this.store.get(bucket, key)).body)] as const,
    );
    return new Map(await Promise.all(pending));
  }

  /** Returns the object at an S3 URL; null if it does not exist. */
  async object(url: string | null): Promise<{ readonly text: string; readonly contentType: string } | null> {
    const key = (url ?? "").replace(`s3://${bucket}/`, "");
    const found = await this.store.get(bucket, key).catch(() => null);
    if (found === null) return null;
    return { text: await text(found.body), contentType: found.head.contentType };
  }

  /** Resolves with the result of a request when it has been stored. */
  async result(
    ticket: AsyncReceipt,
  ): Promise<{ readonly ok: boolean; readonly text: string; readonly contentType: string }> {
    for (const untilMs = performance.now() + testTimeoutMs; performance.now() < untilMs;) {
      const [output, failure] = [await this.object(ticket.outputUrl), await this.object(ticket.failureUrl)];
      if (output !== null) return { ok: true, ...output };
      if (failure !== null) return { ok: false, ...failure };
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    throw new Error(`nothing came of ${JSON.stringify(ticket)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}

async function putText(store: BucketStore, key: string, body: string, contentType?: string): Promise<void> {
  const { signal } = new AbortController();
  const options = { signal, ...(contentType === undefined ? {} : { contentType }) };
  await store.put(bucket, key, Readable.from(Buffer.from(body)), options);
}
