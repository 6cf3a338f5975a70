import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";
import { delimiter, join, relative } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { eventually } from "../../packages/base/src/core/eventually-fixture.ts";
import { root } from "../../scripts/source-tree.ts";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { blocksOf, stepsOf } from "./blocks.ts";
import { documents } from "./documents.ts";
import { DocumentShell } from "./document-shell.ts";
import { missingLine } from "./printed-output.ts";

/** The ports that the documents use. */
const ports = [8000, 8001, 8002, 8770];
/** Time limit for the output that a document shows of a server that is ready, in milliseconds. */
const printMs = 60_000;

let python: string;
/**
 * The directory of the documents' checkouts, below this checkout: their packages are hard links, which need one file
 * system.
 */
let scratch: string;
/** The packages of the checkout of the document that runs. */
let packages: string;

before(async () => {
  mkdirSync(join(root, ".galatea"), { recursive: true });
  scratch = mkdtempSync(join(root, ".galatea/documents-"));
  for (const port of ports) {
    const isTaken = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.unref();
    });
    assert.ok(!isTaken, `port ${port}, which the documents use, is taken by another program`);
  }
  ({ python } = await ensureEnvironment(cacheDirectory(process.env), "clients"));
  packages = join(scratch, "node_modules");
  // `npm ci` replaces the linked files, and nothing writes to them.
  execFileSync("cp", ["-al", join(root, "node_modules"), packages]);
});
after(() => rmSync(scratch, { recursive: true }));

/** Copies the repository as a clone with its packages installed. */
function copyCheckout(directory: string): void {
  const isElsewhere = (path: string) => /\/(\.git|\.galatea|node_modules|dist|\.venv)$/.test(path);
  const filter = (path: string) => !isElsewhere(path);
  for (const path of readdirSync(root)
    .map((name) => join(root, name))
    .filter(filter))
    cpSync(path, join(directory, relative(root, path)), { recursive: true, filter });
  renameSync(packages, join(directory, "node_modules"));
  packages = join(directory, "node_modules");
}

/**
 * Returns the environment of a reader with an empty home directory, whose package managers use this user's sources and
 * caches.
 */
function readersEnvironment(home: string): Readonly<Record<string, string | undefined>> {
  const kept = Object.entries(process.env).filter(
    ([name]) => !/^(npm_|NODE_|GALATEA_|AWS_|XDG_|VIRTUAL_ENV)/.test(name),
  );
  const path = (process.env["PATH"] ?? "").split(delimiter).filter((each) => !each.includes("node_modules"));
  const config = process.env["XDG_CONFIG_HOME"] ?? join(homedir(), ".config");
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  return {
    ...Object.fromEntries(kept),
    PATH: path.join(delimiter),
    // A Python with boto3, tritonclient and others, for documents that do not install them.
    CLIENTS_PYTHON: python,
    HOME: home,
    // Frameworks take gigabytes, so the documents use those that the suites have installed.
    GALATEA_FRAMEWORKS: join(cacheDirectory(process.env), "server-data/frameworks"),
    XDG_CONFIG_HOME: config,
    XDG_CACHE_HOME: cache,
    npm_config_cache: join(homedir(), ".npm"),
    npm_config_userconfig: join(homedir(), ".npmrc"),
  };
}

async function runDocument(t: TestContext, path: string): Promise<void> {
  const own = mkdtempSync(join(scratch, "d-"));
  const home = join(own, "home");
  const records = join(own, "records");
  const directory = join(own, "galatea");
  for (const each of [home, records]) mkdirSync(each);
  copyCheckout(directory);
  await using shell = new DocumentShell({ directory, records, env: readersEnvironment(home) });
  for (const { block, printed } of stepsOf(blocksOf(readFileSync(join(root, path), "utf8")))) {
    const { line, language, text, file } = block;
    if (file !== null) {
      await shell.save(file, text);
      continue;
    }
    const startedMs = performance.now();
    const output = await shell.run(language, text).catch((error: unknown) => {
      throw new Error(`${path}:${line}: ${String(error)}`, { cause: error });
    });
    t.diagnostic(`${path}:${line}: ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
    for (const shown of printed) {
      const missing = async () => missingLine(shown.text, await output(), home);
      await eventually(async () => (await missing()) === null, printMs).catch(async () => {
        assert.fail(`${path}:${shown.line}: not printed: ${await missing()}\n${await output()}`);
      });
    }
  }
}

for (const path of documents)
  if (stepsOf(blocksOf(readFileSync(join(root, path), "utf8"))).length > 0)
    test(`the blocks of ${path} run and print the output that the document shows`, (t) => runDocument(t, path));
