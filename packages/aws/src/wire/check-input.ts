import { assert } from "@galatea/base";
import type { ModelledService } from "./service-row.ts";
import { validateInput } from "./validate.ts";

/**
 * Checks JSON from elsewhere than the wire, which is a valid input of the operation afterwards. Throws AwsError with
 * the service's messages.
 */
export function checkInput({ model, validationCodes }: ModelledService, operation: string, value: object): void {
  const input = model.operations[operation]?.input;
  assert(input !== undefined, `${model.service} has no operation ${operation} with an input`);
  validateInput(model, input, value, validationCodes.json);
}
