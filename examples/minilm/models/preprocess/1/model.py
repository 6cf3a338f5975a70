import os

# The library's thread pool does not survive a fork, and is not faster for sentences.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer

# max_seq_length of the published model's sentence_bert_config.json.
MAX_TOKENS = 256


class TritonPythonModel:
    def initialize(self, args):
        here = os.path.dirname(os.path.abspath(__file__))
        self.tokenizer = Tokenizer.from_file(os.path.join(here, "tokenizer.json"))
        # The file's setting pads to 128 tokens; here each request is padded to its longest sentence.
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(MAX_TOKENS)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy().reshape(-1)
        try:
            encodings = [self.tokenizer.encode(text.decode("utf-8")) for text in texts]
        except UnicodeDecodeError as error:
            refusal = pb_utils.TritonError("TEXT is not UTF-8: %s" % error, pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(output_tensors=[], error=refusal)
        width = max((len(encoding) for encoding in encodings), default=0)
        ids = np.zeros((len(encodings), width), dtype=np.int64)
        mask = np.zeros((len(encodings), width), dtype=np.int64)
        for row, encoding in enumerate(encodings):
            count = len(encoding)
            ids[row, :count] = encoding.ids
            mask[row, :count] = 1
        return pb_utils.InferenceResponse(
            output_tensors=[pb_utils.Tensor("input_ids", ids), pb_utils.Tensor("attention_mask", mask)]
        )
