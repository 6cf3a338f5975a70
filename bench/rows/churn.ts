import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { startGalatea, startOracle, type RunningServer } from "../../conformance/environments/index.ts";
import { ask, mustAsk } from "../ask.ts";
import { addSub } from "../models.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, temporaryDirectory, writeModels } from "../servers.ts";
import { seededRandom, zipf } from "../zipf.ts";

const modelCount = 200;
const room = 20;
/** Where the original looks; our server is told another place. */
const originalRoot = "/opt/ml";
const hashOf = (index: number) => `galateabench${index}`;

/** Many models through the container contract with room for few: the client unloads the least recently used, for both. */
export const churnRow = {
  name: "churn",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using empty = await temporaryDirectory();
    await using ours = await temporaryDirectory();
    await writeArchives(ours.path);
    await writeArchives(originalRoot);
    const flags = ["--model-control-mode=explicit"];
    const env = { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_PING_MODE: "live" };
    const options = { repositories: [empty.path], env };
    const oracle = await startOracle(context.oracle, {
      ...options,
      flags: [...flags, "--model-namespacing=true"],
    });
    const galatea = await startGalatea({ ...options, flags: [...flags, `--ml-root=${ours.path}`] });
    try {
      const clients = { galatea: new LruClient(galatea), oracle: new LruClient(oracle) };
      const figures = await alternate(
        { ...context, rounds: Math.min(context.rounds, 2) },
        { galatea, oracle },
        "churn",
        (server) => clients[server.kind].run(context.quick ? 4000 : server.kind === "oracle" ? 40_000 : 10_000),
      );
      return [
        {
          what: `churn: ${modelCount} Python models, room for ${room}, Zipf 1.0, one client`,
          unit: "/s",
          ...figures,
          goal: { kind: "at least", of: "ratio", value: 50 },
        },
      ];
    } finally {
      await Promise.all([galatea.stop(), oracle.stop()]);
      for (let index = 0; index < modelCount; index++)
        await rm(join(originalRoot, "models", hashOf(index)), { recursive: true, force: true });
    }
  },
};

async function writeArchives(root: string): Promise<void> {
  for (let index = 0; index < modelCount; index++) {
    const directory = join(root, "models", hashOf(index), "model");
    await mkdir(directory, { recursive: true });
    await writeModels(directory, addSub);
  }
}

class LruClient {
  readonly #server: RunningServer;
  readonly #loaded = new Set<number>();
  readonly #next = zipf(modelCount, 1, seededRandom(1));

  constructor(server: RunningServer) {
    this.#server = server;
  }

  /** Answered invocations per second; the set of loaded models is kept from run to run. */
  async run(durationMs: number): Promise<number> {
    const startMs = performance.now();
    let answered = 0;
    while (performance.now() - startMs < durationMs) {
      await this.#invoke(this.#next());
      answered++;
    }
    return (answered * 1000) / (performance.now() - startMs);
  }

  async #invoke(index: number): Promise<void> {
    const { sagemakerPort } = this.#server;
    const hash = hashOf(index);
    const headers = { "x-amzn-sagemaker-target-model": `${hash}.tar.gz`, "content-type": "application/json" };
    if (!this.#loaded.delete(index)) {
      const [oldest] = this.#loaded;
      if (this.#loaded.size >= room && oldest !== undefined) {
        await mustAsk(sagemakerPort, "DELETE", `/models/${hashOf(oldest)}`, undefined, {
          "x-amzn-sagemaker-target-model": `${hashOf(oldest)}.tar.gz`,
        });
        this.#loaded.delete(oldest);
      }
      const body = Buffer.from(JSON.stringify({ model_name: hash, url: `/opt/ml/models/${hash}/model` }));
      const answer = await ask(sagemakerPort, "POST", "/models", body, headers);
      if (answer.status !== 200) throw new Error(`load: ${answer.status} ${answer.body.toString("utf8")}`);
    }
    this.#loaded.add(index);
    await mustAsk(sagemakerPort, "POST", `/models/${hash}/invoke`, addSubBody, headers);
  }
}
