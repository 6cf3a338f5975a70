import { assert } from "@galatea/base";
import type { ModelledService } from "./service-row.ts";
import { validateInput } from "./validate.ts";

/**
 * Checks JSON that was not received as a request, such as a file, as the operation's input. Throws AwsError with the
 * service's messages. After the check, the value is a valid input of the operation.
 */
export function checkInput({ model, validationCodes }: ModelledService, operation: string, value: object): void {
  const input = model.operations[operation]?.input;
  assert(input !== undefined, `${model.service} has no operation ${operation} with an input`);
  validateInput(model, input, value, validationCodes.json);
}
