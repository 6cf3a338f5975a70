import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  cacheDirectory,
  ensureEnvironment,
  ensureFramework,
  type RivalName,
  type RunningServer,
} from "../../conformance/environments/index.ts";
import { requestOk, timedMs } from "../send-request.ts";
import { requestBytes, runLoad } from "../load.ts";
import { treeCpuUs, treeMemory } from "../processes.ts";
import { median, type BenchContext, type Goal, type Measure } from "../row.ts";
import type { ComparedServer } from "../rivals/compared-server.ts";
import { sklearnServers, torchServers, type RivalFiles } from "../rivals/rival-servers.ts";
import { temporaryDirectory } from "../servers.ts";

const writer = fileURLToPath(new URL("../models/write_rivals.py", import.meta.url));
const run = promisify(execFile);
const requestsPerModel = 10;
const pictureNumbers = 3 * 64 * 64;

const lead = (kind: Goal["kind"]): Goal => ({ kind, of: "ratio", value: 1 });

/** A scikit-learn model in our container and in common servers for it, with two workers each and the same libraries. */
export const rivalsRow = {
  name: "rivals",
  async measure(context: BenchContext): Promise<readonly Measure[]> {
    await makeEnvironments(["multi-model-server", "mlserver"], context);
    const count = modelCount(context);
    await using directory = await temporaryDirectory();
    const location = await written("sklearn", `${directory.path}/sklearn`, count);
    return await measureKind(context, sklearnServers(context, location), { what: "scikit-learn", model: "sk", count });
  },
};

/** The TorchScript model. */
export const rivalsTorchRow = {
  name: "rivals-torch",
  async measure(context: BenchContext): Promise<readonly Measure[]> {
    await makeEnvironments(["torchserve"], context);
    const count = modelCount(context);
    await using directory = await temporaryDirectory();
    const torch = await written("torch", `${directory.path}/torch`, count);
    return [
      ...(await measureKind(context, torchServers(torch, 64), { what: "small TorchScript", model: "mlp", count })),
      ...(await measureKind(context, torchServers(torch, pictureNumbers), {
        what: "ResNet-50, 64 by 64",
        model: "resnet",
        count: 1,
      })),
    ];
  },
};

const modelCount = ({ quick }: BenchContext) => (quick ? 3 : 5);

/** Warm-up before the measurement. */
async function makeEnvironments(names: readonly RivalName[], { log }: BenchContext): Promise<void> {
  for (const name of names) await ensureEnvironment(cacheDirectory(process.env), name, { progress: log });
}

async function written(kind: "sklearn" | "torch", directory: string, count: number): Promise<RivalFiles> {
  const { python } = await ensureFramework(kind === "torch" ? "pytorch" : "sklearn");
  const { stdout } = await run(python, [
    "-c",
    `import os, sys, sysconfig; os.makedirs(sys.argv[1]); print(sysconfig.get_path('purelib'))`,
    directory,
  ]);
  const packages = stdout.trim();
  await run(python, [writer, kind, directory, String(count), packages]);
  return { directory, packages };
}

interface Kind {
  readonly what: string;
  /** The name of a model with its number; a single model has no number. */
  readonly model: string;
  readonly count: number;
}

const nameOf = ({ model, count }: Kind, index: number) => (count === 1 ? model : `${model}${index}`);

const call = ({ path, body, contentType }: ComparedServer, { httpPort }: RunningServer, model: string) =>
  requestOk(httpPort, "POST", path(model), body, { "content-type": contentType });

async function measureKind(
  context: BenchContext,
  contenders: readonly [ComparedServer, ...ComparedServer[]],
  kind: Kind,
): Promise<readonly Measure[]> {
  const figures = new Figures();
  for (const contender of contenders)
    for (let round = 0; round < Math.min(context.rounds, 2); round++)
      figures.add("start and first answer", contender, await coldStart(contender, kind), context);
  const servers = await Promise.all(contenders.map(async (contender) => await contender.start()));
  try {
    const all = contenders.map((contender, index) => ({ contender, server: servers[index]! }));
    for (const { contender, server } of all) {
      await contender.load(server, nameOf(kind, 0));
      await call(contender, server, nameOf(kind, 0));
    }
    for (let round = 0; round < context.rounds; round++)
      for (const { contender, server } of round % 2 === 0 ? all : all.toReversed())
        for (const clients of [1, 8, 32]) {
          const { perSecond, p50Us, cpuUs } = await load(context, contender, server, {
            model: nameOf(kind, 0),
            clients,
          });
          figures.add(`throughput at ${clients}`, contender, perSecond, context);
          if (clients === 8) figures.add(cpuOfRequest, contender, cpuUs, context);
          if (clients === 1) figures.add("p50 at 1", contender, p50Us, context);
        }
    if (kind.count > 1)
      for (const { contender, server } of all) await furtherModels(context, figures, { contender, server, kind });
  } finally {
    await Promise.all(servers.map((server) => server.stop()));
  }
  return figures.measures(kind.what, contenders);
}

