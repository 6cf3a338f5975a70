import { setFlagsFromString } from "node:v8";
import { enableCompileCache } from "node:module";

// Otherwise V8 allocates objects directly in the old generation where many earlier ones of the same site survived. Such an object of a
// finished request keeps the request's other objects from the young collector until a full collection. (add_sub over gRPC, one client:
// young collections of 7 to 14 ms instead of 0.5, and 20 % more processor time.)
setFlagsFromString("--no-allocation-site-pretenuring");
// Caches compiled code of all later imports, also for servers that the platform starts. Without a writable cache
// directory only the start is slower.
enableCompileCache();
// Before anything that could use the pool is imported.
const { sizeThreadPool } = await import("./app/thread-pool.ts");
sizeThreadPool();
const { runCommandLine } = await import("./cli/index.ts");
process.exitCode = await runCommandLine(process.argv.slice(2));
