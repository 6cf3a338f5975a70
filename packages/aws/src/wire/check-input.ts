import { assert } from "@galatea/base";
import type { ModelledService } from "./service-row.ts";
import { validateInput } from "./validate.ts";

/** Checks JSON that did not come over the wire: it is the operation's input afterwards. Throws AwsError in the service's sentences. */
export function checkInput({ model, validationCodes }: ModelledService, operation: string, value: object): void {
  const input = model.operations[operation]?.input;
  assert(input !== undefined, `${model.service} has no operation ${operation} with an input`);
  validateInput(model, input, value, validationCodes.json);
}
