import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { Header } from "tar";
import { ByteBudget, ByteLease, silentLogger, systemClock } from "@galatea/base";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";
import { openDirectoryStore, type BucketStore } from "../src/objects/index.ts";
import type { ContainerDefinition, Hosting, InvocationLimits } from "../src/index.ts";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner, type HostingFixtureOptions } from "./hosting-fixture.ts";

/**
 * A multi-model container. It logs loads and unloads, and responds with the model's text, its instance and its process
 * id.
 */
const program = `
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
import { existsSync, readFileSync } from "node:fs";
const [socketPath, mlRoot] = process.argv.slice(2);
if (existsSync(mlRoot + "/../broken")) process.exit(1);
const models = new Map();
process.on("SIGTERM", () => process.exit(0));
createServer(async (request, response) => {
  let body = "";
  for await (const piece of request) body += piece;
  const send = (status, text = "", headers = {}) => { response.writeHead(status, headers); response.end(text); };
  const [, , id, verb] = request.url.split("/");
  if (request.url === "/ping") return send(200);
  if (request.method === "GET" && request.url === "/models")
    return send(200, JSON.stringify({ models: [...models.keys()].map((modelName) => ({ modelName })) }));
  if (request.method === "GET") return send(models.has(id) ? 200 : 404, "", { "x-galatea-model-bytes": 1000000 });
  const target = request.headers["x-amzn-sagemaker-target-model"];
  if (request.method === "POST" && request.url === "/models") {
    const { model_name, url } = JSON.parse(body);
    console.log("load " + target);
    const text = readFileSync(url.replace("/opt/ml", mlRoot) + "/answer", "utf8");
    if (text === "slow") await new Promise((resolve) => setTimeout(resolve, 1000));
    while (text === "held" && existsSync(process.argv[1] + ".holds")) await new Promise((resolve) => setTimeout(resolve, 5));
    models.set(model_name, text);
    return send(200, "", { "x-galatea-model-bytes": 1000000 });
  }
  if (request.method === "DELETE") { console.log("unload " + target); return send(models.delete(id) ? 200 : 404); }
  if (verb !== "invoke" || !models.has(id)) return send(404);
  const answer = () => send(200, [models.get(id), socketPath.split("/").pop(), process.pid].join(" "));
  setTimeout(answer, Number(body));
}).listen(socketPath);
`;

export interface ModelResponse {
  readonly text: string;
  readonly instance: string;
  readonly pid: number;
}

export interface ModelCounts {
  responseCount: number;
  readonly failures: string[];
}

/** Options of the fixture. The test owns and removes a given directory. */
export type ModelsFixtureOptions = Partial<
  Pick<HostingFixtureOptions, "directory" | "documents" | "instances" | "isDetached" | "nodes">
>;

interface BenchParts {
  readonly hosting: Hosting;
  readonly store: BucketStore;
  readonly samples: Map<string, number[]>;
  readonly logs: ReadonlyMap<string, string>;
  readonly instancesDirectory: string;
}

const never = new AbortController().signal;
const budget = new ByteBudget(64 * 2 ** 20);

/** Hosting over multi-model containers that log their loads, and clients that send requests continuously. */
export class ModelsFixture implements AsyncDisposable {
  readonly #parts: BenchParts;
  readonly #closing: AsyncDisposableStack;

  private constructor(parts: BenchParts, closing: AsyncDisposableStack) {
    this.#parts = parts;
    this.#closing = closing;
  }

