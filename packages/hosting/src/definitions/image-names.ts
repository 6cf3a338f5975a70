/** The built-in containers that an image name may refer to: the server's kinds of containers. */
export type BuiltInRuntime =
  | "tritonserver"
  | "scikit-learn"
  | "pytorch"
  | "tensorflow-serving"
  | "linear-learner"
  | "sparkml-serving"
  | "xgboost";

interface ImageRow {
  /** Pattern of the last component of the image's path, without tag and digest. */
  readonly repository: RegExp;
  readonly runtime: BuiltInRuntime;
  /** Description in the list of known images. */
  readonly about: string;
}

/** Images with the names of the SageMaker SDK's `sagemaker.image_uris.retrieve`. */
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
 * Returns the built-in container for an image: `{account}.dkr.ecr.{region}.{suffix}/sagemaker-tritonserver:23.03-py3`
 * is this server for any account, region and tag. Null for an image that only a container engine could run.
 */
export function resolveImage(image: string): BuiltInRuntime | null {
  const withoutDigest = image.split("@")[0] ?? "";
  const repository = withoutDigest.slice(withoutDigest.lastIndexOf("/") + 1).split(":")[0] ?? "";
  return images.find((row) => row.repository.test(repository))?.runtime ?? null;
}

export function unsupportedImageText(image: string): string {
  return (
    `The image ${image} cannot be run here: other images than those of the built-in containers need a container engine, which this ` +
    `platform does not use yet. Built in, from any account and region and with any tag: ${images.map(({ about }) => about).join("; ")}.`
  );
}
