import { environmentVariableError, resolveImage, unsupportedImageText, validationError } from "@galatea/hosting";

/** Docker's form of a name with tag and digest. */
const imageName = /^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$/;

/** Throws for an image that the platform cannot run. `runsImages`: whether images beside the built-in ones run. */
export function checkImage(image: string, runsImages: boolean): void {
  if (resolveImage(image) !== null) return;
  if (!runsImages) throw validationError(unsupportedImageText(image));
  if (!imageName.test(image))
    throw validationError(`The image ${image} has no valid name, such as registry.example.com/churn:3.`);
}

/** Throws for a variable that the container's environment may not have. */
export function checkVariable(name: string, value: string, image: string | null): void {
  const refusal = environmentVariableError(name, value, image);
  if (refusal !== null) throw validationError(refusal);
}
