import { execFileSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** True if this user may mount file systems; otherwise tests cannot use a small disk. */
export function mayMount(): boolean {
  const directory = mkdtempSync(join(tmpdir(), "galatea-mount-"));
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "tmpfs", directory], { stdio: "pipe" });
    execFileSync("umount", [directory]);
    return true;
  } catch {
    return false;
  } finally {
    rmdirSync(directory);
  }
}
