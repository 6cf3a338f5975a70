import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { serveRunner } from "./serve-runner.ts";

/** File descriptors (3 and 4) of the two sockets of a runner process. The process ends when the server closes them. */
export type RunnerDescriptors = readonly [controlFd: number, descriptorFd: number];

enableCompileCache();
try {
  // When the machine runs out of memory, the kernel should kill a runner, which can be restarted, before the server.
  writeFileSync("/proc/self/oom_score_adj", "500");
} catch {
  // Some systems do not allow this setting; the runner works without it.
}
const [controlFd, descriptorFd]: RunnerDescriptors = [3, 4];
await serveRunner({ controlFd, descriptorFd });
process.exit();
