import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ByteBudget, ByteLease, silentLogger, systemClock } from "@galatea/base";
import { openDirectoryStore, type BucketStore } from "../src/objects/index.ts";
import {
  failureReason,
  type EndpointConfigRecord,
  type EndpointUpdate,
  type Hosting,
  type ProductionVariant,
} from "../src/index.ts";
import type { InMemoryMetricStore } from "@galatea/base/metrics";
import { DocumentMemory } from "../src/records/contracts/index.ts";
import { imaged, openHosting, owner, type HostingFixtureOptions } from "./hosting-fixture.ts";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

/**
 * A container that responds with its name, its instance and its process id. With BREAKS, it exits immediately. With
 * FALTERS, it exits at the first start of each instance while the flag file exists. A request with `hold` gets its
 * response after SIGUSR2. The container `s` responds to `flood` with an endless stream.
 */
const program = `
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
const parent = process.ppid; setInterval(() => process.ppid === parent || process.exit(), 1000).unref(); // Killed tests leave none.
const [path, name, socketPath, breaks, falters] = process.argv.slice(1);
const tried = path + socketPath.split("/").pop();
if (falters && existsSync(path + ".falters") && !existsSync(tried)) { writeFileSync(tried, ""); process.exit(1); }
if (breaks) { console.error("the model breaks"); process.exit(1); }
process.on("SIGTERM", () => process.exit(0));
const held = [];
process.on("SIGUSR2", () => { for (const answer of held.splice(0)) answer(); });
const server = createServer(async (request, response) => {
  if (request.url === "/ping") return response.end();
  let body = "";
  for await (const piece of request) body += piece;
  const answer = () => response.end([name, socketPath.split("/").pop(), process.pid].join(" "));
  const flood = () => { while (response.write(Buffer.alloc(65536))); response.once("drain", flood); };
  if (name === "s" && body.startsWith("flood")) flood();
  else if (body.startsWith("hold")) console.log("holds", held.push(answer));
  else setTimeout(answer, 1);
});
server.listen(socketPath);
`;

/** A variant of a test's endpoint configuration. `name` is also the name of its containers. */
export interface PlannedVariant extends Partial<ProductionVariant> {
  readonly name: string;
  readonly isBroken?: boolean;
  /**
   * True if the variant's containers exit at their first start while the fixture is faltering. A new instance then
   * fails; a restarted one is started again and succeeds.
   */
  readonly mayFalter?: boolean;
  readonly isShadow?: boolean;
  /** Guaranteed bytes of memory of the variant's models (GALATEA_MODEL_MEMORY_BYTES). */
  readonly modelBytes?: number;
}

/** Further members of a test's configuration. */
export type ConfigOptions = Partial<Pick<EndpointConfigRecord, "dataCapture">>;

/** Options of the fixture. */
export interface TrafficFixtureOptions extends Pick<
  HostingFixtureOptions,
  "limits" | "instances" | "hosting" | "nodes" | "onOpen" | "mirroring" | "alarmState" | "isDetached" | "logger"
> {
  /**
   * Directory of the fixture, which the test creates and removes. By default, the fixture uses a temporary directory.
   */
  readonly directory?: string;
  /** True if the fixture is faltering from the beginning. */
  readonly isFaltering?: boolean;
}

/** The container that responded to a request. */
export interface Responder {
  readonly variant: string;
  readonly container: string;
  readonly instance: string;
  readonly pid: number;
}

/** The responses to continuous clients by variant and container, and the errors by request. */
export interface ClientCounts {
  readonly results: Map<string, number>;
  readonly failures: Map<string, string>;
}

/** One request of `arrivals`, with its start and end times and its result. */
export interface Arrival {
  readonly beganMs: number;
  readonly endedMs: number;
  readonly came: Responder | { readonly error: string };
}

/** Hosting over containers that respond with their identity, and clients that send requests continuously. */
export class TrafficFixture implements AsyncDisposable {
  readonly hosting: Hosting;
  readonly store: BucketStore;
  /** Sums of metric values. The key consists of the values of the dimensions and the name of the metric. */
  readonly sums: Map<string, number>;
  /** States of alarms by name. All other alarms do not exist. */
  readonly alarms: Map<string, "OK" | "ALARM">;
  readonly #closing: AsyncDisposableStack;
  #requestCount = 0;
  #isClosed = false;

  readonly #directory: string;
  readonly #program: string;
  readonly #logs: ReadonlyMap<string, string>;

  private constructor(hosting: Hosting, closing: AsyncDisposableStack, parts: BenchParts) {
    this.hosting = hosting;
    this.store = parts.store;
    this.#directory = parts.directory;
    this.#program = parts.program;
    this.#logs = parts.logs;
    this.#closing = closing;
    this.sums = parts.sums;
    this.alarms = parts.alarms;
  }

