import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { request as ask } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { parseFlags, upFlags, upOptions } from "../../options/index.ts";
import { ByteBudget, silentLogger } from "@galatea/base";
import { dataDirectories } from "../../data-directory/index.ts";
import { platformServerLimits } from "@galatea/aws/http-server";
import { openPlatform, type Platform } from "./platform.ts";

/** All requests of these tests are unsigned, because protection from web pages must not depend on signatures. */
let root: string;
let platform: Platform;

before(async () => {
  root = await mkdtemp(join(tmpdir(), "gal-doors-"));
  platform = await openPlatform({
    ...upOptions(
      parseFlags(["--port=0", "--allowed-host=platform.example", "--allowed-origin=https://chat.example"], upFlags),
    ),
    directories: dataDirectories(root, {}),
    keys: null,
    proxySecret: "proxy-secret",
    log: silentLogger,
    environment: {},
    serverLimits: platformServerLimits,
    requestMemory: new ByteBudget(2 ** 30),
  });
  assert.equal((await send("PUT", "/bkt", {})).status, 200);
  assert.equal(
    (await send("PUT", "/bkt/page.html", { "content-type": "text/html" }, "<script>1</script>")).status,
    200,
  );
});

after(async () => {
  await platform[Symbol.asyncDispose]();
  await rm(root, { recursive: true, force: true });
});

interface ReceivedResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

function send(
  method: string,
  path: string,
  headers: Readonly<Record<string, string>>,
  body = "",
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const request = ask(`${platform.url}${path}`, { method, headers, agent: false }, (response) => {
      let text = "";
      response
        .setEncoding("utf8")
        .on("data", (chunk: string) => (text += chunk))
        .on("end", () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }));
    });
    request.once("error", reject).end(body);
  });
}

const operation = (name: string) => ({
  "content-type": "application/x-amz-json-1.1",
  "x-amz-target": `SageMaker.${name}`,
});
const evil = { origin: "http://evil.example" };
const image = "785573368785.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
const model = (environment: Readonly<Record<string, string>> = {}) =>
  JSON.stringify({
    ModelName: "m",
    ExecutionRoleArn: "arn:aws:iam::000000000000:role/r",
    PrimaryContainer: { Image: image, ModelDataUrl: "s3://bkt/m.tar.gz", Environment: environment },
  });
const createRole = new URLSearchParams({
  Action: "CreateRole",
  Version: "2010-05-08",
  RoleName: "intruder",
  AssumeRolePolicyDocument: "{}",
}).toString();
const deletion = "<Delete><Object><Key>page.html</Key></Object></Delete>";

async function models(): Promise<unknown[]> {
  const { status, body } = await send("POST", "/", operation("ListModels"), "{}");
  assert.equal(status, 200, body);
  return (JSON.parse(body) as { Models: unknown[] }).Models;
}

async function roles(): Promise<string> {
  const headers = { "content-type": "application/x-www-form-urlencoded" };
  const { status, body } = await send("POST", "/", headers, "Action=ListRoles&Version=2010-05-08");
  assert.equal(status, 200, body);
  return body;
}

test("a request with an unknown Host header (DNS rebinding) gets 403: it creates no model and reads no object", async () => {
  const headers = { ...operation("CreateModel"), host: "evil.example:8770" };
  const { status, body } = await send("POST", "/", headers, model());
  assert.equal(status, 403);
  const { __type: type, message } = JSON.parse(body) as { __type: string; message: string };
  assert.equal(type, "AccessDeniedException");
  assert.match(message, /^The host 'evil\.example:8770' is not known.*galatea up --allowed-host evil\.example$/);
  assert.deepEqual(await models(), []);
  const read = await send("GET", "/bkt/page.html", { host: "evil.example" });
  assert.equal(read.status, 403);
  assert.match(read.body, /<Code>AccessDenied<\/Code>/);
});

test("a host name of --allowed-host is accepted", async () => {
  assert.equal((await send("GET", "/bkt/page.html", { host: "Platform.Example" })).status, 200);
});

test("a GET or HEAD of a query API action, as from an image URL, gets 405 and has no effect", async () => {
  const { status, body } = await send("GET", `/?${createRole}`, {});
  assert.equal(status, 405, body);
  assert.equal((await send("HEAD", `/?${createRole}`, {})).status, 405);
  assert.doesNotMatch(await roles(), /intruder/);
});

test("a form of another site gets 403 and has no effect", async () => {
  const headers = { ...evil, "content-type": "application/x-www-form-urlencoded" };
  assert.equal((await send("POST", "/", headers, createRole)).status, 403);
  const hidden = { origin: "null", "content-type": "text/plain" };
  assert.equal((await send("POST", `/?${createRole}`, hidden, "x=y")).status, 403);
  assert.doesNotMatch(await roles(), /intruder/);
});

