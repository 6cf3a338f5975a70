import type { OnnxValueInfo, RunResult } from "../../native/index.ts";
import type { Arena } from "../../tensor/index.ts";
import type { ModelRun } from "./model-run.ts";
import type { SessionContent } from "./runner.ts";
import type { Runners } from "./runners.ts";

/** A session of a loaded model. It stays valid when its process crashes, because the next process loads the content again. */
export interface LeasedSession extends AsyncDisposable {
  readonly inputs: readonly OnnxValueInfo[];
  readonly outputs: readonly OnnxValueInfo[];
  /** Indexes of outputs whose actual shape has differed from the declared one. All instances share this set. */
  readonly unforeseeable: Set<number>;
  run(task: {
    readonly arena: Arena;
    readonly run: ModelRun;
    readonly signal: AbortSignal | null;
  }): Promise<readonly RunResult[]>;
}

export async function leaseSession(runners: Runners, content: SessionContent): Promise<LeasedSession> {
  const { inputs, outputs } = await runners.open(content);
  return {
    inputs,
    outputs,
    unforeseeable: new Set(),
    run: (task) => runners.run(content, task),
    [Symbol.asyncDispose]: () => runners.close(content),
  };
}
