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
 * A container that answers a request with its name, its instance and its process. One with BREAKS ends at once, and one that is asked
 * to `hold` says so, and answers when its process is told to (SIGUSR2). One named `s` answers what begins with `flood` without an end. One with FALTERS ends at its first try of each instance, while
 * the bench says so.
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

/** A variant of a test: the name of its containers, and what of a variant's settings matters. */
export interface PlannedVariant extends Partial<ProductionVariant> {
  readonly name: string;
  readonly isBroken?: boolean;
  /**
   * True if its containers end at their first try where the bench says so: one that is started fails, one that is
   * brought back comes.
   */
  readonly mayFalter?: boolean;
  readonly isShadow?: boolean;
  /** Guaranteed memory of its models (GALATEA_MODEL_MEMORY_BYTES). */
  readonly modelBytes?: number;
}

/** Further members of a test's configuration. */
export type ConfigOptions = Partial<Pick<EndpointConfigRecord, "dataCapture">>;

/** Options of a bench. */
export interface TrafficFixtureOptions extends Pick<
  HostingFixtureOptions,
  "limits" | "instances" | "hosting" | "nodes" | "onOpen" | "mirroring" | "alarmState" | "isDetached" | "logger"
> {
  /** A directory that the test creates and removes. By default the bench creates one. */
  readonly directory?: string;
  /** True if containers that may falter do so from the beginning. */
  readonly isFaltering?: boolean;
}

/** The container that responded to a request. */
export interface Responder {
  readonly variant: string;
  readonly container: string;
  readonly instance: string;
  readonly pid: number;
}

/** The responses of a steady client by container, and its errors by request. */
export interface ClientCounts {
  readonly answers: Map<string, number>;
  readonly failures: Map<string, string>;
}

/** One request of `arrivals`. */
export interface Arrival {
  readonly beganMs: number;
  readonly endedMs: number;
  readonly came: Responder | { readonly error: string };
}

/** Hosting over containers that say who they are, and clients that ask all the time. */
export class TrafficFixture implements AsyncDisposable {
  readonly hosting: Hosting;
  readonly store: BucketStore;
  /** Sums of metrics with only the dimensions EndpointName and VariantName, by both and the metric. */
  readonly sums: Map<string, number>;
  /** By their names; others there are none. */
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

  /** With a series, what is measured is recorded there, too. */
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

  /** An endpoint configuration with models of its own. */
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
    const planned = (isWanted: boolean) =>
      variants
        .filter(({ isShadow = false }) => isShadow === isWanted)
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

  /** Resolves when the update is begun. */
  async update(name: string, configName: string, more: Partial<EndpointUpdate> = {}): Promise<void> {
    const retained = new Set<never>();
    const plain = { deploymentConfig: null, retainsDeployment: false, retained };
    await this.hosting.endpoints.update({ ...plain, ...more, name, configName, owner });
  }

  /** The endpoint's status, its configuration, and why it is so. */
  async status(name: string): Promise<readonly [at: string, configName: string, reason: string | null]> {
    const { state, generations } = await this.hosting.endpoints.find(name, owner);
    return [state.at, generations[0].configName, failureReason(state)];
  }

  /** Returns the share of the requests of each generation. */
  async shares(name: string): Promise<readonly number[]> {
    const { generations } = await this.hosting.endpoints.find(name, owner);
    return generations.map(({ trafficShare }) => trafficShare);
  }

  /** The containers that run, by their names. */
  running(): readonly string[] {
    return this.#processes().map(({ name }) => name);
  }

  /** The process ids of the containers of a name. */
  pidsOf(name: string): readonly number[] {
    return this.#processes().flatMap((each) => (each.name === name ? [each.pid] : []));
  }

  #processes(): readonly { readonly pid: number; readonly name: string }[] {
    return commandsBelow(process.pid).flatMap(({ pid, command }) => {
      const at = command.indexOf(this.#program);
      return at === -1 ? [] : [{ pid, name: command[at + 1] ?? "" }];
    });
  }

  /** True if containers of variants that may falter do so. */
  get isFaltering(): boolean {
    return existsSync(falterFlag(this.#program));
  }

  falter(isWanted: boolean): void {
    if (isWanted) writeFileSync(falterFlag(this.#program), "");
    else rmSync(falterFlag(this.#program), { force: true });
  }

  /** Returns the number of instance directories: each instance has one while it exists. */
  async directoryCount(): Promise<number> {
    return (await readdir(join(this.#directory, "i"))).filter((each) => each.startsWith("i-")).length;
  }

  /** Returns the number of requests that containers have held, over all containers so far. */
  heldCount(): number {
    return [...this.#logs.values()].join("").split("holds ").length - 1;
  }

  /** Returns the number of containers that have held requests. */
  holderCount(): number {
    return [...this.#logs.values()].filter((text) => text.includes("holds ")).length;
  }

  /** To every container that runs, or to those of a name. */
  signal(signal: NodeJS.Signals, name: string | null = null): void {
    for (const each of this.#processes()) if (name === null || each.name === name) process.kill(each.pid, signal);
  }

  /** Resolves when the endpoint is in a state that stays. */
  async deploy(name: string, variants: readonly PlannedVariant[], more: ConfigOptions = {}): Promise<void> {
    await this.configure(name, variants, more);
    await this.hosting.endpoints.create({ name, configName: name, owner, tags: [], deploymentConfig: null });
    await this.settled(name);
  }

  async settled(name: string): Promise<void> {
    await this.hosting.waitUntilStable(name, { waitMsMax: testTimeoutMs, signal: new AbortController().signal });
  }

  async ask(
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

  /** Clients that ask for one thing after the other until `end`, which gives what they heard: by variant and container, without the process. */
  clients(
    name: string,
    clientCount = 4,
    component: string | null = null,
  ): { readonly counts: ClientCounts; readonly end: () => Promise<ClientCounts> } {
    const counts: ClientCounts = { answers: new Map(), failures: new Map() };
    const over = new AbortController();
    const one = async () => {
      while (!over.signal.aborted && !this.#isClosed) {
        const id = `r${this.#requestCount++}`;
        try {
          const { variant, container } = await this.ask(name, id, null, component);
          count(counts.answers, `${variant} ${container}`, 1);
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
   * Requests that come whenever they come, `ratePerSecond` of them, whether those before them are answered or not. `end` gives each of them
   * with when it was begun, when it was over, and what it came to.
   */
  arrivals(name: string, ratePerSecond: number): { readonly end: () => Promise<readonly Arrival[]> } {
    const arrivals: Promise<Arrival>[] = [];
    const beganMs = performance.now();
    const one = async (id: string): Promise<Arrival> => {
      const began = performance.now();
      const came = await this.ask(name, id).catch((error: unknown) => ({ error: String(error) }));
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
      // It has just ended.
      return [];
    }
  });
}

/** Looks until it is so. */
export async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  for (const untilMs = performance.now() + testTimeoutMs; !(await look());) {
    if (performance.now() > untilMs) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
