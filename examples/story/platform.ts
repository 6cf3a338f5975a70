import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { systemClock } from "@galatea/base";
import type { Credentials } from "./hosting.ts";
import { describeProcessEnd, spawnProcess } from "@galatea/base/processes";

/** Longer than the time that a platform gives requests in flight at its end, in milliseconds. */
const stopMs = 35_000;

export interface Platform {
  /**
   * Resolves with its URL; rejects with its last output if it ends before. `detail` is called with its output until
   * then.
   */
  ready(detail: (text: string) => void): Promise<string>;
  /** Resolves with a description of its end. */
  readonly ended: Promise<string>;
  /** Stops it, whether or not it is ready. */
  stop(): Promise<void>;
}

export interface PlatformOptions {
  readonly root: string;
  readonly port: number;
  readonly data: string;
}

/**
 * Starts `galatea up` in its own process group, so that Ctrl-C reaches it only after our requests have ended. The
 * kernel ends it with this process.
 */
export async function startPlatform({ root, port, data }: PlatformOptions): Promise<Platform> {
  const { promise: url, resolve, reject } = Promise.withResolvers<string>();
  // If the platform is stopped before it is ready, no caller waits for its URL.
  url.catch(() => {});
  let lastWords = "";
  let report = (_text: string) => {};
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
      report(line.slice(0, 100));
    },
    onExit: (end) => reject(new Error(lastWords === "" ? `the platform ended: ${describeProcessEnd(end)}` : lastWords)),
    clock: systemClock,
  });
  return {
    ready: (detail) => {
      report = detail;
      return url;
    },
    ended: child.ended.then(describeProcessEnd),
    stop: async () => void (await child.stop(stopMs)),
  };
}

/** Returns the credentials that `galatea env` prints for the platform. */
export async function platformCredentials({ root, port, data }: PlatformOptions): Promise<Credentials> {
  const args = [join(root, "packages/galatea/src/main.ts"), "env", `--port=${port}`, `--data=${data}`];
  const { stdout } = await promisify(execFile)(process.execPath, args);
  const value = (name: string) => new RegExp(`^export ${name}=(\\S+)$`, "m").exec(stdout)?.[1] ?? "";
  return { accessKeyId: value("AWS_ACCESS_KEY_ID"), secretAccessKey: value("AWS_SECRET_ACCESS_KEY") };
}
