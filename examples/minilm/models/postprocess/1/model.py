import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        tokens = pb_utils.get_input_tensor_by_name(request, "token_embeddings").as_numpy()
        mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy().astype(np.float32)
        # The sum over the unpadded tokens; dividing by their number would be undone by the normalisation.
        total = np.matmul(mask[:, np.newaxis, :], tokens)[:, 0, :]
        length = np.sqrt(np.einsum("ij,ij->i", total, total))[:, np.newaxis]
        embedding = total / np.maximum(length, 1e-12)
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("EMBEDDING", embedding)])
