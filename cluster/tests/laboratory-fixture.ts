import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Returns the process id of a program of the laboratory: `node1`, `node2` or `apiserver`. */
export function processOf(program: "node1" | "node2" | "apiserver"): number {
  return Number(readFileSync(join(process.env["RUN"] ?? "", `${program}.pid`), "utf8"));
}

/** Kills the processes of a pod that have a command-line argument that starts with `argument`. Returns their number. */
export function killInPod(uid: string, argument: string): number {
  const read = (id: string, file: string) => {
    try {
      return readFileSync(`/proc/${id}/${file}`, "utf8");
    } catch {
      // The process has ended.
      return "";
    }
  };
  const found = readdirSync("/proc").filter(
    (id) => /^\d+$/.test(id) && read(id, "cgroup").includes(uid) && read(id, "cmdline").includes(`\0${argument}`),
  );
  for (const id of found) process.kill(Number(id), "SIGKILL");
  return found.length;
}
