import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { testTimeoutMs } from "@galatea/base/core/eventually-fixture.ts";

const main = fileURLToPath(new URL("../main.ts", import.meta.url));
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-cli-"));
});
after(() => rm(root, { recursive: true, force: true }));

function galatea(...args: readonly string[]): { code: number | null; stdout: string; stderr: string } {
  const done = spawnSync(process.execPath, [main, ...args], { encoding: "utf8", timeout: testTimeoutMs });
  return { code: done.status, stdout: done.stdout, stderr: done.stderr };
}

const env = (...args: readonly string[]) => galatea("env", "--data", join(root, "data"), ...args);

test("every version option prints the package's version", async () => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  for (const word of ["--version", "-V", "version"])
    assert.deepEqual(galatea(word), { code: 0, stdout: `galatea ${version}\n`, stderr: "" });
});

test("an invalid port or host is rejected in one sentence before anything starts", () => {
  for (const [args, sentence] of [
    [["up", "--port", "99999"], "Invalid option value. Got 99999 for --port, expected at most 65535"],
    [["env", "--port", "0"], "Invalid option value. Got 0 for --port, expected at least 1"],
    [["env", "--host", "a b"], "invalid value for --host: 'a b' is neither a name nor an address"],
    [["up", "--account", "12"], "invalid value for --account: '12' is not twelve digits"],
    [["env", "--region", "Europe"], "invalid value for --region: 'Europe' is not like us-east-1"],
    [["up", "--host="], "invalid value for --host: '' is neither a name nor an address"],
    [
      ["serve", "--model-repository=/tmp", "--http-port", "70000"],
      "Invalid option value. Got 70000 for --http-port, expected at most 65535",
    ],
  ] as const) {
    const refused = galatea(...args);
    assert.deepEqual(refused, {
      code: 1,
      stdout: "",
      stderr: `${sentence}\nTry \`galatea ${args[0]} --help\`.\n`,
    });
  }
});

test("env prints the given region", () => {
  assert.match(env("--region", "ap-southeast-2").stdout, /^export AWS_REGION=ap-southeast-2$/m);
});

test("env puts an IPv6 address in brackets, given with them or without", () => {
  for (const host of ["::1", "[::1]"]) {
    const { code, stdout } = env("--host", host);
    assert.equal(code, 0);
    assert.match(stdout, /^export AWS_ENDPOINT_URL='http:\/\/\[::1\]:8770'$/m);
  }
});

test("env prints absolute paths for a relative data directory", () => {
  const done = spawnSync(process.execPath, [main, "env", "--data", "data"], { cwd: root, encoding: "utf8" });
  assert.match(done.stdout, new RegExp(`^export SAGEMAKER_USER_CONFIG_OVERRIDE=${root}/data/`, "m"));
});

test("the data directory is GALATEA_DATA, else below XDG_DATA_HOME where that is absolute, else below the home", () => {
  for (const [variables, expected] of [
    [{ GALATEA_DATA: join(root, "ours"), XDG_DATA_HOME: join(root, "shared") }, "ours"],
    [{ GALATEA_DATA: "", XDG_DATA_HOME: join(root, "shared") }, "shared/galatea"],
    [{ XDG_DATA_HOME: "" }, "home/.local/share/galatea"],
    [{ XDG_DATA_HOME: "relative" }, "home/.local/share/galatea"],
  ] as const) {
    const env = { PATH: process.env.PATH, HOME: join(root, "home"), ...variables };
    const done = spawnSync(process.execPath, [main, "env"], { cwd: root, env, encoding: "utf8" });
    assert.match(done.stdout, new RegExp(`^export SAGEMAKER_USER_CONFIG_OVERRIDE=${root}/${expected}/`, "m"));
  }
});

test("env leaves the shell's HTTPS alone, redirects it on request, and can restore it", () => {
  const galatea = `'${process.execPath}' '${main}' env --port 8770 --data '${join(root, "data")}'`;
  const show = 'echo "$AWS_ENDPOINT_URL|$HTTPS_PROXY|$https_proxy|$AWS_SESSION_TOKEN|$NO_PROXY"';
  const script = ["", "--proxy", "", "--proxy", "--unset"].map((flags) => `eval "$(${galatea} ${flags})"; ${show}`);
  const env = { PATH: process.env.PATH, HTTPS_PROXY: "http://corporate:3128", AWS_SESSION_TOKEN: "it's real" };
  const done = spawnSync("sh", ["-ec", [...script, "env | grep -c GALATEA || true"].join("\n")], {
    env,
    encoding: "utf8",
  });
  assert.equal(done.stderr, "");
  const [plain = "", proxied = "", plainAgain, proxiedAgain, ...restored] = done.stdout.split("\n");
  assert.equal(plain, "http://127.0.0.1:8770|http://corporate:3128|||");
  const [, upper, lower, token, excepted] = proxied.split("|");
  assert.match(upper ?? "", /^http:\/\/[\w-]+:[0-9a-f]{32}@127\.0\.0\.1:8770$/);
  assert.deepEqual([lower, token, excepted], [upper, "", "127.0.0.1,localhost"]);
  assert.deepEqual([plainAgain, proxiedAgain], [plain, proxied]);
  assert.deepEqual(restored, ["|http://corporate:3128||it's real|", "0", ""]);
});

test("env reports in one line that its data directory cannot be written", async () => {
  const file = join(root, "file");
  await writeFile(file, "");
  const { code, stdout, stderr } = galatea("env", "--data", join(file, "data"));
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /^galatea env: ENOTDIR: .*\n$/);
});

test("a reader that closes the pipe early causes no error output", async () => {
  for (const args of [["env", "--port=8770", "--data", join(root, "data")], ["serve", "--help"], ["version"]]) {
    const child = spawn(process.execPath, [main, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    child.stdout.destroy();
    let complaint = "";
    child.stderr.on("data", (chunk: Buffer) => (complaint += String(chunk)));
    const code = await new Promise((resolve) => child.once("close", resolve));
    assert.deepEqual({ code, complaint }, { code: 0, complaint: "" }, args[0]);
  }
});

test("the help texts of up and env describe shared flags for each command", () => {
  const up = galatea("up", "--help").stdout;
  const env = galatea("env", "--help").stdout;
  assert.match(up, /--host=TEXT +address to listen on/);
  assert.match(env, /--host=TEXT +name or address that clients reach the platform by/);
  for (const help of [up, env, galatea("serve", "--help").stdout])
    assert.match(help, /\$GALATEA_DATA, else \$XDG_DATA_HOME/);
});
