import { environmentVariableError, resolveImage, unsupportedImageText, validationError } from "@galatea/hosting";

/** The format of a Docker image name, with tag and digest. */
const imageName = /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$/;

/**
 * Throws for an image that the platform cannot run. `runsImages`: whether the platform runs images other than the
 * built-in ones.
 */
export function checkImage(image: string, runsImages: boolean): void {
  if (resolveImage(image) !== null) return;
  if (!runsImages) throw validationError(unsupportedImageText(image));
  if (!imageName.test(image))
    throw validationError(`The image ${image} has no valid name, such as registry.example.com/churn:3.`);
}

/** Throws for a variable that a container's environment must not contain. */
export function checkVariable(name: string, value: string, image: string | null): void {
  const refusal = environmentVariableError(name, value, image);
  if (refusal !== null) throw validationError(refusal);
}
