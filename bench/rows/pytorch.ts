import { frameworkRow } from "../framework-bench.ts";

/** TorchScript served by us and by Triton's Python backend, with the same torch. */
export const pytorchRow = frameworkRow({
  framework: "pytorch",
  label: "PyTorch",
  library: "torch",
  writer: "write_torchscript.py",
  input: "INPUT__0",
  small: { loaded: "a small module", requested: "small TorchScript" },
  large: {
    model: "resnet",
    shape: [3, 64, 64],
    loaded: "ResNet-50 (100 MB)",
    requested: "ResNet-50 as TorchScript, 64 by 64",
  },
  count: 12,
});
