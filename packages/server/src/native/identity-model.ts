/** The smallest ONNX model: y = Identity(x), both tensors of one FLOAT (opset 13). */
export const identityModel = Buffer.from(
  "CAgSB2dhbGF0ZWE6RQoeCgF4EgF5GgpJZGVudGl0eV8wIghJZGVudGl0eToAEgFpWg8KAXgSCgoICAESBAoCCAFiDwoBeRIKCggIARIECgIIAUIECgAQDQ==",
  "base64",
);
