#!/usr/bin/env node
// Plain JavaScript that any Node can read: it says in one sentence what is missing, or starts the program.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `galatea needs Node 24 or newer (this is ${process.version}); in a checkout run it as \`npx galatea\`, which uses the pinned one\n`,
  );
  process.exitCode = 1;
} else {
  const { existsSync } = await import("node:fs");
  // A checkout runs its sources; what is published has only what was built of them.
  const source = new URL("../src/main.ts", import.meta.url);
  await import(existsSync(source) ? source : new URL("../dist/main.js", import.meta.url));
}