  /** Opens the fixture. With `series`, metrics are also recorded there. */
  static async open(
    documents = new DocumentMemory(),
    series: InMemoryMetricStore | null = null,
    more: TrafficFixtureOptions = {},
  ): Promise<TrafficFixture> {
    await using opening = new AsyncDisposableStack();
    const directory = more.directory ?? (await mkdtemp(join(tmpdir(), "gal-traffic-")));
    if (more.directory === undefined) opening.defer(() => rm(directory, { recursive: true, force: true }));
    const path = join(directory, "container.mjs");
    const { isFaltering = false, ...limits } = more;
    await writeFile(path, program);
    if (isFaltering) writeFileSync(falterFlag(path), "");
    const store = opening.use(await openDirectoryStore({ folder: join(directory, "objects"), logger: silentLogger }));
    const own = { directory, program: path, store };
    const parts: BenchParts = { ...own, sums: new Map(), alarms: new Map(), logs: new Map() };
    const { hosting } = opening.use(
      await openHosting({
        directory,
        store,
        documents,
        argumentsFor: ({ NAME = "", BREAKS = "", FALTERS = "" }, socketPath) => [
          path,
          NAME,
          socketPath,
          BREAKS,
          FALTERS,
        ],
        onSample: () => {},
        openSeries: (key, resolutionMs) => {
          const name = key.dimensions.map(({ value }) => value).join(" ");
          const kept = series?.recorder(key, resolutionMs);
          return {
            record(value) {
              count(parts.sums, `${name} ${key.metricName}`, value);
              kept?.record(value);
            },
          };
        },
        logs: parts.logs,
        alarmState: (name) => parts.alarms.get(name) ?? null,
        ...limits,
      }),
    );
    return new TrafficFixture(hosting, opening.move(), parts);
  }

  /** Creates an endpoint configuration, and a model for each of its variants. */
  async configure(name: string, variants: readonly PlannedVariant[], more: ConfigOptions = {}): Promise<void> {
    const shared = { owner, request: {}, tags: [] };
    for (const { name: NAME, isBroken = false, mayFalter = false, modelBytes } of variants) {
      const Environment = {
        NAME,
        ...(isBroken ? { BREAKS: "1" } : {}),
        ...(mayFalter ? { FALTERS: "1" } : {}),
        ...(modelBytes !== undefined && { GALATEA_MODEL_MEMORY_BYTES: String(modelBytes) }),
      };
      const containers = imaged([{ Environment }]);
      await this.hosting.catalog.createModel({
        ...shared,
        name: `${name}-${NAME}`,
        containers,
        executionMode: "Serial",
      });
    }
    const planned = (isDesired: boolean) =>
      variants
        .filter(({ isShadow = false }) => isShadow === isDesired)
        .map(({ name: own, ...variant }) => ({
          VariantName: own,
          InitialInstanceCount: 1,
          InstanceType: "ml.m5.large",
          InitialVariantWeight: 1,
          ...variant,
          ModelName: `${name}-${own}`,
        }));
    await this.hosting.catalog.createConfig({
      ...shared,
      ...more,
      name,
      variants: planned(false),
      shadows: planned(true),
    });
  }

  /** Starts an update. Resolves when it is recorded. */
  async update(name: string, configName: string, more: Partial<EndpointUpdate> = {}): Promise<void> {
    const retained = new Set<never>();
    const plain = { deploymentConfig: null, retainsDeployment: false, retained };
    await this.hosting.endpoints.update({ ...plain, ...more, name, configName, owner });
  }

  /** Returns the status of an endpoint, the name of its configuration, and its failure reason. */
  async status(name: string): Promise<readonly [at: string, configName: string, reason: string | null]> {
    const { state, generations } = await this.hosting.endpoints.find(name, owner);
    return [state.at, generations[0].configName, failureReason(state)];
  }

  /** Returns the traffic share of each generation. */
  async shares(name: string): Promise<readonly number[]> {
    const { generations } = await this.hosting.endpoints.find(name, owner);
    return generations.map(({ trafficShare }) => trafficShare);
  }

  /** Returns the names of the running containers. */
  running(): readonly string[] {
    return this.#processes().map(({ name }) => name);
  }

  /** Returns the process ids of the running containers with a name. */
  pidsOf(name: string): readonly number[] {
    return this.#processes().flatMap((each) => (each.name === name ? [each.pid] : []));
  }

  #processes(): readonly { readonly pid: number; readonly name: string }[] {
    return commandsBelow(process.pid).flatMap(({ pid, command }) => {
      const at = command.indexOf(this.#program);
      return at === -1 ? [] : [{ pid, name: command[at + 1] ?? "" }];
    });
  }

