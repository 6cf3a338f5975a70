import { zipOf } from "../../formats/zip-fixture.ts";

/**
 * Models that MXNet 1.9.1 saved with `Module.save_checkpoint`, rows of random features, and the results of `Module.predict` for these rows.
 * Each model is a FullyConnected of four features with random weights, followed by an output operator.
 */
export const savedLinearModels = {
  regressor: {
    symbol:
      '{"nodes":[{"op":"null","name":"data","inputs":[]},{"op":"null","name":"fc0_weight","attrs":{"num_hidden":"1"},"inputs":[]},{"op":"null","name":"fc0_bias","attrs":{"num_hidden":"1"},"inputs":[]},{"op":"FullyConnected","name":"fc0","attrs":{"num_hidden":"1"},"inputs":[[0,0,0],[1,0,0],[2,0,0]]},{"op":"null","name":"out_label","inputs":[]},{"op":"LinearRegressionOutput","name":"out","inputs":[[3,0,0],[4,0,0]]}],"arg_nodes":[0,1,2,4],"node_row_ptr":[0,1,2,3,4,5,6],"heads":[[5,0,0]],"attrs":{"mxnet_version":["int",10901]}}',
    parameters:
      "EgEAAAAAAAAAAAAAAAAAAAIAAAAAAAAAyfqT+QAAAAACAAAAAQAAAAAAAAAEAAAAAAAAAAEAAAAAAAAAAAAAACVj2D9Yj+6+cG4GPfml0D7J+pP5AAAAAAEAAAABAAAAAAAAAAEAAAAAAAAAAAAAANz2Sb8CAAAAAAAAAA4AAAAAAAAAYXJnOmZjMF93ZWlnaHQMAAAAAAAAAGFyZzpmYzBfYmlhcw==",
    rows: [
      [0.002065572887659073, -0.0008903858833946288, -1.7547242641448975, 1.017657995223999],
      [0.6004984974861145, -0.6254289746284485, -0.1715482622385025, 0.5052993893623352],
      [-0.2613564133644104, -0.24274908006191254, -1.4532414674758911, 0.5545803308486938],
    ],
    scores: [[-0.42789438366889954], [0.717933177947998], [-0.9393420219421387]],
  },
  binary: {
    symbol:
      '{"nodes":[{"op":"null","name":"data","inputs":[]},{"op":"null","name":"fc0_weight","attrs":{"num_hidden":"1"},"inputs":[]},{"op":"null","name":"fc0_bias","attrs":{"num_hidden":"1"},"inputs":[]},{"op":"FullyConnected","name":"fc0","attrs":{"num_hidden":"1"},"inputs":[[0,0,0],[1,0,0],[2,0,0]]},{"op":"null","name":"out_label","inputs":[]},{"op":"LogisticRegressionOutput","name":"out","inputs":[[3,0,0],[4,0,0]]}],"arg_nodes":[0,1,2,4],"node_row_ptr":[0,1,2,3,4,5,6],"heads":[[5,0,0]],"attrs":{"mxnet_version":["int",10901]}}',
    parameters:
      "EgEAAAAAAAAAAAAAAAAAAAIAAAAAAAAAyfqT+QAAAAACAAAAAQAAAAAAAAAEAAAAAAAAAAEAAAAAAAAAAAAAAEa1/T0Dhow+KGXDvyFK0z/J+pP5AAAAAAEAAAABAAAAAAAAAAEAAAAAAAAAAAAAACIKHj4CAAAAAAAAAA4AAAAAAAAAYXJnOmZjMF93ZWlnaHQMAAAAAAAAAGFyZzpmYzBfYmlhcw==",
    rows: [
      [-0.3871399462223053, 2.0290722846984863, -0.04538603127002716, -1.4506787061691284],
      [-0.4052278697490692, -2.2883150577545166, 1.0493965148925781, -0.416474312543869],
      [-0.7425535321235657, 1.0724701881408691, -1.6510756015777588, 0.5354293584823608],
    ],
    scores: [[0.1594834178686142], [0.05660868436098099], [0.9772669076919556]],
  },
  multiclass: {
    symbol:
      '{"nodes":[{"op":"null","name":"data","inputs":[]},{"op":"null","name":"fc0_weight","attrs":{"num_hidden":"3"},"inputs":[]},{"op":"null","name":"fc0_bias","attrs":{"num_hidden":"3"},"inputs":[]},{"op":"FullyConnected","name":"fc0","attrs":{"num_hidden":"3"},"inputs":[[0,0,0],[1,0,0],[2,0,0]]},{"op":"null","name":"out_label","inputs":[]},{"op":"SoftmaxOutput","name":"out","inputs":[[3,0,0],[4,0,0]]}],"arg_nodes":[0,1,2,4],"node_row_ptr":[0,1,2,3,4,5,6],"heads":[[5,0,0]],"attrs":{"mxnet_version":["int",10901]}}',
    parameters:
      "EgEAAAAAAAAAAAAAAAAAAAIAAAAAAAAAyfqT+QAAAAACAAAAAwAAAAAAAAAEAAAAAAAAAAEAAAAAAAAAAAAAAF8fBMBGgym/4COavwQiuz+PEeI/66iovks6Vz9bTji+gWwRP/C5QL/cqtq/8Mvmv8n6k/kAAAAAAQAAAAMAAAAAAAAAAQAAAAAAAAAAAAAAjCjEPpnYD0BS8Ik+AgAAAAAAAAAOAAAAAAAAAGFyZzpmYzBfd2VpZ2h0DAAAAAAAAABhcmc6ZmMwX2JpYXM=",
    rows: [
      [-0.5246046185493469, 1.912018895149231, 0.23730184137821198, 0.10143398493528366],
      [0.2525777220726013, -0.13237719237804413, -0.3094763457775116, -1.4349634647369385],
      [0.5016241073608398, -0.09477545320987701, 1.1930859088897705, -0.368818461894989],
    ],
    scores: [
      [0.29693132638931274, 0.6673888564109802, 0.035679832100868225],
      [0.0031803243327885866, 0.2895180284976959, 0.7073015570640564],
      [0.0011051413603127003, 0.9920865893363953, 0.006808234378695488],
    ],
  },
} as const;

export type SavedLinearModel = (typeof savedLinearModels)[keyof typeof savedLinearModels];

/** Returns the files within `model_algo-1`, by name. */
export function linearLearnerFiles({ symbol, parameters }: Pick<SavedLinearModel, "symbol" | "parameters">) {
  return {
    "additional-params.json": Buffer.from("{}"),
    "manifest.json": Buffer.from("{}"),
    "mx-mod-symbol.json": Buffer.from(symbol),
    "mx-mod-0000.params": Buffer.from(parameters, "base64"),
  };
}

/** Returns the file `model_algo-1` of a model. */
export function linearLearnerArtifact(model: Pick<SavedLinearModel, "symbol" | "parameters">): Buffer {
  return zipOf(linearLearnerFiles(model));
}
