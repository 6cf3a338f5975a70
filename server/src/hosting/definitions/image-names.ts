/** The built-in containers an image name may stand for. */
export type BuiltInRuntime = "tritonserver";

/** Repository name prefix to runtime; matched against the last component of the image's path. */
const runtimes: readonly { readonly repositoryPrefix: string; readonly runtime: BuiltInRuntime }[] = [
  { repositoryPrefix: "sagemaker-tritonserver", runtime: "tritonserver" },
];

/**
 * `{account}.dkr.ecr.{region}.{suffix}/sagemaker-tritonserver:23.03-py3` is our server whatever the account, region and tag.
 * Null for an image that only a container engine could run.
 */
export function resolveImage(image: string): BuiltInRuntime | null {
  const withoutDigest = image.split("@")[0] ?? "";
  const repository = withoutDigest.slice(withoutDigest.lastIndexOf("/") + 1).split(":")[0] ?? "";
  const row = runtimes.find(({ repositoryPrefix }) => repository.startsWith(repositoryPrefix));
  return row?.runtime ?? null;
}

export function unsupportedImageText(image: string): string {
  return (
    `The image ${image} cannot be run here: images named sagemaker-tritonserver* are served by the built-in ` +
    "inference server, other images need a container engine, which this platform does not use yet."
  );
}
