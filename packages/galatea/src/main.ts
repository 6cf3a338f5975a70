import { enableCompileCache } from "node:module";

// For everything imported from here on, also by servers that the platform starts. A place where nothing can be kept costs only time.
enableCompileCache();
// Before anything is imported that could use the pool.
const { sizeThreadPool } = await import("./app/thread-pool.ts");
sizeThreadPool();
const { runCommandLine } = await import("./cli/index.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
