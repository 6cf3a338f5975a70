import { InferenceError } from "@galatea/base";
import type { BundleAttributes } from "./bundle-attributes.ts";
import { invalidBundle } from "./bundle-files.ts";
import {
  columnStep,
  doubleStep,
  inputOf,
  type StepFactory,
  outputOf,
  type StepSource,
  vectorStep,
} from "./leap-step.ts";
import {
  asDouble,
  asTextOrNull,
  asVector,
  doubleValue,
  LeapFailure,
  type LeapValue,
  textsValue,
  vectorValue,
} from "./leap-values.ts";

/** The handling of a value that a step was not trained with. `skip` fails like `error`, because a skipped row has no response. */
type HandleInvalid = "error" | "skip" | "keep";

function handleInvalidOf(attributes: BundleAttributes, otherwise: HandleInvalid = "error"): HandleInvalid {
  const text = attributes.text("handle_invalid", otherwise);
  if (text === "error" || text === "skip" || text === "keep") return text;
  throw new InferenceError("INVALID_ARG", `Invalid handler: ${text.slice(0, 100)}`);
}

export const stringIndexer: StepFactory = (source) => {
  const { attributes } = source;
  const handleInvalid = handleInvalidOf(attributes);
  const columns = portsOf(source).map(({ input, output }, index) => {
    const name = attributes.has("labels_length") ? `labels_array_${index}` : "labels";
    const labels = attributes.texts(name);
    return { input, output, invalid: labels.length, indices: new Map(labels.map((label, at) => [label, at])) };
  });
  return (row) => {
    for (const { input, output, invalid, indices } of columns) {
      const label = asTextOrNull(row.get(input));
      const found = label === null ? undefined : indices.get(label);
      if (found === undefined && handleInvalid !== "keep") {
        throw new LeapFailure(
          label === null
            ? "StringIndexer encountered NULL value. To handle NULLS, set handleInvalid to keep"
            : `Unseen label: ${label}. To handle unseen labels, set handleInvalid to keep`,
        );
      }
      row.set(output, doubleValue(found ?? invalid));
    }
  };
};

/** Returns the pairs of input and output columns: the ports `input` and `output`, or `input0` and `output0` and so on. */
function portsOf(source: StepSource): { readonly input: string; readonly output: string }[] {
  const { inputs } = source.shape;
  if (inputs.has("input")) return [{ input: inputOf(source, "input"), output: outputOf(source, "output") }];
  return Array.from({ length: inputs.size }, (_, index) => ({
    input: inputOf(source, `input${index}`),
    output: outputOf(source, `output${index}`),
  }));
}

export const reverseStringIndexer: StepFactory = (source) => {
  const labels = source.attributes.texts("labels");
  const labelOf = (index: number): string => {
    const label = labels[Math.trunc(index)];
    if (label === undefined) throw new LeapFailure(`key not found: ${Math.trunc(index)}`);
    return label;
  };
  return columnStep(source, (value): LeapValue => {
    if (value.kind === "scalar") return { kind: "scalar", base: "string", value: labelOf(asDouble(value)) };
    return textsValue(Array.from(asVector(value), labelOf));
  });
};

export const oneHotEncoder: StepFactory = (source) => {
  const { attributes } = source;
  const dropLast = attributes.boolean("drop_last", true);
  const isOld = attributes.has("size");
  const sizes = isOld ? [attributes.integer("size")] : attributes.integers("category_sizes");
  const keep = handleInvalidOf(attributes, isOld && dropLast ? "keep" : "error") === "keep";
  const ports = portsOf(source);
  if (ports.length !== sizes.length) throw invalidBundle(`encodes ${ports.length} columns with ${sizes.length} sizes`);
  return (row) => {
    for (const [at, { input, output }] of ports.entries()) {
      const size = sizes[at] as number;
      const label = asDouble(row.get(input));
      if (label !== Math.trunc(label)) throw new LeapFailure(`invalid label: ${label}, must be integer`);
      const isKnown = label >= 0 && label < size;
      if (!isKnown && !keep) {
        const what = label < 0 ? `Negative value: ${label}. Input can't be negative.` : `Unseen value: ${label}.`;
        throw new LeapFailure(`${what} To handle invalid values, set Param handleInvalid to keep`);
      }
      // With `keep`, invalid values have an additional last category; with `dropLast`, the vector omits the last category.
      const length = size + (keep ? 1 : 0) - (dropLast ? 1 : 0);
      row.take(length);
      const values = new Float64Array(length);
      const category = isKnown ? label : size;
      if (category < length) values[category] = 1;
      row.set(output, vectorValue(values));
    }
  };
};

export const bucketizer: StepFactory = (source) => {
  const splits = source.attributes.doubles("splits");
  const last = splits.length - 1;
  if (last < 1) throw invalidBundle(`has less than two splits in '${source.folder.name}'`);
  // JSON has no infinities; MLeap writes null for them.
  if (Number.isNaN(splits[0])) splits[0] = -Infinity;
  if (Number.isNaN(splits[last])) splits[last] = Infinity;
  const keep = handleInvalidOf(source.attributes) === "keep";
  return doubleStep(source, (value) => {
    if (Number.isNaN(value)) {
      if (keep) return last;
      throw new LeapFailure(
        "Bucketizer encountered NaN value. To handle or skip NaNs, try setting Bucketizer.handleInvalid.",
      );
    }
    if (value === splits[last]) return last - 1;
    let low = 0;
    let high = splits.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((splits[middle] as number) <= value) low = middle + 1;
      else high = middle;
    }
    if (low === 0 || low === splits.length) {
      throw new LeapFailure(
        `Feature value ${value} out of Bucketizer bounds [${splits[0]}, ${splits[last]}]. ` +
          "Check your features, or loosen the lower/upper bound constraints.",
      );
    }
    return low - 1;
  });
};

export const vectorIndexer: StepFactory = (source) => {
  const { attributes } = source;
  const size = attributes.integer("num_features");
  const handleInvalid = handleInvalidOf(attributes);
  const features = attributes.integers("keys").map((key) => {
    const values = attributes.integers(`key_${key}_values`);
    const categories = [...attributes.doubles(`key_${key}_keys`)];
    // 0 and -0 are one category in a Map, and equal in Scala.
    return { key, indices: new Map(categories.map((category, at) => [category, values[at] ?? 0])) };
  });
  return vectorStep(source, size, (values) => {
    const indexed = values.slice();
    for (const { key, indices } of features) {
      const value = values[key];
      if (value === undefined) throw new LeapFailure(`a vector has no element ${key}`);
      const index = indices.get(value);
      if (index === undefined && handleInvalid !== "keep") {
        throw new LeapFailure(
          `VectorIndexer encountered invalid value ${value} on feature index ${key}. To handle or skip invalid value, ` +
            "try setting VectorIndexer.handleInvalid.",
        );
      }
      indexed[key] = index ?? indices.size;
    }
    return indexed;
  });
};
