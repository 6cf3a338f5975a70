import { invalidBundle } from "./bundle-files.ts";
import { columnStep, doubleStep, inputOf, type StepFactory, outputOf, sized, vectorStep } from "./leap-step.ts";
import { asDouble, asDoubleOrNull, asVector, doubleValue, LeapFailure, vectorValue } from "./leap-values.ts";

export const vectorAssembler: StepFactory = (source) => {
  const shapes = source.attributes.shapes("input_shapes");
  const inputs = shapes.map((shape, index) => ({ shape, column: inputOf(source, `input${index}`) }));
  const output = outputOf(source, "output");
  return (row) => {
    const parts = inputs.map(({ shape, column }) => {
      const value = row.get(column);
      return shape.kind === "scalar" ? Float64Array.of(asDouble(value)) : asVector(value);
    });
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    row.take(length);
    const values = new Float64Array(length);
    let at = 0;
    for (const part of parts) {
      values.set(part, at);
      at += part.length;
    }
    row.set(output, vectorValue(values));
  };
};

export const vectorSlicer: StepFactory = (source) => {
  const { attributes } = source;
  const indices = [...attributes.integers("indices"), ...attributes.integers("named_indices")];
  return vectorStep(source, attributes.integer("input_size", 0), (values) => picked(values, indices));
};

export const chiSqSelector: StepFactory = (source) => {
  const indices = source.attributes.integers("filter_indices");
  return vectorStep(source, source.attributes.integer("input_size", 0), (values) => picked(values, indices));
};

function picked(values: Float64Array, indices: readonly number[]): Float64Array {
  return Float64Array.from(indices, (index) => {
    const value = values[index];
    if (value === undefined) throw new LeapFailure(`a vector has no element ${index}`);
    return value;
  });
}

export const standardScaler: StepFactory = (source) => {
  const { attributes } = source;
  const mean = attributes.has("mean") ? attributes.vector("mean") : null;
  const std = attributes.has("std") ? attributes.vector("std") : null;
  const size = (std ?? mean)?.length;
  if (size === undefined) throw invalidBundle(`scales neither by mean nor by deviation in '${source.folder.name}'`);
  if (mean !== null && mean.length !== size) throw invalidBundle(`has ${mean.length} means and ${size} deviations`);
  return vectorStep(source, size, (values) =>
    values.map((value, at) => {
      const shifted = mean === null ? value : value - (mean[at] as number);
      if (std === null) return shifted;
      const deviation = std[at] as number;
      return deviation === 0 ? 0 : shifted * (1 / deviation);
    }),
  );
};

export const minMaxScaler: StepFactory = (source) => {
  const { attributes } = source;
  const lowest = attributes.vector("min");
  const highest = sized(attributes.vector("max"), lowest.length);
  const from = attributes.double("minValue", 0);
  const to = attributes.double("maxValue", 1);
  return vectorStep(source, lowest.length, (values) =>
    values.map((value, at) => {
      if (Number.isNaN(value)) return value;
      const range = (highest[at] as number) - (lowest[at] as number);
      const raw = range === 0 ? 0.5 : (value - (lowest[at] as number)) / range;
      return raw * (to - from) + from;
    }),
  );
};

export const maxAbsScaler: StepFactory = (source) => {
  const highest = source.attributes.vector("maxAbs").map((each) => (each === 0 ? 1 : each));
  return vectorStep(source, highest.length, (values) =>
    values.map((value, at) => Math.max(-1, Math.min(1, value / (highest[at] as number)))),
  );
};

export const elementwiseProduct: StepFactory = (source) => {
  const factors = source.attributes.vector("scaling_vec");
  return vectorStep(source, factors.length, (values) => values.map((value, at) => value * (factors[at] as number)));
};

export const idf: StepFactory = (source) => {
  const weights = source.attributes.vector("idf");
  return vectorStep(source, weights.length, (values) => values.map((value, at) => value * (weights[at] as number)));
};

export const normalizer: StepFactory = (source) => {
  const power = source.attributes.double("p_norm");
  if (!(power >= 1)) throw invalidBundle(`has a norm of ${power} in '${source.folder.name}'`);
  return vectorStep(source, source.attributes.integer("input_size", 0), (values) => {
    const norm = normOf(values, power);
    return norm === 0 ? values : values.map((value) => value / norm);
  });
};

function normOf(values: Float64Array, power: number): number {
  if (power === Infinity) return values.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
  if (power === 1) return values.reduce((sum, value) => sum + Math.abs(value), 0);
  if (power === 2) return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return values.reduce((sum, value) => sum + Math.abs(value) ** power, 0) ** (1 / power);
}

/** Creates a principal component analysis. The columns of its matrix, in column-major order, are the components. */
export const pca: StepFactory = (source) => {
  const { dimensions, values: components } = source.attributes.tensor("principal_components");
  const [size = 0, count = 0] = dimensions;
  if (dimensions.length !== 2) throw invalidBundle(`has no matrix in '${source.folder.name}'`);
  return vectorStep(source, size, (values) =>
    Float64Array.from({ length: count }, (_, component) => {
      let sum = 0;
      for (let at = 0; at < size; at += 1)
        sum += (values[at] as number) * (components[component * size + at] as number);
      return sum;
    }),
  );
};

export const binarizer: StepFactory = (source) => {
  const threshold = source.attributes.double("threshold");
  const binary = (value: number): number => (value > threshold ? 1 : 0);
  return columnStep(source, (value) =>
    value.kind === "scalar" ? doubleValue(binary(asDouble(value))) : vectorValue(asVector(value).map(binary)),
  );
};

export const imputer: StepFactory = (source) => {
  const { attributes } = source;
  const surrogate = attributes.double("surrogate_value");
  const missing = attributes.double("missing_value", NaN);
  if (attributes.boolean("nullable_input", true)) {
    return columnStep(source, (value) => {
      const double = asDoubleOrNull(value);
      return doubleValue(double === null || Number.isNaN(double) || double === missing ? surrogate : double);
    });
  }
  return doubleStep(source, (value) => (Number.isNaN(value) || value === missing ? surrogate : value));
};
