"""Checks an ONNX file and runs it: answer.py MODEL IMAGE TIME ANSWER BATCH
CHANNELS HEIGHT WIDTH, arrays as raw float32."""

import sys

import numpy as np
import onnx
import onnxruntime

model, image, time, answer = sys.argv[1:5]
shape = [int(n) for n in sys.argv[5:9]]
onnx.checker.check_model(onnx.load(model), full_check=True)
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
(out,) = session.run(["answer"], {
    "image": np.fromfile(image, np.float32).reshape(shape),
    "time": np.fromfile(time, np.float32),
})
out.astype(np.float32).tofile(answer)
