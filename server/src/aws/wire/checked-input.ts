import { assert } from "../../base/index.ts";
import type { ModelledService } from "./service-row.ts";
import { validateInput } from "./validate.ts";

/** Checks JSON that did not come over the wire as an operation's input; throws AwsError in the service's sentences. */
export function checkedInput<Input>(
  { model, validationCodes }: ModelledService,
  operation: string,
  value: object,
): Input {
  const input = model.operations[operation]?.input;
  assert(input !== undefined, `${model.service} has no operation ${operation} with an input`);
  validateInput(model, input, value, validationCodes.json);
  return value as Input;
}
