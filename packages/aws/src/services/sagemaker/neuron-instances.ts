import { validationError } from "@galatea/hosting";

/** Instance types whose accelerators run only models that AWS Neuron has compiled. */
const neuronInstances = /^ml\.(inf|trn)\d/;

/** Throws ValidationException for an instance type with a Neuron accelerator. */
export function rejectNeuronInstance(instanceType: string): void {
  if (!neuronInstances.test(instanceType)) return;
  throw validationError(
    `${instanceType} is not supported by this platform: its accelerators run only models compiled by AWS Neuron. Deploy the ` +
      "model as it was before it was compiled, on another instance type.",
  );
}
