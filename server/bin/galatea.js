#!/usr/bin/env node
// Plain JavaScript that any Node can read: it says in one sentence what is missing, or starts the program.
const major = Number(process.versions.node.split(".")[0]);
if (major < 24) {
  process.stderr.write(
    `galatea needs Node 24 or newer (this is ${process.version}); in a checkout run it as \`npx galatea\`, which uses the pinned one\n`,
  );
  process.exitCode = 1;
} else {
  await import("../src/main.ts");
}
