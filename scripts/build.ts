import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";

/** `npm run build`: what is published, in server/dist: one JavaScript module for each source file, and the generated files as they are. */
const server = join(import.meta.dirname, "..", "server");
rmSync(join(server, "dist"), { recursive: true, force: true });
const { status } = spawnSync("tsc", ["-p", join(server, "tsconfig.build.json")], { stdio: "inherit" });
if (status !== 0) process.exit(status ?? 1);
for (const folder of ["modelconfig/gen", "aws/spec/gen"])
  cpSync(join(server, "src", folder), join(server, "dist", folder), { recursive: true });
