/** Tests the commands that show and change a running platform, each as a separate process. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  CloudWatchLogsClient,
  CreateLogGroupCommand,
  CreateLogStreamCommand,
  DescribeLogGroupsCommand,
  PutLogEventsCommand,
} from "@aws-sdk/client-cloudwatch-logs";
import { CreateModelCommand } from "@aws-sdk/client-sagemaker";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { clientOf, galateaAlone, image, RunningPlatform, serveNothing } from "./running-platform-fixture.ts";

let platform: RunningPlatform;

before(async () => {
  platform = await RunningPlatform.open();
  await platform.createEndpoint("mine");
  await platform.createEndpoint("broken", { isBroken: true });
  await eventually(() => /'mine' is InService/.test(platform.stderr) && /'broken' is Failed/.test(platform.stderr));
});
after(() => platform[Symbol.asyncDispose]());

test("status prints the address, the counts, and each failure with its reason", async () => {
  const { code, stdout, stderr } = await platform.galatea("status");
  assert.deepEqual([code, stderr], [0, ""]);
  const lines = stdout.split("\n");
  assert.match(lines[0] ?? "", new RegExp(`^Galatea 0\\.\\S+ is up at ${platform.url} \\(process \\d+\\)$`));
  assert.match(lines[1] ?? "", /^ {2}data: \//);
  assert.deepEqual(lines.slice(2, 6), [
    "  endpoints: 1 Failed, 1 InService",
    "  inference components: none",
    "  transform jobs: none",
    "",
  ]);
  assert.match(lines[6] ?? "", /^KIND {6}NAME {4}STATUS {2}REASON$/);
  assert.match(lines[7] ?? "", /^endpoint {2}broken {2}Failed {2}.*absent\.tar\.gz/);
  const { counts, failures } = JSON.parse((await platform.galatea("status", "--json")).stdout) as {
    readonly counts: object;
    readonly failures: readonly { readonly name: string }[];
  };
  assert.deepEqual(counts, {
    endpoints: { Failed: 1, InService: 1 },
    "inference components": {},
    "transform jobs": {},
  });
  assert.deepEqual(
    failures.map(({ name }) => name),
    ["broken"],
  );
});

test("list prints endpoints by name, or models, as a table or as JSON", async () => {
  const { code, stdout } = await platform.galatea("list");
  assert.equal(code, 0);
  assert.match(
    stdout,
    /^NAME {4}STATUS {5}CREATED {19}REASON\nbroken {2}Failed {5}20.*absent.*\nmine {4}InService {2}20\S+Z\n$/,
  );
  const models = JSON.parse((await platform.galatea("list", "--models", "--json")).stdout) as readonly {
    name: string;
  }[];
  assert.deepEqual(
    models.map(({ name }) => name),
    ["broken", "mine"],
  );
});

test("logs prints the last lines, and with -f later lines too", async () => {
  const logs = new CloudWatchLogsClient(clientOf(platform.url));
  const location = { logGroupName: "/aws/sagemaker/Endpoints/talks", logStreamName: "v/one" };
  const say = (...messages: readonly string[]) =>
    logs.send(
      new PutLogEventsCommand({
        ...location,
        logEvents: messages.map((message) => ({ timestamp: Date.now(), message })),
      }),
    );
  await logs.send(new CreateLogGroupCommand(location));
  await logs.send(new CreateLogStreamCommand(location));
  await say("first", "second", "\u001b[31mred");
  const { code, stdout } = await platform.galatea("logs", "talks", "--lines=2");
  assert.equal(code, 0);
  assert.match(stdout, /^\S+Z v\/one second\n\S+Z v\/one \ufffd\[31mred\n$/);
  const { child, printed } = platform.start("logs", "talks", "-f");
  const closed = new Promise((resolve) => child.once("close", resolve));
  try {
    await eventually(() => printed.stdout.includes("second"));
    await say("third");
    await eventually(() => printed.stdout.includes("third"));
    assert.deepEqual(printed.stdout.match(/first|second|third/g), ["first", "second", "third"]);
  } finally {
    child.kill();
    await closed;
    logs.destroy();
  }
});

test("logs prints all streams of a job, and -f waits for the first line of an endpoint", async () => {
  const logs = new CloudWatchLogsClient(clientOf(platform.url));
  const say = async (logGroupName: string, logStreamName: string, message: string) => {
    const location = { logGroupName, logStreamName };
    await logs.send(new CreateLogStreamCommand(location));
    await logs.send(new PutLogEventsCommand({ ...location, logEvents: [{ timestamp: Date.now(), message }] }));
  };
  const jobs = "/aws/sagemaker/TransformJobs";
  await logs.send(new CreateLogGroupCommand({ logGroupName: jobs }));
  await say(jobs, "job/i-1", "of the job");
  await say(jobs, "job-2/i-1", "of another job");
  assert.match((await platform.galatea("logs", "job")).stdout, /^\S+Z job\/i-1 of the job\n$/);
  const silent = await platform.galatea("logs", "broken");
  assert.deepEqual([silent.code, silent.stderr], [1, "galatea logs: endpoint 'broken' has written no lines yet\n"]);
  const { child, printed } = platform.start("logs", "broken", "-f");
  const closed = new Promise((resolve) => child.once("close", resolve));
  try {
    const group = "/aws/sagemaker/Endpoints/broken";
    await eventually(async () => {
      const { logGroups = [] } = await logs.send(new DescribeLogGroupsCommand({ logGroupNamePrefix: group }));
      return logGroups.length > 0;
    });
    await say(group, "v/i-1", "its first line");
    await eventually(() => printed.stdout.includes(" v/i-1 its first line\n"));
  } finally {
    child.kill();
    await closed;
    logs.destroy();
  }
});

test("a listing reads every page", async () => {
  for (let count = 0; count < 101; count++) {
    const name = `many-${String(count).padStart(3, "0")}`;
    await platform.sagemaker.send(new CreateModelCommand({ ModelName: name, PrimaryContainer: { Image: image } }));
  }
  const { stdout } = await platform.galatea("list", "--models");
  assert.deepEqual(
    stdout.match(/many-\d+/g),
    Array.from({ length: 101 }, (_, count) => `many-${String(count).padStart(3, "0")}`),
  );
});

test("delete returns once the endpoint is deleted", async () => {
  await platform.createEndpoint("short-lived");
  const { code, stdout } = await platform.galatea("delete", "short-lived");
  assert.deepEqual([code, stdout], [0, "endpoint 'short-lived' is deleted\n"]);
  assert.doesNotMatch((await platform.galatea("list")).stdout, /short-lived/);
});

test("an unknown name is rejected with a similar existing one", async () => {
  for (const command of ["delete", "logs"]) {
    const { code, stdout, stderr } = await platform.galatea(command, "minne");
    assert.deepEqual([code, stdout], [1, ""]);
    const what = command === "delete" ? "endpoint" : "endpoint, inference component, or transform job";
    assert.equal(stderr, `galatea ${command}: there is no ${what} 'minne', did you mean mine?\n`);
  }
});

test("without a running platform each command reports the address it tried and what to do", async () => {
  for (const words of [["status"], ["list"], ["logs", "mine"], ["delete", "mine"]]) {
    const { code, stdout, stderr } = await galateaAlone(...words);
    assert.deepEqual([code, stdout], [1, ""]);
    assert.match(
      stderr,
      new RegExp(
        `^galatea ${words[0]}: no platform uses '/\\S+/galatea': start one with \`galatea up\`, or select one with --data or --port\n$`,
      ),
    );
  }
  const { code, stderr } = await galateaAlone("delete");
  assert.deepEqual([code, stderr.split("\n")[0]], [1, "galatea delete needs a name; `galatea list` prints the names"]);
});

test("status of a server's address lists its models; of another address it reports what is wrong", async () => {
  let url: string;
  {
    await using server = await serveNothing();
    url = server.url;
    const { code, stdout } = await galateaAlone("status", `--url=${url.slice("http://".length)}`);
    assert.equal(code, 0);
    assert.match(stdout, new RegExp(`^\\S+ \\S+ is up at ${url}\n {2}no models\n$`));
  }
  const removed = await galateaAlone("status", `--url=${url}`);
  assert.deepEqual([removed.code, removed.stdout], [1, ""]);
  assert.match(removed.stderr, /^galatea status: no server responds at http:\S+: /);
  const other = await galateaAlone("status", `--url=${platform.url}`);
  assert.match(other.stderr, /^galatea status: http:\S+ responded with 403: it is not a `galatea serve`\n$/);
});
