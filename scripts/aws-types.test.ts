import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { ServiceModel } from "@galatea/aws/spec";
import { builtOperations, specFolder } from "./aws-services.ts";
import { serviceTypes } from "./aws-types.ts";

const specText = (file: string) => readFileSync(new URL(file, specFolder), "utf8");

test("the types of each AWS service are those of its published model, and the model has what the service builds", async () => {
  for (const [service, built] of await builtOperations()) {
    const model = JSON.parse(specText(`${service}.json`)) as ServiceModel;
    assert.deepEqual(Object.keys(model.operations), built, `${service}: run node scripts/aws-spec.ts`);
    assert.equal(specText(`${service}.ts`), serviceTypes(service, model), `${service}: run node scripts/aws-types.ts`);
  }
});
