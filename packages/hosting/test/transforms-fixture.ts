import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { ByteBudget, createLogger, silentLogger } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore, type BucketStore } from "../src/objects/index.ts";
import type { ModelContainers, Hosting, TransformJobRecord, TransformRequest } from "../src/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner, type HostingFixture } from "./hosting-fixture.ts";

/**
 * A container that responds to each request with its lines transformed as the variable DOES says. It logs one line for
 * each request.
 */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
import { existsSync, writeFileSync } from "node:fs";
const died = process.argv[1] + ".died";
const [does, socketPath, parameters] = process.argv.slice(2);
if (does === "breaks") process.exit(1);
process.on("SIGTERM", () => process.exit(0));
let askedCount = 0;
let underWay = 0;
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const server = createServer(async (request, response) => {
  if (request.url === "/ping") return response.end();
  if (request.url === "/execution-parameters") return parameters === "" ? response.writeHead(404).end() : response.end(parameters);
  underWay += 1;
  const at = ++askedCount;
  if (does === "stream") {
    for await (const piece of request) if (!response.write(piece)) await new Promise((resolve) => response.once("drain", resolve));
    return response.end();
  }
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  const text = Buffer.concat(pieces).toString();
  if (does !== "quiet") console.log("asked " + JSON.stringify({ text: text.slice(0, 200), bytes: text.length, underWay, type: request.headers["content-type"], accept: request.headers.accept, length: request.headers["content-length"] }));
  const done = (status, answer) => { underWay -= 1; response.writeHead(status).end(answer); };
  if (does === "hang") return;
  if (does === "dies" && !existsSync(died)) {
    writeFileSync(died, "");
    process.kill(process.pid, "SIGKILL");
  }
  if (does === "unsure" && at < 3) return done(503, "busy");
  if (does === "slow") await wait(300);
  // The first of two is answered last, and the first four when all of them are there.
  if (does === "shuffled") {
    while (askedCount < 4) await wait(1);
    await wait(at % 2 ? 60 : 1);
  }
  if (text.includes("bad")) return done(400, "no such row");
  if (does === "echo" || does === "quiet") return done(200, text);
  const rows = text.split("\\n").filter((row) => row !== "");
  if (does === "length") return done(200, rows.map((row) => row.length).join("\\n"));
  if (does === "vast") return done(200, Buffer.alloc(64 * 2 ** 20, "x"));
  if (does === "few") return done(200, "one");
  done(200, rows.map((row) => row.toUpperCase()).join("\\n"));
});
server.listen(socketPath);
`;

/** Hosting over the containers of `program`, and a store with the bucket `bkt`. */
export class TransformFixture implements AsyncDisposable {
  readonly logs = new Map<string, string>();
  /** Lines of the platform's log, each with its level first. */
  readonly platformLines: string[] = [];
  readonly samples: { readonly metric: string; readonly value: number }[] = [];
  readonly store: BucketStore;
  readonly #directory: string;
  readonly #documents: DocumentMemory;
  readonly #closing: AsyncDisposableStack;
  readonly #memory: ByteBudget;
  #running!: HostingFixture;

  private constructor(
    directory: string,
    store: BucketStore,
    of: { readonly closing: AsyncDisposableStack; readonly memory: ByteBudget; readonly documents: DocumentMemory },
  ) {
    this.#memory = of.memory;
    this.#documents = of.documents;
    this.#directory = directory;
    this.store = store;
    this.#closing = of.closing;
  }

  /** Opens the fixture, with the documents and the objects of a previous run. */
  static async open(
    memory = new ByteBudget(2 ** 30),
    documents = new DocumentMemory(),
    objects: ReadonlyMap<string, string> = new Map(),
  ): Promise<TransformFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), "gal-tr-"));
    opening.defer(() => rm(directory, { recursive: true, force: true }));
    await writeFile(join(directory, "container.mjs"), program);
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    await store.createBucket("bkt");
    const bench = new TransformFixture(directory, store, { closing: opening.move(), memory, documents });
    for (const [key, body] of objects) await bench.put(key, body);
    await bench.#start();
    return bench;
  }

  get hosting(): Hosting {
    return this.#running.hosting;
  }

  /** Closes the platform, and opens it again with its records and objects. */
  async startAgain(): Promise<void> {
    await this.#running[Symbol.asyncDispose]();
    await this.#start();
  }

  async put(key: string, body: string | Buffer): Promise<void> {
    const chunks = Readable.from([Buffer.from(body)]);
    await this.store.put("bkt", key, chunks, { signal: new AbortController().signal });
  }

  /** Returns the number of transformed objects in the recorded progress of the only job. */
  doneCount(): number {
    const found = [...this.#documents.held.values()].find(({ kind }) => kind === "transform-progress");
    return found === undefined ? 0 : (JSON.parse(found.body) as { readonly doneCount: number }).doneCount;
  }

  /** Returns the text of an object; null if it does not exist. */
  async get(key: string): Promise<string | null> {
    const found = await this.store.get("bkt", key).catch(() => null);
    if (found === null) return null;
    const chunks: Buffer[] = [];
    for await (const chunk of found.body) chunks.push(chunk as Buffer);
    return Buffer.concat(chunks).toString();
  }

  /** Returns the current content of the bucket, by key. */
  async objects(): Promise<ReadonlyMap<string, string>> {
    const pending = (await this.keys("")).map(async (key) => [key, (await this.get(key)) ?? ""] as const);
    return new Map(await Promise.all(pending));
  }

  /** Returns the number of instance directories: each instance has one while it exists. */
  async directoryCount(): Promise<number> {
    return (await readdir(join(this.#directory, "i"))).filter((each) => each.startsWith("i-")).length;
  }

  async keys(prefix: string): Promise<string[]> {
    const { objects } = await this.store.list("bkt", { prefix, delimiter: "", startAfter: "", keysMax: 1000 });
    return objects.map(({ key }) => key);
  }

  /** Starts a job over a model with the given behaviour. The input is `in/`, the output `out`. */
  async begin(
    name: string,
    does: string,
    more: Partial<TransformRequest> = {},
    parameters = "",
    containers: ModelContainers = [{ Environment: { DOES: does, PARAMETERS: parameters } }],
  ): Promise<void> {
    const shared = { owner, request: {}, tags: [] };
    await this.hosting.catalog.createModel({
      ...shared,
      name,
      containers: imaged(containers),
      executionMode: "Serial",
    });
    const request: TransformRequest = {
      TransformJobName: name,
      ModelName: name,
      TransformInput: input({}),
      TransformOutput: { S3OutputPath: "s3://bkt/out" },
      TransformResources: { InstanceType: "ml.m5.xlarge", InstanceCount: 1 },
      ...more,
    };
    await this.hosting.transforms.create(request, owner, []);
  }

  async ended(name: string): Promise<TransformJobRecord> {
    await this.hosting.transforms.waitUntilEnded(name, {
      waitMsMax: testTimeoutMs,
      signal: new AbortController().signal,
    });
    return await this.hosting.transforms.find(name);
  }

  async run(name: string, does: string, more: Partial<TransformRequest> = {}, parameters = "") {
    await this.begin(name, does, more, parameters);
    return await this.ended(name);
  }

  /** Returns the requests that the containers of a job received. */
  asked(name: string): { text: string; bytes: number; underWay: number; type?: string; accept?: string }[] {
    const lines = [...this.logs].filter(([stream]) => stream.startsWith(`${name}/i-`)).map(([, text]) => text);
    const pattern = [...lines.join("").matchAll(/^asked (.*)$/gm)];
    return pattern.map(([, text = ""]) => JSON.parse(text) as ReturnType<TransformFixture["asked"]>[number]);
  }

  async #start(): Promise<void> {
    const directory = this.#directory;
    this.#running = await openHosting({
      directory,
      store: this.store,
      documents: this.#documents,
      argumentsFor: (environment, socketPath) => [
        join(directory, "container.mjs"),
        environment["DOES"] ?? "",
        socketPath,
        environment["PARAMETERS"] ?? "",
      ],
      onSample: (metric, value) => void this.samples.push({ metric, value }),
      logs: this.logs,
      logger: createLogger((level, message) => this.platformLines.push(`${level} ${message}`)),
      memory: this.#memory,
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#running[Symbol.asyncDispose]();
    await this.#closing.disposeAsync();
  }
}

export function input(
  more: Partial<TransformRequest["TransformInput"]>,
  uri = "s3://bkt/in/",
): TransformRequest["TransformInput"] {
  return { DataSource: { S3DataSource: { S3DataType: "S3Prefix", S3Uri: uri } }, ContentType: "text/csv", ...more };
}
