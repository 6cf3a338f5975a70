import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  DescribeMetricFiltersCommand,
  FilterLogEventsCommand,
  GetQueryResultsCommand,
  PutMetricFilterCommand,
  StartQueryCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { createCertificate } from "@galatea/base/certificates";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";

const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));

/** Writes the URL of each module that a process loads to the file that LOADED names. */
const recorder = `
  import { registerHooks } from "node:module";
  import { appendFileSync } from "node:fs";
  registerHooks({ load(url, context, next) { appendFileSync(process.env.LOADED, url + "\\n"); return next(url, context); } });
`;

const config = `backend: "python" input [ { name: "X" data_type: TYPE_FP32 dims: [ 1 ] } ] output [ { name: "Y" data_type: TYPE_FP32 dims: [ 1 ] } ]`;
const model = `
class TritonPythonModel:
    def execute(self, requests):
        return []
`;

interface Started {
  readonly child: ChildProcess;
  readonly output: string;
  /** Those of the packages of this repository, and of the clients of PostgreSQL, S3 and Kubernetes, that match. */
  loaded(path: RegExp): Promise<readonly string[]>;
  stop(): Promise<void>;
}

async function temporary(t: TestContext): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "loaded-"));
  t.after(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

/** Starts the command, and resolves when it has printed `ready`. The end of the test ends it too. */
async function started(t: TestContext, directory: string, ready: RegExp, words: readonly string[]): Promise<Started> {
  const loaded = join(directory, "loaded");
  const record = join(directory, "record.mjs");
  await writeFile(record, recorder);
  await writeFile(loaded, "");
  const child = spawn(process.execPath, ["--import", record, main, ...words], {
    env: { ...process.env, LOADED: loaded },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  const lines: string[] = [];
  for await (const line of createInterface(child.stdout)) {
    lines.push(line);
    if (ready.test(line)) break;
  }
  child.stdout.resume();
  const output = lines.join("\n");
  assert.match(output, ready);
  return {
    child,
    output,
    async loaded(path) {
      const urls = (await readFile(loaded, "utf8")).split("\n");
      return urls.filter((url) => /\/packages\/|\/node_modules\/(pg|@aws-sdk|@kubernetes)/.test(url) && path.test(url));
    },
    async stop() {
      const ended = once(child, "exit");
      child.kill("SIGTERM");
      await ended;
    },
  };
}

test("the server of an endpoint's instance loads no code of AWS, of hosting or of tools", async (t) => {
  const directory = await temporary(t);
  const files = { "models/one/config.pbtxt": config, "models/one/1/model.py": model };
  await mkdir(join(directory, "models/one/1"), { recursive: true });
  for (const [path, text] of Object.entries(files)) await writeFile(join(directory, path), text);
  const server = await started(t, directory, /ready in/, [
    "serve",
    `--model-repository=${join(directory, "models")}`,
    `--sagemaker-socket=${join(directory, "socket")}`,
    "--allow-http=false",
    "--allow-grpc=false",
    "--allow-metrics=false",
  ]);
  await server.stop();
  const backend = await server.loaded(/server\/src\/backends\/python\//);
  assert.notDeepEqual(backend, [], "the model's backend is loaded");
  assert.deepEqual(await server.loaded(/packages\/(aws|hosting|tools)\//), []);
});

test("an agent loads no code of AWS, of records, of the engine or of tools", async (t) => {
  const directory = await temporary(t);
  const { certificatePem, keyPem } = createCertificate({
    names: ["127.0.0.1"],
    notBefore: new Date(0),
    notAfter: new Date(Date.now() + 3_600_000),
  });
  await writeFile(join(directory, "cert.pem"), certificatePem);
  await writeFile(join(directory, "key.pem"), keyPem);
  const agent = await started(t, directory, /Galatea agent is ready/, [
    "agent",
    "--listen=127.0.0.1:0",
    "--objects=http://127.0.0.1:1",
    `--tls-cert=${join(directory, "cert.pem")}`,
    `--tls-key=${join(directory, "key.pem")}`,
    `--tls-ca=${join(directory, "cert.pem")}`,
    `--data=${join(directory, "data")}`,
  ]);
  await agent.stop();
  assert.notDeepEqual(await agent.loaded(/hosting\/src\/instance-agent-http\//), []);
  const foreign =
    /packages\/(aws|tools)\/|hosting\/src\/(records|store|operations|endpoints|kubernetes-host)\/|server\/src\/engine\//;
  assert.deepEqual(await agent.loaded(foreign), []);
});

const insights = /aws\/src\/(insights|services\/logs\/queries)\//;
const metricFilters = /aws\/src\/services\/logs\/metric-filters\//;
const patterns = /aws\/src\/services\/logs\/filter-patterns\//;
const topics = /aws\/src\/(topics|topic-delivery|services\/sns\/sns-operations)/;
const tools = /packages\/tools\//;
const postgres = /\/records\/postgres\/|\/node_modules\/pg/;
const kubernetes = /\/kubernetes-host\/|\/node_modules\/@kubernetes/;
const s3 = /\/objects\/s3\/|\/node_modules\/@aws-sdk/;

const openAt = /http:\/\/127\.0\.0\.1:\d+/;
const urlOf = ({ output }: Started) => openAt.exec(output)?.[0] ?? "";

function logsOf(platform: Started): CloudWatchLogsClient {
  const credentials = { accessKeyId: "a", secretAccessKey: "b" };
  return new CloudWatchLogsClient({
    endpoint: urlOf(platform),
    region: "us-east-1",
    credentials,
    disableHostPrefix: true,
  });
}

async function answerOfSns(platform: Started, members: Readonly<Record<string, string>>): Promise<string> {
  const body = new URLSearchParams({ ...members, Version: "2010-03-31" });
  return await (await fetch(urlOf(platform), { method: "POST", body })).text();
}

test("a platform loads Insights, metric filters, filter patterns and topics with the first request for each", async (t) => {
  const directory = await temporary(t);
  const words = ["up", "--open", "--port=0", `--data=${join(directory, "data")}`];
  const platform = await started(t, directory, openAt, words);
  const logs = logsOf(platform);
  await logs.send(new CreateLogGroupCommand({ logGroupName: "g" }));
  await logs.send(new FilterLogEventsCommand({ logGroupName: "g" }));
  for (const path of [insights, metricFilters, patterns, topics, tools, postgres, s3, kubernetes]) {
    assert.deepEqual(await platform.loaded(path), []);
  }

  await logs.send(new FilterLogEventsCommand({ logGroupName: "g", filterPattern: "ERROR" }));
  assert.notDeepEqual(await platform.loaded(patterns), []);

  const query = { logGroupName: "g", queryString: "fields @message", startTime: 0, endTime: 1 };
  const { queryId = "" } = await logs.send(new StartQueryCommand(query));
  await eventually(async () => (await logs.send(new GetQueryResultsCommand({ queryId }))).status === "Complete");
  assert.notDeepEqual(await platform.loaded(insights), []);

  assert.deepEqual(await platform.loaded(metricFilters), []);
  const metric = { metricName: "m", metricNamespace: "n", metricValue: "1" };
  const filter = { logGroupName: "g", filterName: "f", filterPattern: "ERROR", metricTransformations: [metric] };
  await logs.send(new PutMetricFilterCommand(filter));
  assert.notDeepEqual(await platform.loaded(metricFilters), []);

  assert.deepEqual(await platform.loaded(topics), []);
  const arn = "arn:aws:sns:us-east-1:000000000000:told";
  assert.match(await answerOfSns(platform, { Action: "CreateTopic", Name: "told" }), new RegExp(arn));
  const published = await answerOfSns(platform, { Action: "Publish", TopicArn: arn, Message: "m" });
  assert.match(published, /<MessageId>[0-9a-f-]{36}<\/MessageId>/);
  assert.notDeepEqual(await platform.loaded(topics), []);
  await platform.stop();

  // Recorded filters and topics are at work from the start.
  const next = await started(t, directory, openAt, words);
  assert.notDeepEqual(await next.loaded(metricFilters), []);
  assert.notDeepEqual(await next.loaded(topics), []);
  assert.deepEqual(await next.loaded(insights), []);
  const { metricFilters: found } = await logsOf(next).send(new DescribeMetricFiltersCommand({}));
  assert.deepEqual(
    found?.map(({ filterName }) => filterName),
    ["f"],
  );
  assert.match(await answerOfSns(next, { Action: "ListTopics" }), new RegExp(arn));
  await next.stop();
});
