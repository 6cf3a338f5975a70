import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CloudWatchClient, PutMetricAlarmCommand } from "@aws-sdk/client-cloudwatch";
import { CreateRoleCommand, IAMClient } from "@aws-sdk/client-iam";
import { CreateEndpointConfigCommand, CreateModelCommand, SageMakerClient } from "@aws-sdk/client-sagemaker";
import { serverVersion } from "../packages/galatea/src/app/index.ts";

/**
 * `node scripts/keep-data.ts`: writes a minimal set of this release's records to
 * packages/galatea/test/kept-data/<version>.tar.gz, which later releases have to open. Run it once before each release;
 * the file of a release is never written again.
 */
const galatea = join(import.meta.dirname, "../packages/galatea");
const data = await mkdtemp(join(tmpdir(), "galatea-kept-"));
const words = [join(galatea, "src/main.ts"), "up", "--open", "--port=0", `--data=${data}`];
const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
const ended = once(child, "exit");
let text = "";
for await (const chunk of child.stdout) if (/next:/.test((text += String(chunk)))) break;
await makeRecords(/http:\S+/.exec(text)?.[0] ?? "");
child.kill();
await ended;
const archive = join(galatea, `test/kept-data/${serverVersion}.tar.gz`);
const kept = ["format.json", "records/galatea.db", "records/galatea.db.commits"];
execFileSync("tar", ["-czf", archive, "--owner=0", "--group=0", "-C", data, ...kept]);
await rm(data, { recursive: true });

/** `packages/galatea/test/data-formats.test.ts` expects these records. */
async function makeRecords(endpoint: string): Promise<void> {
  const options = { endpoint, region: "us-east-1", credentials: { accessKeyId: "any", secretAccessKey: "any" } };
  const sagemaker = new SageMakerClient(options);
  await sagemaker.send(
    new CreateModelCommand({
      ModelName: "kept-model",
      ExecutionRoleArn: "arn:aws:iam::000000000000:role/kept-role",
      PrimaryContainer: {
        Image: "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3",
        ModelDataUrl: "s3://kept/models/",
        Mode: "MultiModel",
      },
    }),
  );
  const variant = { VariantName: "AllTraffic", ModelName: "kept-model", InstanceType: "ml.t2.medium" as const };
  await sagemaker.send(
    new CreateEndpointConfigCommand({
      EndpointConfigName: "kept-configuration",
      ProductionVariants: [{ ...variant, InitialInstanceCount: 2, InitialVariantWeight: 1 }],
    }),
  );
  await new CloudWatchClient(options).send(
    new PutMetricAlarmCommand({
      AlarmName: "kept-alarm",
      Namespace: "AWS/SageMaker",
      MetricName: "Invocations",
      Statistic: "Sum",
      Period: 60,
      EvaluationPeriods: 3,
      Threshold: 5,
      ComparisonOperator: "GreaterThanThreshold",
    }),
  );
  const Principal = { Service: "sagemaker.amazonaws.com" };
  const statement = { Effect: "Allow", Principal, Action: "sts:AssumeRole" };
  const AssumeRolePolicyDocument = JSON.stringify({ Version: "2012-10-17", Statement: [statement] });
  await new IAMClient(options).send(new CreateRoleCommand({ RoleName: "kept-role", AssumeRolePolicyDocument }));
}
