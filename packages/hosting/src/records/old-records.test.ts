/** A state directory of a release whose models had one container opens, and says the same. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { ByteBudget, createLogger, silentLogger, systemClock } from "@galatea/base";
import { routesOf, type EndpointRecord } from "../endpoints/endpoint-record.ts";
import type { FleetOptions } from "../endpoints/fleet-options.ts";
import { Hosting } from "../hosting.ts";
import { nodeWith } from "../nodes/node-fixture.ts";
import { hostingLimits } from "../capacity/reservations.ts";
import { recordMigrations } from "./record-migrations.ts";
import { openRecords, recordsDefaults } from "./records.ts";
import { openDocuments } from "./sqlite-documents.ts";

const root = mkdtempSync(join(tmpdir(), "galatea-old-records-"));
after(() => rmSync(root, { recursive: true, force: true }));

const oldMigrations = new Set(["hosting-1", "metrics-1", "hosting-2"]);
const owner = { accountId: "000000000000", region: "us-east-1" };
const arn = (what: string) => `arn:aws:sagemaker:us-east-1:000000000000:${what}`;
const container = { Image: "sagemaker-tritonserver:23.03-py3", ModelDataUrl: "s3://models/one.tar.gz" };
const model = { name: "One", arn: arn("model/one"), createdMs: 1000, owner, container, request: { ModelName: "One" } };
const variant = {
  VariantName: "all",
  ModelName: "One",
  InitialInstanceCount: 1,
  InstanceType: "ml.m5.xlarge",
  InitialVariantWeight: 1,
};
const plans = [{ variant, model }];
const endpoint = (name: string, state: object) => ({
  name,
  arn: arn(`endpoint/${name}`),
  createdMs: 2000,
  modifiedMs: 3000,
  owner,
  state,
  configName: "conf",
  plans,
});

/** What the release before wrote: its tables by its own migrations, and rows of each kind. */
async function writeOldDatabase(path: string): Promise<void> {
  const migrations = recordMigrations.filter(({ id }) => oldMigrations.has(id));
  assert.equal(migrations.length, oldMigrations.size);
  await using records = await openRecords({ ...recordsDefaults, path, migrations, logger: silentLogger });
  const config = { name: "conf", arn: arn("endpoint-config/conf"), createdMs: 1500, owner, variants: [variant] };
  const rows = [
    ["model", "one", JSON.stringify(model)],
    ["model", "none", JSON.stringify({ name: "none" })],
    ["model", "torn", '{"name":"to'],
    ["endpoint-config", "conf", JSON.stringify({ ...config, request: {} })],
    ["endpoint", "failed", JSON.stringify(endpoint("failed", { at: "Failed", reason: "it did not start" }))],
    ["endpoint", "moving", JSON.stringify(endpoint("moving", { at: "Updating", next: { configName: "conf", plans } }))],
    ["tags", arn("model/one"), JSON.stringify([{ Key: "team", Value: "vision" }])],
    ["role", "worker", JSON.stringify({ name: "Worker" })],
  ];
  await records.write(rows.map((values) => ({ sql: "INSERT INTO hosting_record VALUES (?, ?, ?)", values })));
}

const everything = {
  isDescending: true,
  nameContains: "",
  created: { fromMs: null, untilMs: null },
  modified: { fromMs: null, untilMs: null },
  status: null,
  after: null,
  limit: 10,
} as const;

test("records of models with one container are read as models with a list of them", async () => {
  const path = join(root, "galatea.db");
  await writeOldDatabase(path);
  const told: string[] = [];
  const logger = createLogger((_, message, fields) => told.push(`${message} ${JSON.stringify(fields)}`));
  await using documents = await openDocuments({ path, logger });
  await using hosting = await Hosting.open({
    documents,
    limits: hostingLimits,
    nodes: [nodeWith()],
    random: Math.random,
    alarmState: () => null,
    // Nothing is started.
    fleet: { clock: systemClock, logger, requestMemory: new ByteBudget(1) } as unknown as FleetOptions,
  });
  const { container: _, ...rest } = model;
  const current = { ...rest, containers: [container], executionMode: "Serial" };
  assert.deepEqual(await hosting.catalogue.model("ONE", owner), current);
  const plansOf = ({ generations }: EndpointRecord) =>
    generations.map(({ configName, variants }) => [configName, variants.map(({ plan }) => plan)]);
  const own = ["conf", [{ variant, model: current }]];
  assert.deepEqual(plansOf(await hosting.endpoints.find("failed", owner)), [own]);
  const moving = await hosting.endpoints.find("moving", owner);
  assert.ok(moving.state.at === "Updating" && moving.state.change.steps.length === 1);
  assert.deepEqual(plansOf(moving), [own, own]);
  assert.deepEqual(
    routesOf(moving).map(({ generation, weight }) => [generation, weight]),
    [[1, 1]],
  );
  assert.equal((await hosting.catalogue.config("conf", owner)).createdMs, 1500);
  await assert.rejects(hosting.catalogue.model("none", owner), { code: "ValidationException" });
  await assert.rejects(hosting.catalogue.model("torn", owner), { code: "ValidationException" });
  assert.deepEqual(await hosting.catalogue.tags(arn("model/one")), [{ Key: "team", Value: "vision" }]);
  for (const sortBy of ["created", "name"] as const) {
    const { page, hasMore } = await hosting.catalogue.listModels({ ...everything, sortBy }, () => Promise.resolve());
    assert.deepEqual([page, hasMore], [[current], false]);
  }
  const { page } = await hosting.endpoints.list({ ...everything, sortBy: "status" }, () => Promise.resolve());
  assert.deepEqual(
    page.map(({ name }) => name),
    ["moving", "failed"],
  );
  assert.equal(told.length, 2, told.join("\n"));
  assert.match(told.join("\n"), /damaged and left out .*"key":"none".*\n.*damaged and left out .*"key":"torn"/);
});
