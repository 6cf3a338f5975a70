import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeFaultyModel } from "./faulty-model.ts";
import { openServing, type Serving } from "./serving.ts";
import { until } from "./until.ts";

export const streamingProgram = fileURLToPath(new URL("models/streaming.py", import.meta.url));

export const streamingConfig = `backend: "python"
max_batch_size: 0
input [ { name: "CODE" data_type: TYPE_STRING dims: [ 1 ] } ]
output [ { name: "OUT" data_type: TYPE_STRING dims: [ 1 ] }, { name: "LARGE" data_type: TYPE_INT32 dims: [ -1 ] } ]
model_transaction_policy { decoupled: true }
instance_group { count: 1 kind: KIND_CPU }
`;

/** Writes a decoupled model that runs the code of its requests: models/streaming.py. */
export async function writeStreamingModel(repository: string, name: string): Promise<void> {
  await writeFaultyModel(repository, name, {
    config: streamingConfig,
    text: await readFile(streamingProgram, "utf8"),
  });
}

/**
 * A server with the decoupled model `streaming`, the model `bystander`, and the models `names` that `write` adds. The
 * unload timeout is two seconds.
 */
export async function openStreaming(
  names: readonly string[] = [],
  write: (repository: string) => Promise<void> = async () => {},
): Promise<Serving> {
  const loaded = ["streaming", "bystander", ...names].map((name) => `--load-model=${name}`);
  return await openServing({
    flags: ["--model-control-mode=explicit", ...loaded, "--unload-timeout-secs=2"],
    write: async ({ repository }) => {
      await writeStreamingModel(repository, "streaming");
      await writeFaultyModel(repository, "bystander");
      await write(repository);
    },
  });
}

/** Returns the value that a model stored with `leave(name, value)`. */
export async function leftBy(repository: string, model: string, name: string): Promise<string> {
  const path = join(repository, model, name);
  return await until(`a model leaves ${name}`, () => readFile(path, "utf8").catch(() => null));
}

/** Returns code that runs in a thread of the model, while the instance is free for other requests. */
export const inThread = (...lines: readonly string[]): string =>
  [
    "def run(sender=sender, kept=model.kept):",
    ...lines.map((line) => `  ${line}`),
    "threading.Thread(target=run, daemon=True).start()",
  ].join("\n");

/** Responses of 16 KiB without end; `atEnd` runs when the model is notified of the cancellation. */
export const endlessResponses = (atEnd: string, response = "large(sent, 4096)"): string =>
  inThread(
    "sent = 0",
    "while not sender.is_cancelled():",
    "  sent += 1",
    "  kept['sent'] = sent",
    `  sender.send(${response})`,
    "sender.send(flags=FINAL)",
    atEnd,
  );

/** Returns the number of responses that were sent, once the model sends no more; `evaluate` evaluates an expression in it. */
export async function sentWhenStill(evaluate: (expression: string) => Promise<string>): Promise<number> {
  let before = 0;
  return await until("the model sends no more", async () => {
    const now = Number(await evaluate("model.kept.get('sent', 0)"));
    const isSame = now > 0 && now === before;
    before = now;
    return isSame ? now : null;
  });
}
