/** Python packages for models behind endpoints: those of the platform's interpreter, and those that CreateModel's Environment requests. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { cacheDirectory, ensureEnvironment } from "../environments/index.ts";
import { faultyRequest } from "./http-client.ts";
import { faultyConfig } from "./faulty-model.ts";
import { bucket, createEndpoint, endpointIs, invoke, Platform } from "./platform.ts";
import { tarball } from "./tarball.ts";

/** A package with one module, whose version is unique to this test run, so that it is not installed yet. */
const version = `1.${process.pid}.${Date.now()}`;
const writeWheel = `import sys, zipfile
folder, version = sys.argv[1:]
info = "galatea_probe-%s.dist-info/" % version
with zipfile.ZipFile("%s/galatea_probe-%s-py3-none-any.whl" % (folder, version), "w") as wheel:
    wheel.writestr("galatea_probe.py", "version = '%s'" % version)
    wheel.writestr("galatea_probe.pth", "import os; os.environ['STARTED_AS'] = str(os.getuid())")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: galatea-probe\\nVersion: %s\\n" % version)
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", "galatea_probe.py,,\\ngalatea_probe.pth,,\\n%sMETADATA,,\\n%sWHEEL,,\\n%sRECORD,,\\n" % (info, info, info))
`;

/** A model whose TEXT is the result of `told()`. */
const modelTelling = (body: string) => `import json, os
import numpy as np
import triton_python_backend_utils as pb_utils

${body}

class TritonPythonModel:
    def execute(self, requests):
        text = np.array([json.dumps(told())], np.object_)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("TEXT", text)]) for _ in requests]
`;

async function upload(platform: Platform, program: string): Promise<string> {
  const Body = tarball([
    { path: "m/config.pbtxt", body: faultyConfig },
    { path: "m/1/model.py", body: program },
  ]);
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "single.tar.gz", Body }));
  return `s3://${bucket}/single.tar.gz`;
}

async function told(platform: Platform, name: string): Promise<Readonly<Record<string, unknown>>> {
  const { outputs } = JSON.parse(await invoke(platform, name, null, faultyRequest("tell"))) as {
    outputs: { data: string[] }[];
  };
  return JSON.parse(outputs[0]?.data[0] ?? "") as Record<string, unknown>;
}

/** The environment of this run's package, which no other test requests. */
async function removeMade(data: string): Promise<void> {
  const python = join(data, "python");
  for (const name of await readdir(python)) {
    const stamp = await readFile(join(python, name, "ready"), "utf8").catch(() => "");
    if (stamp.includes(`galatea-probe==${version}`)) await rm(join(python, name), { recursive: true });
  }
}

test("a model finds the packages of its Environment, from a directory of wheels, and their code never runs as the server", async () => {
  const wheels = await mkdtemp(join(tmpdir(), "galatea-wheels-"));
  await promisify(execFile)("python3", ["-c", writeWheel, wheels, version]);
  await using platform = await Platform.open(async () => {}, { env: { PIP_FIND_LINKS: wheels } });
  try {
    const body =
      "import galatea_probe\ntold = lambda: dict(version=galatea_probe.version, started=os.environ['STARTED_AS'], now=str(os.getuid()))";
    const modelDataUrl = await upload(platform, modelTelling(body));
    const expected = `galatea-probe==${version}`;
    await createEndpoint(platform, {
      name: "packages",
      modelDataUrl,
      environment: { GALATEA_PYTHON_PACKAGES: expected },
    });
    await endpointIs(platform, "packages", "InService");
    const seen = await told(platform, "packages");
    assert.equal(seen["version"], version);
    assert.equal(seen["started"], seen["now"]);
    assert.ok(process.getuid?.() !== 0 || seen["started"] !== "0", "it started as the server's user");
  } finally {
    await removeMade(platform.workspace.data);
    await rm(wheels, { recursive: true });
  }
});

