import { invalid } from "@galatea/hosting";

/** Instances whose accelerators run what AWS Neuron has compiled for them, and nothing else. */
const neuronInstances = /^ml\.(inf|trn)\d/;

/** Throws ValidationException. */
export function refuseNeuron(instanceType: string): void {
  if (!neuronInstances.test(instanceType)) return;
  throw invalid(
    `${instanceType} is not supported by this platform: its accelerators run models compiled by AWS Neuron and no others. Deploy the ` +
      "model as it was before it was compiled, on another instance type.",
  );
}
