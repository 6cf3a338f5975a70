import assert from "node:assert/strict";
import { test } from "node:test";
import type { SagemakerInputs } from "../../spec/gen/sagemaker.ts";
import { checkedContainers } from "./model-containers.ts";

type Input = Omit<SagemakerInputs["CreateModelInput"], "ModelName">;
type Container = SagemakerInputs["ContainerDefinition"];

const Image = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:23.03-py3";
const named = (name: string, more: Container = {}): Container => ({ Image, ContainerHostname: name, ...more });
const checked = (input: Input) => checkedContainers({ ModelName: "m", ...input }, { runsImages: false });
const refused = (input: Input, message: string | RegExp) =>
  assert.throws(() => checked(input), { code: "ValidationException", message });
const direct = { InferenceExecutionConfig: { Mode: "Direct" } } as const;

test("a pipeline's containers keep their order and all of their members", () => {
  const containers = [
    named("a", { ModelDataUrl: "s3://b/a.tar.gz", Environment: { A: "1" } }),
    named("b", { Mode: "MultiModel", ModelDataUrl: "s3://b/many/" }),
    named("c"),
  ];
  assert.deepEqual(checked({ Containers: containers }), containers);
  assert.deepEqual(checked({ Containers: containers, InferenceExecutionConfig: { Mode: "Serial" } }), containers);
  const without = [{ Image }, { Image, Mode: "MultiModel", ModelDataUrl: "s3://b/many/" } as const];
  assert.deepEqual(checked({ Containers: without }), without);
  assert.deepEqual(checked({ Containers: containers, ...direct }), containers);
  assert.deepEqual(checked({ PrimaryContainer: { Image }, Containers: [] }), [{ Image }]);
});

test("CreateModel requires exactly one of PrimaryContainer and Containers", () => {
  refused({}, "Either PrimaryContainer or Containers must be given.");
  refused({ Containers: [] }, "Either PrimaryContainer or Containers must be given.");
  refused(
    { PrimaryContainer: { Image }, Containers: [{ Image }] },
    "Both PrimaryContainer and Containers were given: exactly one of them is needed.",
  );
});

test("either all containers of a pipeline have distinct names or none has; Direct mode requires names", () => {
  const some = "ContainerHostname must be given for every container of a pipeline, or for none of them.";
  refused({ Containers: [named("a"), { Image }] }, some);
  refused({ Containers: [{ Image }, named("b")] }, some);
  refused({ Containers: [named("a"), named("b"), named("a")] }, /^The ContainerHostname "a" was non-unique within/);
  const all = "ContainerHostname must be given for every container of a model with the Mode Direct.";
  refused({ Containers: [{ Image }, { Image }], ...direct }, all);
  refused({ Containers: [named("a"), { Image }], ...direct }, all);
  refused(
    { PrimaryContainer: named("a"), ...direct },
    /^InferenceExecutionConfig with the Mode Direct needs Containers/,
  );
});

test("a pipeline may have one multi-model container; in Direct mode every container may be one", () => {
  const many = { Mode: "MultiModel", ModelDataUrl: "s3://b/many/" } as const;
  const containers = [named("a", many), named("b", many)];
  refused(
    { Containers: containers },
    "More than one container in MultiModel mode is not supported with inference pipeline.",
  );
  assert.equal(checked({ Containers: containers, ...direct }).length, 2);
});

test("with a container engine, other images are accepted, with variables that would configure our own server; their names are Docker's", () => {
  const taken = (container: Container) =>
    checkedContainers({ ModelName: "m", PrimaryContainer: container }, { runsImages: true });
  const Environment = { LD_LIBRARY_PATH: "/opt/lib", NODE_OPTIONS: "--max-old-space-size=100", PATH: "/bin" };
  for (const name of ["mine:1", "000000000000.dkr.ecr.us-east-1.amazonaws.com/team/churn:3", "churn@sha256:ab"]) {
    assert.deepEqual(taken({ Image: name, Environment }), [{ Image: name, Environment }]);
  }
  const invalid = { code: "ValidationException" };
  for (const name of ["../x", "a?b", "-x", "a b"]) assert.throws(() => taken({ Image: name }), invalid, name);
  assert.throws(() => taken({ Image, Environment }), invalid, "one of ours");
  const port = { SAGEMAKER_BIND_TO_PORT: "9000" };
  assert.throws(() => taken({ Image: "mine:1", Environment: port }), {
    message:
      "Environment variable SAGEMAKER_BIND_TO_PORT is not allowed: the platform calls every container at port 8080.",
  });
});

test("every container is validated, and the error names the container by its number", () => {
  refused({ Containers: [{ Image }, {}] }, "Image must be given for the container 2.");
  refused({ PrimaryContainer: {} }, "Image must be given for the container.");
  refused({ Containers: [{ Image }, { Image: "mine:1" }] }, /^The image mine:1 cannot be run here/);
  refused({ Containers: [{ Image }, { Image, ModelPackageName: "p" }] }, /ModelPackageName/);
  refused({ Containers: [{ Image }, { Image, Mode: "MultiModel" }] }, /^ModelDataUrl, the prefix of the models/);
  refused(
    { Containers: [{ Image }, { Image, Environment: { LD_PRELOAD: "x" } }] },
    /^Environment variable LD_PRELOAD is not allowed/,
  );
});

test("the variables of all containers together are limited to 32,768 bytes", () => {
  const half = {
    Environment: Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`A${i + 10}`, "x".repeat(1000)])),
  };
  assert.equal(checked({ Containers: [{ Image, ...half }] }).length, 1);
  refused(
    {
      Containers: [
        { Image, ...half },
        { Image, ...half },
      ],
    },
    "Environment is larger than 32768 bytes.",
  );
});
