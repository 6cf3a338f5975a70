import assert from "node:assert/strict";
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { infer, load, unload } from "../faults/asking.ts";
import { writeModel, harmless } from "../faults/onnx-models.ts";
import { descendantsOf, openFiles } from "../faults/processes.ts";
import type { Serving } from "../faults/serving.ts";
import { until } from "../faults/until.ts";
import type { Chance } from "./chance.ts";

type Kind = "worker" | "zygote" | "runner";

/** When all is well: two instances of 'steady', one of 'coming', what they are forked from, what runs 'onnx'. */
const processCounts: Readonly<Record<Kind, number>> = { worker: 3, zygote: 1, runner: 1 };

/** What happens to the server while it is asked; each is over when what it did has had its effect. */
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

  /** Everything is as it was at the start. */
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
        // A worker has its model's arena open; the zygote that it was forked from has none.
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
      // It may have ended since it was seen: its model was being loaded again.
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
    await until(`${kind} ${pid} is gone`, () => !this.#processes(kind).includes(pid));
  }

  async #killWorker(): Promise<void> {
    await this.#kill("worker");
    await this.#answers("steady");
  }

  async #killZygote(): Promise<void> {
    await this.#kill("zygote");
    await this.#loaded("steady");
  }

  /** Other content then: what was being run when its runner ended is suspected of having ended it. */
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

  /** All instances: as many requests as there are, at a time. */
  async #answers(model: string): Promise<void> {
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

/** In one moment: whoever loads the model sees the whole file, the old one or the new one. */
export async function writeOnnx(path: string, content: number): Promise<void> {
  const tensors = (name: string) => [{ name, type: "FLOAT" as const, dims: ["n"] }];
  const graphName = `content ${content}`;
  await writeModel(`${path}.new`, { ...harmless, graphName, inputs: tensors("x"), outputs: tensors("y") });
  await rename(`${path}.new`, path);
}
