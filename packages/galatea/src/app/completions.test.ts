import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const main = join(import.meta.dirname, "../main.ts");

function galatea(...args: readonly string[]) {
  return spawnSync(process.execPath, [main, ...args], { encoding: "utf8" });
}

/**
 * Types lines into an interactive bash on a terminal, in which a tab completes words. Returns the terminal's output.
 */
async function typed(lines: readonly string[], cwd: string): Promise<string> {
  const child = spawn("script", ["-qec", "bash --norc --noprofile -i", "/dev/null"], {
    cwd,
    env: { PATH: process.env.PATH, TERM: "dumb", HOME: cwd },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const shown = text(child.stdout);
  child.stdin.end(["bind 'set bell-style none'", ...lines, "exit", ""].join("\n"));
  await once(child, "close");
  return await shown;
}

test("bash completes commands, flags and their values, and otherwise file names", async () => {
  const directory = await mkdtemp(join(tmpdir(), "gal-completions-"));
  try {
    const { stdout } = galatea("completions", "bash");
    await writeFile(join(directory, "script"), stdout);
    await writeFile(join(directory, "records.backup"), "");
    const shown = await typed(
      [
        "source ./script; galatea() { printf '<%s>' \"$@\"; echo; }",
        "galatea ser\t--exit-on-er\tfal\t",
        "galatea serve --exit-on-error=fal\t--http-po\t8000",
        "galatea restore rec\t",
      ],
      directory,
    );
    for (const words of [
      "<serve><--exit-on-error><false>",
      "<serve><--exit-on-error=false><--http-port><8000>",
      "<restore><records.backup>",
    ])
      assert.ok(shown.includes(words), shown);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("each shell's completion script lists every command and every flag that has an effect", () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { status, stdout } = galatea("completions", shell);
    assert.equal(status, 0);
    for (const word of ["serve", "restore", "completions", "model-repository", "instance-grace-secs"])
      assert.match(stdout, new RegExp(`\\b${word}\\b`), shell);
    assert.doesNotMatch(stdout, /vertex-ai/, shell);
  }
});

test("each shell's completion script lists short flags next to their long forms", () => {
  const expected = {
    bash: /^ {4}logs\) flags="-f --follow /m,
    zsh: /^ {4}logs\) specs=\(\n {6}'\*-f\[also print [^']*'\n {6}'\*--follow\[also print /m,
    fish: /__fish_seen_subcommand_from logs' -s f -l follow -d /,
  };
  for (const [shell, pattern] of Object.entries(expected)) assert.match(galatea("completions", shell).stdout, pattern);
});

test("the error for an unknown shell names the supported ones", () => {
  const { status, stderr } = galatea("completions", "tcsh");
  const text = "galatea completions takes one of bash, zsh, fish\nTry `galatea completions --help`.\n";
  assert.deepEqual([status, stderr], [1, text]);
});
