import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hosting } from "@galatea/hosting";
import type { CallContext } from "../../wire/index.ts";
import { modelOperations } from "./models.ts";

const image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:25.04-py3";

test('CreateModel rejects a badly encoded ModelDataUrl with "Could not find model data"', async () => {
  const { CreateModel } = modelOperations({} as Hosting);
  const create = (ModelDataUrl: string) =>
    CreateModel.handle({ ModelName: "m", PrimaryContainer: { Image: image, ModelDataUrl } }, {} as CallContext);
  for (const url of ["https://b.s3.amazonaws.com/%zz", "https://s3.us-east-1.amazonaws.com/b/%"]) {
    await assert.rejects(create(url), {
      code: "ValidationException",
      message: `Could not find model data at ${url}.`,
    });
  }
});
