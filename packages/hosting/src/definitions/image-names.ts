/** The built-in containers that an image name can resolve to. */
export type BuiltInRuntime =
  | "tritonserver"
  | "scikit-learn"
  | "pytorch"
  | "tensorflow-serving"
  | "linear-learner"
  | "sparkml-serving"
  | "xgboost";

/** An image that a container engine runs. */
export interface EngineImage {
  /** The name in CreateModel, for example `registry.example.com/team/churn:3`. */
  readonly image: string;
}

/** The program of a container: a built-in container, or an image that a container engine runs. */
export type ContainerRuntime = BuiltInRuntime | EngineImage;

interface ImageRow {
  /** Pattern for the repository name of an image: the last path component, without tag and digest. */
  readonly repository: RegExp;
  readonly runtime: BuiltInRuntime;
  /** Description in the error text that lists the supported images. */
  readonly about: string;
}

/** The supported images, with the repository names that the SageMaker SDK's `sagemaker.image_uris.retrieve` returns. */
const images: readonly ImageRow[] = [
  {
    repository: /^sagemaker-tritonserver/,
    runtime: "tritonserver",
    about: "sagemaker-tritonserver* (Triton Inference Server)",
  },
  {
    repository: /^sagemaker-scikit-learn$/,
    runtime: "scikit-learn",
    about: "sagemaker-scikit-learn (scikit-learn in script mode)",
  },
  {
    repository: /^pytorch-inference(-graviton)?$/,
    runtime: "pytorch",
    about: "pytorch-inference, pytorch-inference-graviton (PyTorch in script mode)",
  },
  {
    repository: /^(tensorflow-inference(-graviton|-arm64)?|sagemaker-tensorflow-serving)$/,
    runtime: "tensorflow-serving",
    about:
      "tensorflow-inference, tensorflow-inference-graviton, sagemaker-tensorflow-serving (SavedModels as TensorFlow Serving serves them)",
  },
  {
    repository: /^(sagemaker-)?xgboost$/,
    runtime: "xgboost",
    about: "sagemaker-xgboost, xgboost (XGBoost in algorithm mode and in script mode)",
  },
  { repository: /^linear-learner$/, runtime: "linear-learner", about: "linear-learner (Linear Learner)" },
  {
    repository: /^sagemaker-sparkml-serving$/,
    runtime: "sparkml-serving",
    about: "sagemaker-sparkml-serving (pipelines of Spark ML as MLeap bundles)",
  },
];

/**
 * Returns the built-in container that replaces an image. Any account, region and tag is accepted, for example
 * `{account}.dkr.ecr.{region}.{suffix}/sagemaker-tritonserver:23.03-py3`. Returns null for an unsupported image.
 */
export function resolveImage(image: string): BuiltInRuntime | null {
  const withoutDigest = image.split("@")[0] ?? "";
  const repository = withoutDigest.slice(withoutDigest.lastIndexOf("/") + 1).split(":")[0] ?? "";
  return images.find((row) => row.repository.test(repository))?.runtime ?? null;
}

export function unsupportedImageText(image: string): string {
  return (
    `The image ${image} cannot be run here: the platform uses no container engine and runs only its built-in containers. These replace the ` +
    `following images of any account, region and tag: ${images.map(({ about }) => about).join("; ")}. ` +
    "To run other images, install Docker or Podman on the platform's machine and start the platform with " +
    "--container-engine=unix:///var/run/docker.sock."
  );
}