  /** True if containers of variants with `mayFalter` exit at their first start. */
  get isFaltering(): boolean {
    return existsSync(falterFlag(this.#program));
  }

  falter(isDesired: boolean): void {
    if (isDesired) writeFileSync(falterFlag(this.#program), "");
    else rmSync(falterFlag(this.#program), { force: true });
  }

  /** Returns the number of instance directories: each instance has one while it exists. */
  async directoryCount(): Promise<number> {
    return (await readdir(join(this.#directory, "i"))).filter((each) => each.startsWith("i-")).length;
  }

  /** Returns the number of requests with `hold` that containers have received so far. */
  heldCount(): number {
    return [...this.#logs.values()].join("").split("holds ").length - 1;
  }

  /** Returns the number of containers that have received a request with `hold`. */
  holderCount(): number {
    return [...this.#logs.values()].filter((text) => text.includes("holds ")).length;
  }

  /** Sends a signal to all running containers, or to those with a name. */
  signal(signal: NodeJS.Signals, name: string | null = null): void {
    for (const each of this.#processes()) if (name === null || each.name === name) process.kill(each.pid, signal);
  }

  /** Creates an endpoint. Resolves when its state is stable. */
  async deploy(name: string, variants: readonly PlannedVariant[], more: ConfigOptions = {}): Promise<void> {
    await this.configure(name, variants, more);
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.settled(name);
  }

  async settled(name: string): Promise<void> {
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: new AbortController().signal });
  }

  async call(
    name: string,
    body: string,
    targetVariant: string | null = null,
    inferenceComponent: string | null = null,
  ): Promise<Responder> {
    using memory = new ByteLease(budget);
    const reply = await this.hosting.invoke(name, owner.accountId, {
      headers: { "content-type": "text/csv", "x-amzn-sagemaker-inference-id": body.slice(0, 64) },
      targetModel: null,
      targetVariant,
      inferenceComponent,
      targetContainer: null,
      isStreamed: false,
      body: () => Promise.resolve(Buffer.from(body)),
      memory,
      receivedNs: systemClock.monotonicNs(),
      signal: new AbortController().signal,
    });
    const [container = "", instance = "", pid] = (reply.body as Buffer).toString().split(" ");
    reply.done();
    return { variant: reply.variantName, container, instance, pid: Number(pid) };
  }

  /**
   * Starts clients that each send one request after the other, until `end` is called. It resolves with the counts by
   * variant and container.
   */
  clients(
    name: string,
    clientCount = 4,
    component: string | null = null,
  ): { readonly counts: ClientCounts; readonly end: () => Promise<ClientCounts> } {
    const counts: ClientCounts = { results: new Map(), failures: new Map() };
    const over = new AbortController();
    const one = async () => {
      while (!over.signal.aborted && !this.#isClosed) {
        const id = `r${this.#requestCount++}`;
        try {
          const { variant, container } = await this.call(name, id, null, component);
          count(counts.results, `${variant} ${container}`, 1);
        } catch (error) {
          counts.failures.set(id, String(error));
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
    return { counts, end };
  }

  /**
   * Sends `ratePerSecond` requests per second, without waiting for earlier responses. `end` stops sending and resolves
   * with all requests.
   */
  arrivals(name: string, ratePerSecond: number): { readonly end: () => Promise<readonly Arrival[]> } {
    const arrivals: Promise<Arrival>[] = [];
    const beganMs = performance.now();
    const one = async (id: string): Promise<Arrival> => {
      const began = performance.now();
      const came = await this.call(name, id).catch((error: unknown) => ({ error: String(error) }));
      return { beganMs: began, endedMs: performance.now(), came };
    };
    const timer = setInterval(() => {
      const due = ((performance.now() - beganMs) / 1000) * ratePerSecond;
      while (arrivals.length < due) arrivals.push(one(`r${this.#requestCount++}`));
    }, 5);
    const end = () => {
      clearInterval(timer);
      return Promise.all(arrivals);
    };
    return { end };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#closing.disposeAsync();
  }
}

interface BenchParts {
  readonly directory: string;
  readonly program: string;
  readonly store: BucketStore;
  readonly sums: Map<string, number>;
  readonly alarms: Map<string, "OK" | "ALARM">;
  readonly logs: Map<string, string>;
}

const falterFlag = (path: string) => `${path}.falters`;

const budget = new ByteBudget(64 * 2 ** 20);

function count(counts: Map<string, number>, key: string, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}

/** Returns the command lines of a process's descendants. */
function commandsBelow(pid: number): readonly { readonly pid: number; readonly command: readonly string[] }[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
  return children.flatMap((child) => {
    try {
      return [{ pid: Number(child), command: readFileSync(`/proc/${child}/cmdline`, "utf8").split("\0") }];
    } catch {
      // The process has terminated after its id was read.
      return [];
    }
  });
}

/** Polls until `look` returns true. Rejects after the time limit of tests. */
export async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = performance.now() + testTimeoutMs; !(await look());) {
    if (performance.now() > untilMs) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
