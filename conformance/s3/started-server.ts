import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { openFiles } from "../faults/processes.ts";

/** `server.ts` as a separate process over an empty directory. */
export interface StartedServer extends AsyncDisposable {
  readonly url: string;
  readonly folder: string;
  readonly process: ChildProcess;
  /** Open descriptors of the process, as the kernel names them: `socket:[…]`, or a file's path. */
  openFiles(): readonly string[];
}

export async function started(options: Record<string, unknown>): Promise<StartedServer> {
  const folder = await mkdtemp(join(tmpdir(), "galatea-s3-"));
  const script = fileURLToPath(new URL("./server.ts", import.meta.url));
  const argument = JSON.stringify({ folder: join(folder, "data"), ...options });
  const child = spawn(process.execPath, [script, argument], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  const [url] = (await Promise.race([once(createInterface(child.stdout), "line"), closed])) as [string];
  return {
    url,
    folder,
    process: child,
    openFiles: () => openFiles(child.pid ?? 0),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await closed;
      await rm(folder, { recursive: true });
    },
  };
}
