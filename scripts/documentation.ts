import { spawnSync } from "node:child_process";
import { root } from "./source-tree.ts";

/** `npm run docs`: installs the packages of the documentation site, which has a lockfile of its own, and builds the site. */
const commands = [
  ["npm", "ci", "--prefix", "docs", "--ignore-scripts", "--no-audit", "--no-fund"],
  [process.execPath, "docs/node_modules/vitepress/bin/vitepress.js", "build", "docs"],
] as const;

process.exitCode = commands.every(
  ([program, ...args]) => spawnSync(program, args, { cwd: root, stdio: "inherit" }).status === 0,
)
  ? 0
  : 1;
