import { sizeThreadPool } from "./app/thread-pool.ts";

// Before anything is imported that could use the pool.
sizeThreadPool();
const { runCommandLine } = await import("./cli/index.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
