import type { LayerNames } from "./encoder-plan.ts";
import { castTypes, maskedScore, type AttentionInputs, type GraphContext, type OperatorSet } from "./operator-set.ts";
import { activateStandard } from "./standard-activations.ts";
import { weightNumber } from "./weight-number.ts";

/** Standard ONNX operators, for runtimes other than ONNX Runtime, such as TensorRT and OpenVINO. */
export function standardOperators(opset: number): OperatorSet {
  return {
    opsets: { "": opset },
    embed(context, { ids, tokenTypes, positions }) {
      const { plan, graph, weights } = context;
      const { embeddings, embeddingWidth: width } = plan;
      const gather = (table: string, locations: string) => graph.add("Gather", [table, locations]);
      const words = gather(weights.stored(embeddings.words, [plan.vocabularySize, width]), ids);
      const locations =
        tokenTypes === null
          ? ownFirstSegment(context)
          : weights.stored(embeddings.positions, [plan.positionCount, width]);
      const placed = positions === null ? firstRows(context, locations, ids) : gather(locations, positions);
      const types =
        tokenTypes === null || embeddings.tokenTypes === null
          ? []
          : [gather(weights.stored(embeddings.tokenTypes, [plan.tokenTypeCount, width]), tokenTypes)];
      const sum = [placed, ...types].reduce((left, right) => graph.add("Add", [left, right]), words);
      const norm = [`${embeddings.norm}.weight`, `${embeddings.norm}.bias`].map((name) =>
        weights.stored(name, [width]),
      );
      return graph.add("LayerNormalization", [sum, ...norm], { attributes: { axis: -1n, epsilon: plan.epsilon } });
    },
    prepareMask({ graph, weights }, mask) {
      const numbers = graph.cast(mask, castTypes[weights.type]);
      const padding = graph.add("Sub", [weightNumber(graph, weights.type, 1), numbers]);
      const scores = graph.add("Mul", [padding, weightNumber(graph, weights.type, maskedScore)]);
      return graph.add("Unsqueeze", [scores, graph.integers("axes/1-2", [1, 2])]);
    },
    attend: attendStandard,
    activate: (context, value, bias) => activateStandard(context, context.graph.add("Add", [value, bias])),
  };
}

/** Returns the table of positions. If the encoder has segments, the first segment's embedding is added to each row. */
export function ownFirstSegment({ plan, weights }: GraphContext): string {
  const { positions, tokenTypes } = plan.embeddings;
  const shape = [plan.positionCount, plan.embeddingWidth] as const;
  if (tokenTypes === null) return weights.stored(positions, shape);
  return weights.withFirstRow(positions, shape, tokenTypes, plan.tokenTypeCount);
}

/** Returns the first rows of a table, one for each token position of `ids`, [batch, tokens]. */
function firstRows({ graph }: GraphContext, table: string, ids: string): string {
  const tokens = graph.add("Slice", [
    graph.add("Shape", [ids]),
    graph.integers("integers/1", [1]),
    graph.integers("integers/2", [2]),
  ]);
  return graph.add("Slice", [table, graph.integers("integers/0", [0]), tokens]);
}

function attendStandard({ plan, graph, weights }: GraphContext, names: LayerNames, inputs: AttentionInputs): string {
  const { hidden, mask, distances } = inputs;
  const { hiddenWidth: width, headCount } = plan;
  const headWidth = width / headCount;
  const shape = graph.integers("shape/heads", [0, 0, headCount, headWidth]);
  const heads = (name: string, perm: readonly number[]) => {
    const projected = graph.add("MatMul", [hidden, weights.dense(name, width, width)]);
    const biased = graph.add("Add", [projected, weights.bias(name, width)]);
    const attributes = { perm: Int32Array.from(perm) };
    return graph.add("Transpose", [graph.add("Reshape", [biased, shape])], { attributes });
  };
  const query = heads(names.query, [0, 2, 1, 3]);
  const key = heads(names.key, [0, 2, 3, 1]);
  const value = heads(names.value, [0, 2, 1, 3]);
  const scale = weightNumber(graph, weights.type, 1 / Math.sqrt(headWidth));
  const raw = graph.add("Mul", [graph.add("MatMul", [query, key]), scale]);
  const added = [mask, ...(distances === null ? [] : [distances])];
  const scores = added.reduce((left, right) => graph.add("Add", [left, right]), raw);
  const shares = graph.add("Softmax", [scores], { attributes: { axis: -1n } });
  const gathered = graph.add("Transpose", [graph.add("MatMul", [shares, value])], {
    attributes: { perm: Int32Array.from([0, 2, 1, 3]) },
  });
  return graph.add("Reshape", [gathered, graph.integers("shape/joined", [0, 0, width])]);
}
