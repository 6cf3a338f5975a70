import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { infer, load, unload } from "../faults/http-client.ts";
import { writeModel, harmless } from "../faults/onnx-models.ts";
import { descendantsOf, openFiles } from "../faults/processes.ts";
import type { Serving } from "../faults/serving.ts";
import { until } from "../faults/until.ts";
import type { Chance } from "./chance.ts";

type Kind = "worker" | "zygote" | "runner";

/**
 * The expected processes: two instances of 'steady', one of 'coming', the zygote that they are forked from, and the
 * runner of 'onnx'.
 */
const processCounts: Readonly<Record<Kind, number>> = { worker: 3, zygote: 1, runner: 1 };

/** Disruptions of the server under load. Each ends when its effect is visible. */
export class Disruptions {
  readonly #serving: Serving;
  readonly #chance: Chance;
  readonly counts = new Map<string, number>();
  #contentCount = 0;
  #isComing = true;

  constructor(serving: Serving, chance: Chance) {
    this.#serving = serving;
    this.#chance = chance;
  }

  readonly #rows: readonly { readonly name: string; readonly weight: number; readonly run: () => Promise<void> }[] = [
    { name: "kill a worker", weight: 5, run: () => this.#killWorker() },
    { name: "kill the zygote", weight: 1, run: () => this.#killZygote() },
    { name: "kill the runner", weight: 1, run: () => this.#killRunner() },
    { name: "unload or load 'coming'", weight: 4, run: () => this.#comeOrGo() },
    { name: "load 'steady' again", weight: 2, run: () => this.#loaded("steady") },
    { name: "load another 'onnx'", weight: 1, run: () => this.#renewOnnx() },
  ];

  async next(): Promise<void> {
    const all = this.#rows.flatMap((row) => Array.from({ length: row.weight }, () => row));
    const { name, run } = this.#chance.of(all);
    await run();
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  /** Resolves when the server is in its initial state again. */
  async settle(): Promise<void> {
    if (!this.#isComing) await this.#comeOrGo();
    await this.#renewOnnx();
    for (const [kind, count] of Object.entries(processCounts) as [Kind, number][])
      await until(`there are ${count} of ${kind}`, () => this.#processes(kind).length === count, 60_000);
  }

  #processes(kind: Kind): number[] {
    return descendantsOf(this.#serving.server.pid)
      .filter(({ state, command, pid }) => {
        if (state === "Z") return false;
        if (command.includes("runner-worker")) return kind === "runner";
        // A worker has the arena of its model open, and the zygote that it was forked from has no arena open.
        return (openFiles(pid).some((path) => path.startsWith("/memfd:")) ? "worker" : "zygote") === kind;
      })
      .map(({ pid }) => pid);
  }

  async #kill(kind: Kind): Promise<void> {
    const pids = this.#processes(kind);
    if (pids.length === 0) return;
    const pid = this.#chance.of(pids);
    try {
      process.kill(pid, "SIGKILL");
    } catch (error) {
      // The process may have ended meanwhile, because its model was being reloaded.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    await until(`${kind} ${pid} is gone`, () => !this.#processes(kind).includes(pid));
  }

  async #killWorker(): Promise<void> {
    await this.#kill("worker");
    await this.#responses("steady");
  }

  async #killZygote(): Promise<void> {
    await this.#kill("zygote");
    await this.#loaded("steady");
  }

  /** Kills the runner, then writes another model file: a file that ran when its runner ended is not loaded again. */
  async #killRunner(): Promise<void> {
    await this.#kill("runner");
    await this.#renewOnnx();
  }

  async #renewOnnx(): Promise<void> {
    this.#contentCount += 1;
    const path = join(this.#serving.repository, "onnx", "1", "model.onnx");
    await writeOnnx(path, this.#contentCount);
    await this.#loaded("onnx");
  }

  async #comeOrGo(): Promise<void> {
    const { httpPort } = this.#serving.server;
    if (this.#isComing) assert.equal((await unload(httpPort, "coming")).status, 200);
    else await this.#loaded("coming");
    this.#isComing = !this.#isComing;
  }

  async #loaded(model: string): Promise<void> {
    const { status, body } = await load(this.#serving.server.httpPort, model);
    assert.equal(status, 200, body.toString());
  }

  /** Resolves when all instances of a model respond: as many concurrent requests as instances. */
  async #responses(model: string): Promise<void> {
    const body = JSON.stringify({
      inputs: [
        { name: "DO", datatype: "BYTES", shape: [1], data: ["echo"] },
        { name: "VALUE", datatype: "FP32", shape: [1], data: [1] },
      ],
    });
    await until(
      `${model} answers`,
      async () => (await infer(this.#serving.server.httpPort, model, body)).status === 200,
    );
  }
}

/** Writes the model file atomically: a load sees either the old or the new file. */
export async function writeOnnx(path: string, content: number): Promise<void> {
  const tensors = (name: string) => [{ name, type: "FLOAT" as const, dims: ["n"] }];
  const graphName = `content ${content}`;
  await writeModel(`${path}.new`, { ...harmless, graphName, inputs: tensors("x"), outputs: tensors("y") });
  await rename(`${path}.new`, path);
}
