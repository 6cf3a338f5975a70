import { seededRandom } from "../../conformance/seeded-random.ts";
import { startGalatea, type RunningServer } from "../../conformance/environments/index.ts";
import {
  invokeModel,
  loadModel,
  originalRoot,
  startOracleContainer,
  unloadModel,
  writeUnpacked,
} from "../container.ts";
import { addSub } from "../models.ts";
import { addSubBody } from "../requests.ts";
import type { BenchContext, Measure } from "../row.ts";
import { alternate, temporaryDirectory } from "../servers.ts";
import { zipf } from "../zipf.ts";

const modelCount = 200;
const capacity = 20;
const hashOf = (index: number) => `galateabench${index}`;
const hashes = Array.from({ length: modelCount }, (_, index) => hashOf(index));

/** More models than fit in memory, through the container contract. The client unloads the least recently used model, for both servers. */
export const churnRow = {
  name: "churn",
  async measure(context: BenchContext): Promise<Measure[]> {
    await using root = await temporaryDirectory();
    await using empty = await temporaryDirectory();
    await writeUnpacked(root.path, hashes, addSub);
    await using _unpacked = await writeUnpacked(originalRoot, hashes, addSub);
    await using oracle = await startOracleContainer(context);
    const galatea = await startGalatea({
      repositories: [empty.path],
      flags: ["--model-control-mode=explicit", `--ml-root=${root.path}`],
      env: { SAGEMAKER_MULTI_MODEL: "true", SAGEMAKER_TRITON_PING_MODE: "live" },
    });
    try {
      const clients = { galatea: new LruClient(galatea), oracle: new LruClient(oracle) };
      const durationMs = { galatea: context.quick ? 3000 : 10_000, oracle: context.quick ? 8000 : 40_000 };
      const rounds = Math.min(context.rounds, 2);
      const figures = await alternate({ ...context, rounds }, { galatea, oracle }, "churn", (server) =>
        clients[server.kind].run(durationMs[server.kind]),
      );
      return [
        {
          what: `churn: ${modelCount} Python models, room for ${capacity}, Zipf 1.0, one client`,
          unit: "/s",
          ...figures,
          goal: { kind: "at least", of: "ratio", value: 50 },
        },
      ];
    } finally {
      await galatea.stop();
    }
  },
};

class LruClient {
  readonly #server: RunningServer;
  readonly #loaded = new Set<number>();
  readonly #next = zipf(modelCount, 1, seededRandom(1));

  constructor(server: RunningServer) {
    this.#server = server;
  }

  /** Invocations per second. The set of loaded models is kept between runs. */
  async run(durationMs: number): Promise<number> {
    const startMs = performance.now();
    let responseCount = 0;
    while (performance.now() - startMs < durationMs) {
      await this.#invoke(this.#next());
      responseCount++;
    }
    return (responseCount * 1000) / (performance.now() - startMs);
  }

  async #invoke(index: number): Promise<void> {
    const wasLoaded = this.#loaded.delete(index);
    if (!wasLoaded) {
      const [oldest] = this.#loaded;
      if (this.#loaded.size >= capacity && oldest !== undefined) {
        await unloadModel(this.#server, hashOf(oldest));
        this.#loaded.delete(oldest);
      }
      await loadModel(this.#server, hashOf(index));
    }
    this.#loaded.add(index);
    await invokeModel(this.#server, hashOf(index), addSubBody);
  }
}
