import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { existsSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * A lock between processes of one machine: a directory that only one of them can make, holding the owner's pid and start
 * time. A lock whose owner is no longer alive is taken over. Released by disposing.
 */
export async function acquireLock(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  await mkdir(dirname(path), { recursive: true });
  const self = await processIdentity(process.pid);
  for (;;) {
    signal.throwIfAborted();
    if (await tryLock(path, self)) return { [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
    if (await ownerIsGone(path)) {
      const grave = `${path}.dead-${process.pid}-${Date.now()}`;
      await rename(path, grave).catch(ignoreMissing);
      await rm(grave, { recursive: true, force: true });
      continue;
    }
    await changeOf(path, signal);
  }
}

async function tryLock(path: string, self: string): Promise<boolean> {
  const staging = `${path}.staging-${process.pid}-${Math.random().toString(36).slice(2)}`;
  await mkdir(staging);
  await writeFile(join(staging, "owner"), self);
  try {
    await rename(staging, path);
    return true;
  } catch (error) {
    await rm(staging, { recursive: true, force: true });
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOTEMPTY" || code === "EEXIST") return false;
    throw error;
  }
}

async function ownerIsGone(path: string): Promise<boolean> {
  const owner = await readFile(join(path, "owner"), "utf8").catch(ignoreMissing);
  if (owner === undefined) return false;
  const pid = Number(owner.split(" ")[0]);
  return (await processIdentity(pid).catch(() => "gone")) !== owner;
}

/** Pid and start time together name a process for ever; a reused pid has another start time. */
async function processIdentity(pid: number): Promise<string> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  return `${pid} ${stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]}`;
}

/** Resolves when something happens beside the lock, or after a second: an owner that was killed leaves no event. */
async function changeOf(path: string, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const watcher = watch(dirname(path), (_event, name) => {
    if (name === null || name === basename(path)) resolve();
  });
  watcher.on("error", () => resolve());
  // Given back between the attempt and the watch: no event will tell.
  if (!existsSync(path)) resolve();
  const timer = setTimeout(resolve, 1000);
  signal.addEventListener("abort", () => resolve(), { once: true });
  await promise;
  clearTimeout(timer);
  watcher.close();
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