  static async open(limits: Partial<InvocationLimits> = {}, more: ModelsFixtureOptions = {}): Promise<ModelsFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = more.directory ?? (await mkdtemp(join(tmpdir(), "gal-models-")));
    if (more.directory === undefined) opening.defer(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "container.mjs");
    await writeFile(path, program);
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    if ((await store.buckets()).length === 0) await store.createBucket("models");
    const [samples, logs] = [new Map<string, number[]>(), new Map<string, string>()];
    const { hosting } = opening.use(
      await openHosting({
        documents: new DocumentMemory(),
        ...more,
        directory,
        store,
        argumentsFor: (_environment, socketPath, mlRoot) => [path, socketPath, mlRoot],
        onSample: () => {},
        openSeries: ({ metricName, dimensions }) => ({
          record(value) {
            if (dimensions.length !== 2) return;
            const values = samples.get(metricName);
            if (values === undefined) samples.set(metricName, [value]);
            else values.push(value);
          },
        }),
        logs,
        limits,
      }),
    );
    return new ModelsFixture(
      { hosting, store, samples, logs, instancesDirectory: join(directory, "i") },
      opening.move(),
    );
  }

  get hosting(): Hosting {
    return this.#parts.hosting;
  }

  /** Returns the samples of a metric with only the dimensions EndpointName and VariantName, in order. */
  samples(metric: string): readonly number[] {
    return this.#parts.samples.get(metric) ?? [];
  }

  /** Stores an archive of a model that responds with `text`. */
  async put(target: string, text: string): Promise<void> {
    const bytes = Buffer.from(text);
    const header = new Header({ path: "./answer", type: "File", size: bytes.length, mode: 0o644, mtime: new Date(0) });
    header.encode();
    const padding = Buffer.alloc((512 - (bytes.length % 512)) % 512);
    const archive = gzipSync(Buffer.concat([header.block ?? Buffer.alloc(0), bytes, padding, Buffer.alloc(1024)]));
    await this.#parts.store.put("models", target, Readable.from([archive]), { signal: never });
  }

  async remove(target: string): Promise<void> {
    await this.#parts.store.delete("models", target);
  }

  /** Creates a model and an endpoint configuration with the same name. */
  async configure(name: string, instanceCount: number, container: Partial<ContainerDefinition> = {}): Promise<void> {
    const shared = { owner, request: {}, tags: [] };
    const containers = imaged([{ Mode: "MultiModel", ModelDataUrl: "s3://models/", ...container }]);
    await this.hosting.catalog.createModel({ ...shared, name, containers, executionMode: "Serial" });
    const variant = {
      VariantName: "all",
      ModelName: name,
      InitialInstanceCount: instanceCount,
      InstanceType: "ml.m5.large",
      InitialVariantWeight: 1,
    };
    await this.hosting.catalog.createConfig({ ...shared, name, variants: [variant] });
  }

  /** Creates an endpoint. Resolves when its state is stable. */
  async deploy(name: string, instanceCount: number, container: Partial<ContainerDefinition> = {}): Promise<void> {
    await this.configure(name, instanceCount, container);
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.settled(name);
  }

  async resize(name: string, instanceCount: number): Promise<void> {
    await this.hosting.endpoints.resize(name, [{ variantName: "all", instanceCount }], owner);
    await this.settled(name);
  }

  /** Starts an update. Resolves when it is recorded. */
  async update(name: string, configName: string): Promise<void> {
    const plain = { deploymentConfig: null, retainsDeployment: false, retained: new Set<never>() };
    await this.hosting.endpoints.update({ ...plain, name, configName, owner });
  }

  async settled(name: string): Promise<void> {
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: never });
  }

  /** Invokes a model, which responds after `afterMs` milliseconds. */
  async call(name: string, target: string, afterMs = 0): Promise<ModelResponse> {
    using memory = new ByteLease(budget);
    const reply = await this.hosting.invoke(name, owner.accountId, {
      headers: {},
      targetModel: target,
      targetVariant: null,
      targetContainer: null,
      body: () => Promise.resolve(Buffer.from(String(afterMs))),
      memory,
      receivedNs: systemClock.monotonicNs(),
      isStreamed: false,
      signal: never,
    });
    const [text = "", instance = "", pid] = (reply.body as Buffer).toString().split(" ");
    reply.done();
    return { text, instance, pid: Number(pid) };
  }

  /** Returns the unpacked models on the disks of all instances; a model on two instances is listed twice. */
  async unpacked(): Promise<readonly string[]> {
    const { instancesDirectory: directory } = this.#parts;
    const instances = (await readdir(directory)).filter((name) => name.startsWith("i-"));
    return (await Promise.all(instances.map((name) => readdir(join(directory, name, "ml", "models"))))).flat();
  }

  /** Blocks or releases loads of models whose text is `held`. */
  async holdLoads(holds: boolean): Promise<void> {
    const path = join(this.#parts.instancesDirectory, "..", "container.mjs.holds");
    await (holds ? writeFile(path, "") : rm(path));
  }

  /** Makes an instance's container exit at each later start. */
  async breakInstance(instance: string): Promise<void> {
    await writeFile(join(this.#parts.instancesDirectory, instance.replace(".sock", ""), "broken"), "");
  }

  /** Returns the number of loads (or unloads) of each model so far, summed over all instances. */
  loads(what: "load" | "unload" = "load"): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const text of this.#parts.logs.values()) {
      for (const line of text.split("\n")) {
        const [verb, target = ""] = line.split(" ");
        if (verb === what) counts.set(target, (counts.get(target) ?? 0) + 1);
      }
    }
    return counts;
  }

  /**
   * Starts clients that invoke models continuously, until `end` is called. It resolves with the counts of responses and
   * errors.
   */
  clients(name: string, clientCount: number, next: () => string): { readonly end: () => Promise<ModelCounts> } {
    const counts: ModelCounts = { responseCount: 0, failures: [] };
    const over = new AbortController();
    const one = async () => {
      while (!over.signal.aborted) {
        const target = next();
        try {
          const { text } = await this.call(name, target);
          if (text === target) counts.responseCount += 1;
          else counts.failures.push(`${target} responded ${text}`);
        } catch (error) {
          counts.failures.push(String(error));
          // Yields, because immediate rejections must not block all other work.
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
    };
    const all = Array.from({ length: clientCount }, one);
    const end = async () => {
      over.abort();
      await Promise.all(all);
      return counts;
    };
    this.#closing.defer(async () => void (await end()));
    return { end };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#closing.disposeAsync();
  }
}