test("an owner's HOME, proxies and certificates do not select the package index: models with an equal list share the installed packages", async () => {
  const wheels = await mkdtemp(join(tmpdir(), "galatea-wheels-"));
  const own = `${version}.1`;
  await promisify(execFile)("python3", ["-c", writeWheel, wheels, own]);
  const requested: string[] = [];
  const server = createServer((request, response) => {
    requested.push(`${request.method} ${request.url}`);
    response.writeHead(404).end();
  });
  server.on("connect", (request, socket) => {
    requested.push(`CONNECT ${request.url}`);
    socket.destroy();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const home = join(wheels, "home");
  for (const [path, text] of [
    [".config/pip/pip.conf", `[global]\nextra-index-url = ${url}\n`],
    [".config/uv/uv.toml", `extra-index-url = ["${url}"]\n`],
  ] as const) {
    await mkdir(dirname(join(home, path)), { recursive: true });
    await writeFile(join(home, path), text);
  }
  await using platform = await Platform.open(async () => {}, { env: { PIP_FIND_LINKS: wheels } });
  try {
    const expected = `galatea-probe==${own}`;
    await createEndpoint(platform, {
      name: "choosing",
      modelDataUrl: await upload(
        platform,
        modelTelling(
          "import galatea_probe\ntold = lambda: dict(version=galatea_probe.version, pip=[name for name in os.environ if name[:4] in ('PIP_', 'GALA')])",
        ),
      ),
      environment: {
        GALATEA_PYTHON_PACKAGES: expected,
        HOME: home,
        HTTP_PROXY: url,
        http_proxy: url,
        HTTPS_PROXY: url,
        https_proxy: url,
        NO_PROXY: "",
        no_proxy: "",
        SSL_CERT_FILE: join(wheels, "none.pem"),
      },
    });
    await endpointIs(platform, "choosing", "InService");
    const { version: found, pip } = await told(platform, "choosing");
    assert.deepEqual([found, requested], [own, []]);
    assert.deepEqual(pip, ["GALATEA_PYTHON_PACKAGES"]);
  } finally {
    await removeMade(platform.workspace.data);
    server.close();
    await rm(wheels, { recursive: true });
  }
});

test("an endpoint whose packages cannot be installed fails with pip's reason", async () => {
  await using platform = await Platform.open(async () => {}, { env: { PIP_NO_INDEX: "1" } });
  const modelDataUrl = await upload(platform, modelTelling("told = dict"));
  const environment = { GALATEA_PYTHON_PACKAGES: "galatea-probe==9.9" };
  await createEndpoint(platform, { name: "none", modelDataUrl, environment });
  await assert.rejects(
    endpointIs(platform, "none", "InService"),
    /No matching distribution found for galatea-probe==9\.9/,
  );
});

test("boto3 in a model with the interpreter of `up --python` reaches the platform's store with the instance's credentials", async () => {
  const { python } = await ensureEnvironment(cacheDirectory(process.env), "clients");
  await using platform = await Platform.open(async () => {}, { verified: true, flags: ["--python", python] });
  const body = `import boto3

def told():
    s3 = boto3.client("s3")
    s3.put_object(Bucket="${bucket}", Key="written/one", Body=b"by the model")
    return {"read": s3.get_object(Bucket="${bucket}", Key="input")["Body"].read().decode()}`;
  await platform.s3.send(new PutObjectCommand({ Bucket: bucket, Key: "input", Body: "for the model" }));
  const environment = { GALATEA_OBJECT_PREFIXES: `s3://${bucket}/written/` };
  await createEndpoint(platform, {
    name: "boto3",
    modelDataUrl: await upload(platform, modelTelling(body)),
    environment,
  });
  await endpointIs(platform, "boto3", "InService");
  assert.deepEqual(await told(platform, "boto3"), { read: "for the model" });
  const written = await platform.s3.send(new GetObjectCommand({ Bucket: bucket, Key: "written/one" }));
  assert.equal(await written.Body?.transformToString(), "by the model");
});
