import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("bare-platform-worker.ts", import.meta.url));

/** A server that reads a platform's requests and does nothing. Its times are those of the machine and the client. */
export interface BarePlatform extends AsyncDisposable {
  readonly port: number;
}

/** Each invocation gets this text. The server runs in its own session, like a platform. */
export async function startBarePlatform(response: string): Promise<BarePlatform> {
  const child = spawn(process.execPath, [program, response], { stdio: ["pipe", "pipe", "inherit"], detached: true });
  const exited = once(child, "exit");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  return {
    port: Number(line),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await exited;
    },
  };
}
