import { unreachable } from "@galatea/base";
import type { GraphContext } from "./operator-set.ts";
import { weightNumber } from "./weight-number.ts";

/** Adds the plan's activation with operators that every implementation of opset 17 supports. */
export function activateStandard({ plan, graph, weights }: GraphContext, value: string): string {
  const number = (of: number) => weightNumber(graph, weights.type, of);
  switch (plan.activation) {
    case "gelu": {
      const spread = graph.add("Erf", [graph.add("Mul", [value, number(Math.SQRT1_2)])]);
      const half = graph.add("Mul", [value, number(0.5)]);
      return graph.add("Mul", [half, graph.add("Add", [spread, number(1)])]);
    }
    case "gelu-tanh": {
      const square = graph.add("Mul", [value, value]);
      const bent = graph.add("Add", [graph.add("Mul", [square, number(0.044_715)]), number(1)]);
      const inner = graph.add("Mul", [graph.add("Mul", [value, bent]), number(Math.sqrt(2 / Math.PI))]);
      const half = graph.add("Mul", [value, number(0.5)]);
      return graph.add("Mul", [half, graph.add("Add", [graph.add("Tanh", [inner]), number(1)])]);
    }
    case "relu":
      return graph.add("Relu", [value]);
    case "silu":
      return graph.add("Mul", [value, graph.add("Sigmoid", [value])]);
    case "tanh":
      return graph.add("Tanh", [value]);
    default:
      return unreachable(plan.activation);
  }
}