test("a text/plain POST of another site deletes no object", async () => {
  assert.equal((await send("POST", "/bkt?delete", { ...evil, "content-type": "text/plain" }, deletion)).status, 403);
  assert.equal((await send("GET", "/bkt/page.html", {})).status, 200);
});

test("a page of another site cannot invoke an endpoint, and gets 403 with a JSON message", async () => {
  const { status, body } = await send(
    "POST",
    "/endpoints/e/invocations",
    { ...evil, "content-type": "text/plain" },
    "",
  );
  assert.equal(status, 403);
  assert.equal(
    (JSON.parse(body) as { message: string }).message,
    "Requests from web pages of other origins are rejected.",
  );
});

test("a page of another port of this machine counts as another site", async () => {
  const headers = { ...operation("CreateModel"), "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors" };
  assert.equal((await send("POST", "/", headers, model())).status, 403);
  assert.equal((await send("PUT", "/bkt/other", { origin: "http://127.0.0.1:1" }, "x")).status, 403);
  assert.deepEqual(await models(), []);
});

test("a CORS preflight of another site gets 403 without access-control headers", async () => {
  const headers = { ...evil, "access-control-request-method": "DELETE" };
  const { status, headers: response } = await send("OPTIONS", "/bkt/page.html", headers);
  assert.equal(status, 403);
  assert.equal(response["access-control-allow-origin"], undefined);
});

test("pages of an allowed origin may use OpenAI's API and nothing else", async () => {
  const page = { origin: "https://chat.example", "sec-fetch-site": "cross-site" };
  const asks = { ...page, "access-control-request-method": "POST", "access-control-request-headers": "authorization" };
  for (const path of ["/v1/chat/completions", "/endpoints/e/openai/v1/chat/completions"]) {
    const { status, headers } = await send("OPTIONS", path, asks);
    assert.equal(status, 204);
    assert.equal(headers["access-control-allow-origin"], "https://chat.example");
    assert.equal(headers["access-control-allow-headers"], "authorization");
  }
  const listed = await send("GET", "/v1/models", page);
  assert.deepEqual([listed.status, JSON.parse(listed.body)], [200, { object: "list", data: [] }]);
  assert.equal(listed.headers["access-control-allow-origin"], "https://chat.example");
  const unknown = await send("POST", "/v1/chat/completions", page, JSON.stringify({ model: "e" }));
  assert.equal(unknown.status, 404);
  assert.equal(unknown.headers["access-control-allow-origin"], "https://chat.example");
  for (const [method, path] of [
    ["OPTIONS", "/bkt/page.html"],
    ["GET", "/bkt/page.html"],
    ["POST", "/endpoints/e/invocations"],
  ]) {
    const { status, headers } = await send(method ?? "", path ?? "", page);
    assert.deepEqual([status, headers["access-control-allow-origin"]], [403, undefined]);
  }
  const other = { ...asks, origin: "https://other.example" };
  for (const method of ["OPTIONS", "POST"]) {
    const { status, headers } = await send(method, "/v1/chat/completions", other);
    assert.deepEqual([status, headers["access-control-allow-origin"]], [403, undefined]);
  }
});

test("a stored page is served with nosniff and a sandbox policy, so that its scripts do not run", async () => {
  const { headers } = await send("GET", "/bkt/page.html", {});
  assert.equal(headers["content-type"], "text/html");
  assert.equal(headers["x-content-type-options"], "nosniff");
  assert.match(String(headers["content-security-policy"]), /^sandbox;/);
});

test("the CONNECT proxy refuses connections to other programs of this machine", async () => {
  const { hostname: host, port } = new URL(platform.url);
  const status = await new Promise((resolve, reject) => {
    const request = ask({ host, port, method: "CONNECT", path: `127.0.0.1:${port}`, agent: false });
    request.once("connect", (response, socket) => {
      socket.destroy();
      resolve(response.statusCode);
    });
    request.once("error", reject).end();
  });
  assert.equal(status, 403);
});

test("CreateModel rejects variables that would act on the server's process or open another listener", async () => {
  for (const environment of [
    { NODE_OPTIONS: "--import=data:text/javascript,1" },
    { LD_PRELOAD: "/tmp/x.so" },
    { SAGEMAKER_TRITON_ALLOW_METRICS: "true" },
  ]) {
    const { status, body } = await send("POST", "/", operation("CreateModel"), model(environment));
    assert.equal(status, 400, body);
    assert.match(
      body,
      new RegExp(`ValidationException.*Environment variable ${Object.keys(environment)[0]} is not allowed`),
    );
  }
  assert.deepEqual(await models(), []);
});
