import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { systemClock } from "../../base/index.ts";
import { modelHostContract } from "../../hosting/contracts/index.ts";
import type { InstanceAddress } from "../../hosting/index.ts";
import { ProcessHost } from "../index.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-host-"));
after(() => rmSync(root, { recursive: true, force: true }));

const program = join(root, "container.mjs");
writeFileSync(
  program,
  `import { createServer } from "node:http";
  const [behaviour, socketPath] = process.argv.slice(2);
  if (behaviour === "fail") {
    console.log("starting");
    console.error("no such model");
    process.exitCode = 3;
  } else {
    if (behaviour === "hang") process.on("SIGTERM", () => {});
    else process.on("SIGTERM", () => process.exit(0));
    createServer((_, response) => response.end()).listen(socketPath);
  }`,
);
let count = 0;

const requestPlace = (address: InstanceAddress) =>
  address.kind === "socket" ? { socketPath: address.path } : { host: address.host, port: address.port };

modelHostContract("process host", async () => ({
  host: new ProcessHost({
    commandFor: (spec, socketPath) => ({
      command: process.execPath,
      args: [program, spec.environment.BEHAVIOUR ?? "", socketPath],
      env: { ...spec.environment },
    }),
    socketsDirectory: join(root, "s"),
    clock: systemClock,
  }),
  specFor: (behaviour, output) => ({
    instanceId: `i-${(count += 1)}`,
    title: "endpoint/variant/i-1",
    runtime: "tritonserver",
    mlRoot: root,
    environment: { BEHAVIOUR: behaviour },
    budget: { vcpuCount: 1, memoryBytes: 2 ** 30 },
    modelMemoryBytes: 2 ** 29,
    output,
  }),
  ping: (address) =>
    new Promise((resolve) => {
      const asked = request({ ...requestPlace(address), path: "/ping", agent: false }, (response) => {
        response.resume();
        resolve(response.statusCode ?? null);
      });
      asked.on("error", () => resolve(null));
      asked.end();
    }),
}));
