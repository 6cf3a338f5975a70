/** Data directories that releases left (`kept-data`, one for each release, records only) are opened by this one; one of a newer release is refused. */
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { CloudWatchClient, DescribeAlarmsCommand } from "@aws-sdk/client-cloudwatch";
import { GetRoleCommand, IAMClient } from "@aws-sdk/client-iam";
import { DescribeEndpointConfigCommand, DescribeModelCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";

const main = join(import.meta.dirname, "../src/main.ts");
const kept = join(import.meta.dirname, "kept-data");
let root: string;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-kept-"));
});
after(() => rm(root, { recursive: true }));

async function unpacked(archive: string): Promise<string> {
  const data = await mkdtemp(join(root, "data-"));
  execFileSync("tar", ["-xzf", join(kept, archive), "-C", data]);
  return data;
}

const words = (data: string) => [main, "up", "--open", "--port=0", `--data=${data}`];

test("a start of this release keeps the records of each earlier release", async () => {
  for (const archive of await readdir(kept)) {
    const child = spawn(process.execPath, words(await unpacked(archive)), { stdio: ["ignore", "pipe", "inherit"] });
    const ended = once(child, "exit");
    try {
      let text = "";
      for await (const chunk of child.stdout) if (/next:/.test((text += String(chunk)))) break;
      const endpoint = /http:\S+/.exec(text)?.[0] ?? assert.fail(text);
      const options = { endpoint, region: "us-east-1", credentials: { accessKeyId: "any", secretAccessKey: "any" } };
      const sagemaker = new SageMakerClient(options);
      const model = await sagemaker.send(new DescribeModelCommand({ ModelName: "kept-model" }));
      assert.equal(model.PrimaryContainer?.ModelDataUrl, "s3://kept/models/");
      const config = new DescribeEndpointConfigCommand({ EndpointConfigName: "kept-configuration" });
      assert.equal((await sagemaker.send(config)).ProductionVariants?.[0]?.InitialInstanceCount, 2);
      const alarms = new DescribeAlarmsCommand({ AlarmNames: ["kept-alarm"] });
      assert.equal((await new CloudWatchClient(options).send(alarms)).MetricAlarms?.[0]?.Threshold, 5);
      const role = await new IAMClient(options).send(new GetRoleCommand({ RoleName: "kept-role" }));
      assert.match(role.Role?.AssumeRolePolicyDocument ?? "", /sagemaker\.amazonaws\.com/);
    } finally {
      child.kill();
      await ended;
    }
  }
});

test("galatea up over a directory of a newer release names that release and what to do, and changes no record", async () => {
  const data = await unpacked("0.1.0.tar.gz");
  await writeFile(join(data, "format.json"), `{"format":1000,"release":"9.8.7"}\n`);
  const records = await readFile(join(data, "records/galatea.db"));
  const { status, stderr } = spawnSync(process.execPath, words(data), { encoding: "utf8" });
  assert.equal(status, 1);
  assert.match(
    stderr,
    /^galatea up: the data directory '\S+' has format 1000 since Galatea 9\.8\.7 opened it, .*: start Galatea 9\.8\.7 or newer, or choose another directory with --data$/m,
  );
  assert.deepEqual(await readFile(join(data, "records/galatea.db")), records);
});
