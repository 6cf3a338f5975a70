import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join, relative } from "node:path";

/** `npm run build`: what is published, in server/dist: one JavaScript module for each source file, and the generated files as they are. */
const server = join(import.meta.dirname, "..", "server");
const source = join(server, "src");
rmSync(join(server, "dist"), { recursive: true, force: true });
const { status } = spawnSync("tsc", ["-p", join(server, "tsconfig.build.json")], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
for (const entry of readdirSync(source, { withFileTypes: true, recursive: true })) {
  if (!entry.isDirectory() || entry.name !== "gen") continue;
  const folder = join(entry.parentPath, entry.name);
  cpSync(folder, join(server, "dist", relative(source, folder)), { recursive: true });
}
