import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { descendantsOf } from "../faults/processes.ts";
import { openServing, type Serving, type Workspace } from "../faults/serving.ts";
import { until } from "../faults/until.ts";
import { requestBytes } from "../soak/gauges.ts";
import type { Attack } from "./target.ts";

const identity = `import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "IN").as_numpy())]) for r in requests]
`;

/** A server with one Python model, 'echo': OUT equals IN, FP32 of any length. */
async function writeEcho({ repository }: Workspace): Promise<void> {
  await mkdir(join(repository, "echo", "1"), { recursive: true });
  await writeFile(join(repository, "echo", "1", "model.py"), identity);
  const config = `backend: "python" max_batch_size: 0
input { name: "IN" data_type: TYPE_FP32 dims: -1 } output { name: "OUT" data_type: TYPE_FP32 dims: -1 }\n`;
  await writeFile(join(repository, "echo", "config.pbtxt"), config);
}

/** A worker that has completed a configuration waits 30 s for its load, which an invalid configuration never gets. */
const endMsMax = 45_000;

interface AttackedServer {
  readonly flags?: readonly string[];
  /** Adds files to the repository before the start. */
  readonly write?: (workplace: Workspace) => Promise<void>;
}

/**
 * Attacks a real server. At the end no bytes may be in flight, the worker must be the one of the start, and a stop must
 * leave no files or processes.
 */
export async function attackServer<Input>(
  attempt: (input: Input, serving: Serving) => Promise<boolean>,
  { flags = [], write = () => Promise.resolve() }: AttackedServer = {},
): Promise<Attack<Input>> {
  const serving = await openServing({
    write: async (workplace) => {
      await writeEcho(workplace);
      await write(workplace);
    },
    flags: ["--model-control-mode=explicit", "--load-model=echo", ...flags],
  });
  const { server } = serving;
  const workers = () => processes(server.pid, (command) => !command.includes("runner-worker"));
  const before = workers();
  return {
    attempt: (input) => attempt(input, serving),
    [Symbol.asyncDispose]: async () => {
      await using _ended = serving;
      await until("nothing is in flight", async () => (await requestBytes(server.metricsPort)) === 0);
      await until("the workers are those of the start", () => isDeepStrictEqual(workers(), before), endMsMax);
    },
  };
}

function processes(pid: number, wanted: (command: string) => boolean): number[] {
  return descendantsOf(pid)
    .filter(({ state, command }) => state !== "Z" && wanted(command))
    .map((seen) => seen.pid);
}