async function coldStart(contender: ComparedServer, kind: Kind): Promise<number> {
  let server: RunningServer | null = null;
  try {
    return await timedMs(async () => {
      server = await contender.start();
      await contender.load(server, nameOf(kind, 0));
      await call(contender, server, nameOf(kind, 0));
    });
  } finally {
    await (server as RunningServer | null)?.stop();
  }
}

async function load(
  { quick }: BenchContext,
  { path, body, contentType }: ComparedServer,
  { httpPort, pid }: RunningServer,
  { model, clients }: { readonly model: string; readonly clients: number },
) {
  const durationMs = quick ? 1500 : 2000;
  const request = requestBytes(path(model), body, { "content-type": contentType });
  const requested = { port: httpPort, request, clients };
  // Warm-up, which is not measured.
  await runLoad({ ...requested, durationMs: durationMs / 3, warmUpMs: 0 });
  const before = await treeCpuUs(pid);
  const result = await runLoad({ ...requested, durationMs, warmUpMs: 0 });
  return { ...result, cpuUs: ((await treeCpuUs(pid)) - before) / result.responses };
}

/** All models after the first one: the time until each has responded, and their total memory after ten responses of each. */
async function furtherModels(
  context: BenchContext,
  figures: Figures,
  {
    contender,
    server,
    kind,
  }: { readonly contender: ComparedServer; readonly server: RunningServer; readonly kind: Kind },
): Promise<void> {
  const before = await treeMemory(server.pid);
  const loads: number[] = [];
  for (let index = 1; index < kind.count; index++) {
    const model = nameOf(kind, index);
    loads.push(
      await timedMs(async () => {
        await contender.load(server, model);
        await call(contender, server, model);
      }),
    );
    for (let each = 1; each < requestsPerModel; each++) await call(contender, server, model);
  }
  const after = await treeMemory(server.pid);
  figures.add("a further model's load and first answer", contender, median(loads), context);
  const bytes = (after.proportionalBytes - before.proportionalBytes) / (kind.count - 1);
  figures.add("memory of a further model, two workers", contender, bytes / 1e6, context);
}

/** Other processes of the machine hardly affect this figure. */
const cpuOfRequest = "processors' time of a request at 8";

const kinds = [
  { what: "throughput at 1", unit: "/s", goal: lead("at least") },
  { what: "throughput at 8", unit: "/s", goal: lead("at least") },
  { what: "throughput at 32", unit: "/s", goal: lead("at least") },
  { what: "p50 at 1", unit: "us", goal: lead("at most") },
  { what: cpuOfRequest, unit: "us", goal: lead("at most") },
  { what: "start and first answer", unit: "ms", goal: lead("at most") },
  { what: "a further model's load and first answer", unit: "ms", goal: lead("at most") },
  { what: "memory of a further model, two workers", unit: "MB", goal: lead("at most") },
] as const;

/** Figures by measurement and server, one for each round. */
class Figures {
  readonly #found = new Map<string, number[]>();

  add(what: string, { name }: ComparedServer, figure: number, { log }: BenchContext): void {
    const key = `${what} of ${name}`;
    const values = this.#found.get(key) ?? [];
    values.push(figure);
    this.#found.set(key, values);
    log(`${key}: ${figure.toFixed(1)}`);
  }

  /** Galatea compared with each of the other servers. */
  measures(model: string, [own, ...rivals]: readonly [ComparedServer, ...ComparedServer[]]): readonly Measure[] {
    const of = (what: string, { name }: ComparedServer) => this.#found.get(`${what} of ${name}`) ?? [];
    return rivals.flatMap((rival) =>
      kinds
        .filter(({ what }) => of(what, own).length > 0)
        .map(({ what, unit, goal }) => ({
          what: `${model} beside ${rival.name}: ${what}`,
          unit,
          ours: of(what, own),
          oracle: of(what, rival),
          goal,
        })),
    );
  }
}
