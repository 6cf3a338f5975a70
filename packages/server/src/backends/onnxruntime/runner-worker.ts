import { writeFileSync } from "node:fs";
import { enableCompileCache } from "node:module";
import { serveRunner } from "./serve-runner.ts";

/** File descriptors of a runner process, which are its 3 and 4. It serves these sockets, and ends when the server closes them. */
export type RunnerDescriptors = readonly [controlFd: number, descriptorFd: number];

enableCompileCache();
try {
  // When memory runs out, the kernel should end a runner, which can be replaced, and not the server.
  writeFileSync("/proc/self/oom_score_adj", "500");
} catch {
  // The setting is optional: some systems do not allow it.
}
const [controlFd, descriptorFd]: RunnerDescriptors = [3, 4];
await serveRunner({ controlFd, descriptorFd });
process.exit();
