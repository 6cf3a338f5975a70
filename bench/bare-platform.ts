import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("bare-platform-worker.ts", import.meta.url));

/** A server that takes a platform's requests and does nothing: what it takes is the machine's and the client's own. */
export interface BarePlatform extends AsyncDisposable {
  readonly port: number;
}

/** Every invocation is answered with this text. In a session of its own, as a platform is. */
export async function startBarePlatform(answer: string): Promise<BarePlatform> {
  const child = spawn(process.execPath, [program, answer], { stdio: ["pipe", "pipe", "inherit"], detached: true });
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
