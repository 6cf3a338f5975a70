import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "@galatea/base";
import type { Credentials } from "./hosting.ts";
import { describeProcessEnd, spawnProcess } from "@galatea/base/processes";

/** More than a platform gives requests under way. */
const stopMs = 35_000;

export interface Platform {
  /** Resolves with its URL; rejects with its last words when it ended instead. `detail` is told what it says until then. */
  ready(detail: (text: string) => void): Promise<string>;
  /** How it ended. */
  readonly ended: Promise<string>;
  /** Ends it, ready or not. */
  stop(): Promise<void>;
}

export interface PlatformOptions {
  readonly root: string;
  readonly port: number;
  readonly data: string;
}

/**
 * Starts `galatea up` beside this program. It is in a process group of its own, so that Ctrl-C is ours to pass on when our requests
 * have ended, and the kernel ends it with us, however we end.
 */
export async function startPlatform({ root, port, data }: PlatformOptions): Promise<Platform> {
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  // Whoever stops it before it is ready does not ask for it any more.
  url.catch(() => {});
  let lastWords = "";
  let tell = (_text: string) => {};
  const child = await spawnProcess({
    command: process.execPath,
    args: [join(root, "packages/galatea/src/main.ts"), "up", `--port=${port}`, `--data=${data}`],
    env: Object.fromEntries(
      Object.entries(process.env).filter((each): each is [string, string] => each[1] !== undefined),
    ),
    cwd: null,
    extraFds: [],
    onLine: (line, stream) => {
      const ready = stream === "stdout" ? /https?:\/\/\S+/.exec(line)?.[0] : undefined;
      if (ready !== undefined) resolve(ready);
      lastWords = line;
      tell(line.slice(0, 100));
    },
    onExit: (end) => reject(new Error(lastWords === "" ? `the platform ended: ${describeProcessEnd(end)}` : lastWords)),
    clock: systemClock,
  });
  return {
    ready: (detail) => {
      tell = detail;
      return url;
    },
    ended: child.ended.then(describeProcessEnd),
    stop: async () => void (await child.stop(stopMs)),
  };
}

/** What `galatea env` prints for it. */
export async function platformCredentials({ root, port, data }: PlatformOptions): Promise<Credentials> {
  const args = [join(root, "packages/galatea/src/main.ts"), "env", `--port=${port}`, `--data=${data}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const value = (name: string) => new RegExp(`^export ${name}=(\\S+)$`, "m").exec(stdout)?.[1] ?? "";
  return { accessKeyId: value("AWS_ACCESS_KEY_ID"), secretAccessKey: value("AWS_SECRET_ACCESS_KEY") };
}
