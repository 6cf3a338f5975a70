import fs from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";

/**
 * Calls `changed` after each change that this process makes in a folder, and before the next one. A copy of the folder
 * is then the state after a crash at that point. Each write to a file is split in two, and recursive removals happen
 * step by step. Writes to open file handles are not observed.
 */
export function onFileChanges(folder: string, changed: () => void): Disposable {
  const real = { ...fs };
  const report = (path: unknown) => {
    if (String(path).startsWith(join(folder, "/"))) changed();
  };
  const reported =
    <Given extends readonly unknown[], Result>(change: (...input: Given) => Promise<Result>) =>
    async (...input: Given): Promise<Result> => {
      const result = await change(...input);
      report(input[0]);
      return result;
    };
  const inHalves = (write: (path: string, bytes: Buffer) => Promise<void>) => async (path: string, input: string) => {
    const bytes = Buffer.from(input);
    await reported(write)(path, bytes.subarray(0, bytes.length / 2));
    await reported(real.appendFile)(path, bytes.subarray(bytes.length / 2));
  };
  const removeAll = async (path: string): Promise<void> => {
    for (const { name } of await real.readdir(path, { withFileTypes: true })) await remove(join(path, name));
    await reported(real.rmdir)(path);
  };
  const remove = async (path: string, options?: Parameters<typeof real.rm>[1]): Promise<void> => {
    const found = await real.stat(path).catch(() => null);
    if (found?.isDirectory() === true) return await removeAll(path);
    await reported(real.rm)(path, options);
  };
  const watched = {
    mkdir: reported(real.mkdir),
    rename: reported(real.rename),
    writeFile: inHalves(real.writeFile),
    appendFile: inHalves(real.appendFile),
    rm: remove,
  };
  Object.assign(fs, watched);
  syncBuiltinESMExports();
  return {
    [Symbol.dispose]() {
      const { mkdir, rename, writeFile, appendFile, rm } = real;
      Object.assign(fs, { mkdir, rename, writeFile, appendFile, rm });
      syncBuiltinESMExports();
    },
  };
}
