#!/usr/bin/env node
// Plain JavaScript that any Node can read: it says in one sentence what is missing, or starts the program.
// The published package starts it with the shell script beside it.
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";

// A checkout runs its sources; what is published has only what was built of them.
const source = new URL("../src/main.ts", import.meta.url);
const inCheckout = existsSync(source);
const major = Number(process.versions.node.split(".")[0]);

/** Whether the packages that the program imports are there: below this folder or any above it, as Node looks for them. */
function hasPackages() {
  for (let folder = fileURLToPath(import.meta.url); folder !== dirname(folder);) {
    folder = dirname(folder);
    if (existsSync(`${folder}/node_modules/@bufbuild/protobuf`)) return true;
  }
  return false;
}

function refuse(sentence) {
  process.stderr.write(`${sentence}\n`);
  process.exitCode = 1;
}

if (!hasPackages()) {
  const checkout = fileURLToPath(new URL("../../..", import.meta.url));
  refuse(
    inCheckout
      ? `galatea's packages are not installed yet: run \`npm ci --ignore-scripts\` in ${checkout}, then start it with \`npx galatea\` there`
      : "galatea's packages are missing beside it: install it again with `npm install`, which brings them",
  );
} else if (major < 24) {
  refuse(
    inCheckout
      ? `galatea needs Node 24 or newer (this is ${process.version}): run it as \`npx galatea\` in the checkout, which uses the pinned one`
      : `galatea needs Node 24 or newer (this is ${process.version}): install galatea again without --omit=optional, which brings it, or install Node 24`,
  );
} else await import(inCheckout ? source : new URL("../src/main.js", import.meta.url));
