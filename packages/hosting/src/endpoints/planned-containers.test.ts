import assert from "node:assert/strict";
import { test } from "node:test";
import type { ContainerDefinition, ModelContainers } from "../definitions/index.ts";
import { planContainers, divideFairly } from "./planned-containers.ts";

const gibi = 2 ** 30;

function planned(containers: readonly ContainerDefinition[], executionMode: "Serial" | "Direct" = "Serial") {
  const owner = { region: "us-east-1", accountId: "000000000000" };
  const model = { name: "m", arn: "", createdMs: 0, owner, executionMode, request: {} };
  const variant = {
    VariantName: "v",
    ModelName: "m",
    InitialInstanceCount: 1,
    InstanceType: "ml.m5.large",
    InitialVariantWeight: 1,
  };
  const plan = { variant, model: { ...model, containers: containers as ModelContainers } };
  return planContainers(plan, { vcpuCount: 2, memoryBytes: 10 * gibi });
}

test("divideFairly gives equal shares and distributes what a limited container leaves", () => {
  assert.deepEqual(divideFairly(90, [Infinity, Infinity, Infinity]), [30, 30, 30]);
  assert.deepEqual(divideFairly(90, [Infinity, 10, Infinity]), [40, 10, 40]);
  assert.deepEqual(divideFairly(90, [50, 50]), [45, 45]);
  assert.deepEqual(divideFairly(90, [80, 10]), [80, 10]);
  assert.deepEqual(divideFairly(90, [0, Infinity, 0]), [0, 90, 0]);
});

test("containers share the instance's memory, and multi-model containers its disk", () => {
  const many = { Mode: "MultiModel" } as const;
  const bytes = (containers: readonly ContainerDefinition[]) =>
    planned(containers).map(({ modelMemoryBytes, modelDiskBytes }) => [modelMemoryBytes / gibi, modelDiskBytes / gibi]);
  assert.deepEqual(bytes([{}]), [[9, 0]]);
  assert.deepEqual(bytes([{}, many, {}]), [
    [3, 0],
    [3, 30],
    [3, 0],
  ]);
  const modest = { Environment: { GALATEA_MODEL_MEMORY_BYTES: String(gibi) } };
  assert.deepEqual(bytes([modest, many]), [
    [1, 0],
    [8, 30],
  ]);
  const greedy = { Environment: { GALATEA_MODEL_MEMORY_BYTES: String(100 * gibi) } };
  assert.deepEqual(bytes([greedy, {}]), [
    [4.5, 0],
    [4.5, 0],
  ]);
});

test('a container\'s name is its ContainerHostname, else its position, or "primary" for a single one', () => {
  const names = (...input: Parameters<typeof planned>) => planned(...input).map(({ name }) => name);
  assert.deepEqual(names([{ ContainerHostname: "alone" }]), ["primary"]);
  assert.deepEqual(names([{ ContainerHostname: "alone" }], "Direct"), ["alone"]);
  assert.deepEqual(names([{}, {}]), ["container-1", "container-2"]);
  assert.deepEqual(names([{ ContainerHostname: "a" }, { ContainerHostname: "b" }]), ["a", "b"]);
});
