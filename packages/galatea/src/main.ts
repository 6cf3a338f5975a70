import { enableCompileCache } from "node:module";

// Caches compiled code of all later imports, also for servers that the platform starts. Without a writable cache
// directory only the start is slower.
enableCompileCache();
// Before anything that could use the pool is imported.
const { sizeThreadPool } = await import("./app/thread-pool.ts");
sizeThreadPool();
const { runCommandLine } = await import("./cli/index.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
