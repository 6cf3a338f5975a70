import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

test("the start of a platform that cannot confine tenants warns of it, and the gauge and /health say so at once", async () => {
  const data = mkdtempSync(join(tmpdir(), "galatea-confinement-"));
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  const command = [process.execPath, main, "up", "--port", "0", "--data", data];
  // Root may do everything unless something is taken from it.
  const weaker = process.geteuid?.() === 0 ? ["setpriv", "--bounding-set=-sys_admin", ...command] : command;
  const child = spawn(weaker[0]!, weaker.slice(1), { stdio: ["ignore", "pipe", "pipe"] });
  const exited = new Promise((resolve) => child.once("close", resolve));
  try {
    let text = "";
    const url = await new Promise<string>((resolve, reject) => {
      const note = (chunk: Buffer) => {
        text += chunk.toString();
        const found = /Galatea is up at (http:\S+)/.exec(text)?.[1];
        if (found !== undefined) resolve(found);
      };
      child.stdout.on("data", note);
      child.stderr.on("data", note);
      child.once("close", () => reject(new Error(text)));
    });
    const metrics = await (await fetch(`${url}/metrics`)).text();
    assert.match(metrics, /^galatea_tenants_unconfined\{what="view"\} 1$/m);
    assert.match(metrics, /^galatea_tenants_unconfined\{what="memory"\} 0$/m);
    const { unconfined } = (await (await fetch(`${url}/health`)).json()) as { unconfined: Record<string, string> };
    assert.match(unconfined["view"] ?? "", /^root with CAP_SYS_ADMIN/);
    child.kill("SIGTERM");
    await exited;
    assert.match(text, /^W.*models of different tenants are not fully isolated on this machine: .*view \(root with/m);
  } finally {
    child.kill("SIGKILL");
    await exited;
    rmSync(data, { recursive: true, force: true });
  }
});
